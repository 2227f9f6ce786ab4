--- Preview of the change a call would make, from the `preview` function of its definition.

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
    text = 'The call will fail: ' .. err.message
  end
  if ok and type(text) == 'string' then
    return text
  end
  log.error('the preview of %s failed: %s', definition.name, vim.inspect(text))
  return false
end

--- Returns the callback for a preview that is completed later: it updates the question. If the call would fail it ends
--- the question, except for files outside the project, about which the client must learn nothing before the answer.
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

--- Returns the preview, computed once for each question. Previews of untrusted definitions are ignored.
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

--- Computes the preview again and returns whether it differs from the one that was shown.
---@param question mcp-tools.Question
---@return boolean
function M.has_changed(question)
  if not question.preview then
    return false -- none was shown
  end
  local before = question.preview
  question.preview = ask(question, vim.schedule_wrap(renewer(question)))
  return question.preview ~= before
end

return M
