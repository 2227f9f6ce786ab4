--- Approval without a window of this plugin: by `vim.ui.select`, or by elicitation, where the client asks its user.

local arguments = require('mcp-tools.ui.approval.arguments')
local inputs = require('mcp-tools.calls.inputs')
local is_from_client = require('mcp-tools.approval.answers').is_from_client
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

--- Bytes of all arguments together, and minimum for each.
local SUMMARY = { max = 400, min_share = 30 }

--- Formats arguments in one line.
---@param args table
---@param schema table input schema of the tool
---@return string
local function summary(args, schema)
  local known = type(schema.properties) == 'table' and schema.properties or {}
  local list, heading, left = arguments.read(args, known, SUMMARY)
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
  local prompt = ('%s%s wants to run %s, %s (%s)'):format(
    question.late and 'Allow when it is called again? ' or '',
    who,
    sanitize.line(call.name),
    summary(question.args, (call.definition or {}).input_schema or {}),
    sanitize.line(question.reason)
  )
  local choices = question:offered()
  vim.ui.select(choices, {
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
      question:answer('deny') -- the picker was closed, or returned something else
    end
  end)
end

--- A picker cannot be closed from here; its answer is ignored.
function M.select.hide() end

return M
