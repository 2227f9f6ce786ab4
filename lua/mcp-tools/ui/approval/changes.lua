--- Preview of a call: what it would change, as its definition tells it, and whether that is still so.
---
--- Receives: a question for approval.
--- Sends: text, which is kept in the question.
--- Does not know about: how it is shown, what is answered.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local source = require('mcp-tools.registry.source')

local M = {}

---@param question mcp-tools.Question
---@return string|false
local function ask(question)
  local definition = question.call.definition
  local ok, text, err = xpcall(definition.preview, debug.traceback, vim.deepcopy(question.args))
  if ok and text == nil and errors.is(err) then
    text = 'This is going to fail: ' .. err.message
  end
  if ok and type(text) == 'string' then
    return text
  end
  log.error('the preview of %s failed: %s', definition.name, vim.inspect(text))
  return false
end

--- What would change, if the definition can tell. It is asked once a question.
---@param question mcp-tools.Question
---@return string? text, string? fault
function M.of(question)
  local definition = question.call.definition
  if not definition.preview or not source.is_believed(definition, question.root) then
    return nil
  elseif question.preview == nil then
    question.preview = ask(question)
  end
  return question.preview or nil, not question.preview and 'its preview failed (:McpTools log)' or nil
end

--- Would something else change by now than what was shown? Then that is what the question has to show.
---@param question mcp-tools.Question
---@return boolean
function M.have_moved(question)
  if not question.preview then
    return false -- nobody was shown any
  end
  local before = question.preview
  question.preview = ask(question)
  return question.preview ~= before
end

return M
