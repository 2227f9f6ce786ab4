--- Approval without a window of this plugin: by `vim.ui.select`, or by elicitation, where the client asks its user.

local answers = require('mcp-tools.approval.answers')
local approval_float = require('mcp-tools.ui.approval.float')
local arguments = require('mcp-tools.ui.approval.arguments')
local float = require('mcp-tools.ui.window.float')
local inputs = require('mcp-tools.calls.inputs')
local preview_of = require('mcp-tools.ui.approval.question').preview_of
local render = require('mcp-tools.ui.window.render')
local sanitize = require('mcp-tools.util.sanitize')
local text = require('mcp-tools.ui.approval.text')
local trim = require('mcp-tools.util.trim')

local M = {}

--- A client may answer without asking anyone, so it gets no choice that outlives its session.
M.client = { serial = false }

---@type table<mcp-tools.Question, table<string, mcp-tools.Input>>
local asked = setmetatable({}, { __mode = 'k' })

---@param message string
---@param choices table[]
---@return table<string, mcp-tools.Input>, string key
local function form(message, choices)
  local names, titles = {}, {}
  for _, choice in ipairs(choices) do
    table.insert(names, choice.name)
    table.insert(titles, choice.long)
  end
  local answer = { type = 'string', title = 'Answer', enum = names, enumNames = titles, default = 'deny' }
  local schema = { type = 'object', properties = { answer = answer }, required = { 'answer' } }
  -- The key is random, so that a client cannot answer before it has the question.
  local key = 'approval_' .. vim.text.hexencode(assert(vim.uv.random(16)))
  return { [key] = { method = 'elicitation/create', params = { message = message, requestedSchema = schema } } }, key
end

--- Returns why the client of a call cannot be asked.
---@param call mcp-tools.Call
---@return string?
function M.client.missing(call)
  local err = inputs.missing(call, (form('', {})))
  return err and 'its client cannot ask its user (it does not support elicitation)' or nil
end

---@param question mcp-tools.Question
function M.client.show(question)
  local choices = vim.tbl_filter(function(choice)
    return answers.is_from_client(question.call, choice.name --[[@as mcp-tools.Choice]])
  end, question:offered())
  local message = 'Allow this call in Neovim?\n\n' .. table.concat(text.facts(question), '\n')
  local requests, key = form(message, choices)
  asked[question] = requests
  inputs.ask(question.call, requests, function(results, err)
    asked[question] = nil
    if err then
      return question:give_up(M.client, 'its client did not ask: ' .. err.message)
    end
    local result = results[key]
    local choice = result.action == 'accept' and result.content.answer
    if not question:answer(choice, 'client') then
      question:answer('deny', 'client')
    end
  end)
end

---@param question mcp-tools.Question
function M.client.hide(question)
  if asked[question] then
    inputs.withdraw(question.call, asked[question])
    asked[question] = nil
  end
end

--- Neovim's built-in picker blocks the editor until it is answered.
M.select = { serial = true }

--- Number of rows at the bottom that the built-in picker needs for its choices.
local PICKER_ROWS = 12

--- Window at the top of the screen with the change that a picker asks about. Windows of pickers may cover it.
---@class mcp-tools.ApprovalChange: mcp-tools.Float
local Change = float.kind({ zindex = 40, max_width = 100 })

--- Returns the number of rows above the picker.
---@return integer
local function max_rows()
  return vim.o.lines - PICKER_ROWS - float.FRAME
end

---@return { row: integer, height: integer }[]
function Change:layout()
  return { { row = 0, height = math.max(1, math.min(self.rows, max_rows())) } }
end

---@return table[]
function Change:frames()
  return { { title = render.with_more({ render.chunk(' Allow this call? ', 'Title') }, self:below()) } }
end

---@type table<mcp-tools.Question, mcp-tools.ApprovalChange>
local changes = setmetatable({}, { __mode = 'k' })

---@param question mcp-tools.Question
local function hide_change(question)
  if changes[question] then
    changes[question]:close()
    changes[question] = nil
  end
end

--- Returns the text of a question whose call has a preview.
---@param question mcp-tools.Question
---@return mcp-tools.Rows?
local function page_of(question)
  local shown, fault
  if question.call.definition then
    shown, fault = preview_of(question)
  end
  return (shown or fault) and text.page(question, Change:width()) or nil
end

---@param question mcp-tools.Question
---@param page mcp-tools.Rows
local function show_change(question, page)
  hide_change(question)
  local change = setmetatable({}, Change)
  changes[question] = change:open_page(page, float.buffer('mcp_tools_change', question.id, {}))
  change:set_frames()
  vim.cmd.redraw()
end

--- Bytes of all arguments together, and minimum for each.
local SUMMARY = { max = 400, min_share = 30 }

--- Formats arguments in one line.
---@param args table
---@param schema table input schema of the tool
---@return string? line nil if they are too long
local function summary(args, schema)
  local known = type(schema.properties) == 'table' and schema.properties or {}
  local list, heading = arguments.format(args, known, SUMMARY)
  if heading:find('CUT', 1, true) then
    return nil
  end
  local parts = {}
  for _, argument in ipairs(list) do
    table.insert(parts, table.concat(vim.tbl_map(trim, argument.lines), ' '))
  end
  return (', %s { %s }'):format(heading, table.concat(parts, ', '))
end

--- Asks in the floating window, where the user can scroll.
---@param question mcp-tools.Question
local function ask_in_float(question)
  hide_change(question)
  question.askers = vim.tbl_map(function(asker)
    return asker == M.select and approval_float or asker
  end, question.askers)
  approval_float.show(question)
end

--- Asks with `vim.ui.select`, or in the floating window if the picker cannot show everything.
---@param question mcp-tools.Question
function M.select.show(question)
  local call, page = question.call, page_of(question)
  local args = page and '' or summary(question.args, (call.definition or {}).input_schema or {})
  if not args or page and #page.list > max_rows() then
    return ask_in_float(question)
  end
  local who = call.client.name and 'A client that ' .. text.client(call, true)
    or 'The caller ' .. sanitize.line(call.host)
  local prompt = ('%s wants to run %s%s (%s)'):format(
    who,
    sanitize.line(call.name),
    args,
    sanitize.line(question.reason)
  )
  if question.why_not then
    prompt = ('%s %s'):format(question.why_not, prompt)
  end
  question.why_not = nil
  if page then
    show_change(question, page)
  end
  vim.ui.select(question:offered(), {
    prompt = prompt,
    kind = 'mcp-tools-approval',
    format_item = function(choice)
      return choice.long
    end,
  }, function(choice)
    local name = type(choice) == 'table' and choice.name
    if name == 'reason' then
      question:deny_because(function()
        M.select.show(question)
      end)
    elseif answers.YES[name] and name ~= 'review' and changes[question] and changes[question].rows > max_rows() then
      ask_in_float(question) -- the change or the screen has another size than when the picker was opened
    elseif
      not question:answer(name --[[@as mcp-tools.Choice]])
    then
      if not question.why_not then
        return question:answer('deny') -- the picker was closed, or returned something else
      end
      vim.schedule(function()
        if not question.closed then
          M.select.show(question)
        end
      end)
    end
  end)
end

--- A picker cannot be closed from here; its answer is ignored.
---@param question mcp-tools.Question
function M.select.hide(question)
  hide_change(question)
end

--- Updates the window with the change.
---@param question mcp-tools.Question
function M.select.renew(question)
  local page = changes[question] and page_of(question)
  if page then
    show_change(question, page)
  end
end

return M
