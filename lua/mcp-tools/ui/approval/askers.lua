--- Approval without a window of this plugin: by `vim.ui.select`, or by elicitation, where the client asks its user.

local arguments = require('mcp-tools.ui.approval.arguments')
local float = require('mcp-tools.ui.window.float')
local inputs = require('mcp-tools.calls.inputs')
local is_from_client = require('mcp-tools.approval.answers').is_from_client
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
    return is_from_client(question.call, choice.name --[[@as mcp-tools.Choice]])
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

---@return { row: integer, height: integer }[]
function Change:layout()
  return { { row = 0, height = math.max(1, math.min(self.rows, vim.o.lines - PICKER_ROWS - float.FRAME)) } }
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

--- Shows the change of a call that has a preview.
---@param question mcp-tools.Question
local function show_change(question)
  hide_change(question)
  local shown, fault
  if question.call.definition then
    shown, fault = preview_of(question)
  end
  if shown or fault then
    local change = setmetatable({}, Change)
    local page = text.page(question, change:width())
    changes[question] = change:open_page(page, float.buffer('mcp_tools_change', question.id, {}))
    change:set_frames()
    vim.cmd.redraw()
  end
end

--- Bytes of all arguments together, and minimum for each.
local SUMMARY = { max = 400, min_share = 30 }

--- Formats arguments in one line.
---@param args table
---@param schema table input schema of the tool
---@return string
local function summary(args, schema)
  local known = type(schema.properties) == 'table' and schema.properties or {}
  local list, heading, left = arguments.format(args, known, SUMMARY)
  local parts = {}
  for _, argument in ipairs(list) do
    table.insert(parts, table.concat(vim.tbl_map(trim, argument.lines), ' '))
  end
  table.insert(parts, left > 0 and ('… and %d more arguments'):format(left) or nil)
  return ('%s { %s }'):format(heading, table.concat(parts, ', '))
end

---@param question mcp-tools.Question
function M.select.show(question)
  local call = question.call
  local who = call.client.name and 'A client that ' .. text.client(call, true)
    or 'The caller ' .. sanitize.line(call.host)
  local prompt = ('%s wants to run %s, %s (%s)'):format(
    who,
    sanitize.line(call.name),
    summary(question.args, (call.definition or {}).input_schema or {}),
    sanitize.line(question.reason)
  )
  if question.why_not then
    prompt = ('%s %s'):format(question.why_not, prompt)
  end
  question.why_not = nil
  show_change(question)
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
  if changes[question] then
    show_change(question)
  end
end

return M
