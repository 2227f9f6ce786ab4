--- Approval without a window of this plugin: by `vim.ui.select`, or by elicitation, where the client asks its user.

local inputs = require('mcp-tools.calls.inputs')
local is_from_client = require('mcp-tools.approval.answers').is_from_client
local sanitize = require('mcp-tools.util.sanitize')
local text = require('mcp-tools.ui.approval.text')
local utf8 = require('mcp-tools.util.utf8')

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

--- Characters for all arguments, minimum for each argument, and maximum number of arguments.
local MAX_ARGS, MIN_ARG, MAX_NAMES = 400, 30, 100
--- Bytes that are read of one argument; at least `MAX_ARGS` characters.
local MAX_READ = 4 * MAX_ARGS

--- Formats a value in one line. Only the first bytes of strings are read, because a client may send millions.
---@param value any
---@return string
---@return integer hidden bytes that were not read
local function inspected(value)
  local left, hidden = MAX_READ, 0
  local function process(item, path)
    if path[#path] == vim.inspect.METATABLE then
      return nil
    elseif type(item) ~= 'string' then
      return item
    end
    local kept = #item > left and utf8.cut(item, left):sub(1, -#'…' - 1) or item
    left, hidden = left - #kept, hidden + #item - #kept
    return kept
  end
  return sanitize.line(vim.inspect(value, { newline = ' ', indent = '', process = process })), hidden
end

--- Formats an argument in one line, with the number of characters that are not shown.
---@param name string
---@param value any
---@param share integer maximum number of characters
---@return string
local function argument(name, value, share)
  local whole, hidden = inspected(value)
  local length = vim.fn.strcharlen(whole)
  if length > share then
    whole = ('%s… (%d of %d characters not shown)'):format(
      vim.fn.strcharpart(whole, 0, share),
      length + hidden - share,
      length + hidden
    )
  end
  return ('%s = %s'):format(sanitize.line(name), whole)
end

--- Formats all arguments. Those that the tool declares come first, so that others cannot push them out.
---@param args table
---@param schema table input schema of the tool
---@return string
local function summary(args, schema)
  local names = vim.tbl_map(tostring, vim.tbl_keys(args))
  local declared = type(schema.properties) == 'table' and schema.properties or {}
  table.sort(names, function(a, b)
    local first, second = declared[a] ~= nil, declared[b] ~= nil
    if first ~= second then
      return first
    end
    return a < b
  end)
  local share = math.max(MIN_ARG, math.floor(MAX_ARGS / math.max(1, #names)))
  local parts = {}
  for _, name in ipairs(vim.list_slice(names, 1, MAX_NAMES)) do
    table.insert(parts, argument(name, args[name], share))
  end
  if #names > MAX_NAMES then
    table.insert(parts, ('… and %d more arguments'):format(#names - MAX_NAMES))
  end
  return ('{ %s }'):format(table.concat(parts, ', '))
end

---@param question mcp-tools.Question
function M.select.show(question)
  local call = question.call
  local who = call.client.name and 'A client that ' .. text.client(call, true)
    or 'The caller ' .. sanitize.line(call.host)
  local prompt = ('%s wants to run %s %s (%s)'):format(
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
