--- Preview of a call: what it would change, as its definition tells it, and whether that is still so.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local paths = require('mcp-tools.files.paths')
local source = require('mcp-tools.registry.source')

local M = {}

---@param question mcp-tools.Question
---@param again? fun(err: mcp-tools.Error?)
---@return string|false
local function ask(question, again)
  local definition = question.call.definition
  local ok, text, err = xpcall(definition.preview, debug.traceback, vim.deepcopy(question.args), again)
  if ok and text == nil and errors.is(err) then
    text = 'This is going to fail: ' .. err.message
  end
  if ok and type(text) == 'string' then
    return text
  end
  log.error('the preview of %s failed: %s', definition.name, vim.inspect(text))
  return false
end

--- A preview that can tell more by now is asked again. One that has found out that the call fails ends the question,
--- unless that is about files outside the project, of which the client is to learn nothing before the answer.
---@param question mcp-tools.Question
---@return fun(err: mcp-tools.Error?)
local function renewer(question)
  return function(err)
    local outside = vim.iter(question.targets):any(function(target)
      return target.path ~= nil and (target.unclear or not paths.inside(target.path, question.root))
    end)
    if question.closed then
      return
    elseif err and not outside then
      return question:close('ended', nil, err, 'preview')
    end
    question.preview = ask(question)
    question:renew()
  end
end

--- What would change, if the definition can tell. It is asked once a question, and again when it knows more.
---@param question mcp-tools.Question
---@return string? text, string? fault
function M.of(question)
  local definition = question.call.definition
  if not definition.preview or not source.is_believed(definition, question.root) then
    return nil
  elseif question.preview == nil then
    question.preview = ask(question, vim.schedule_wrap(renewer(question)))
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
  question.preview = ask(question, vim.schedule_wrap(renewer(question)))
  return question.preview ~= before
end

return M
