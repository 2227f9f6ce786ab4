--- Asking for approval: by whom a question is put to the person, and how others answer it.

local Question = require('mcp-tools.ui.approval.question')
local config = require('mcp-tools.config')
local errors = require('mcp-tools.errors')
local denial = require('mcp-tools.approval.denial')
local queue = require('mcp-tools.ui.approval.queue')

local M = {}

--- Questions that may be open at a time, the one on the screen included.
M.MAX_OPEN = 8

M.list, M.count, M.current = queue.list, queue.count, queue.current

--- Who asks in the editor, by the names of the option `ui.approval`. A module is loaded when it is first needed.
---@type table<string, fun(): mcp-tools.Asker>
local EDITOR = {
  float = function()
    -- Start-up cost: most editors ask in one way, and not before a client is there.
    return require('mcp-tools.ui.approval.float')
  end,
  select = function()
    -- Start-up cost, likewise.
    return require('mcp-tools.ui.approval.select')
  end,
  event = function() -- somebody else shows it, by `User McpToolsApproval`
    return { serial = true, show = function() end, hide = function() end }
  end,
}

--- Who can ask now. Calls that no MCP client has made are asked for in the editor, whatever the option says.
---@param call mcp-tools.Call
---@return mcp-tools.Asker[] askers
---@return string why_not for when there is none
local function askers_of(call)
  local where = call.host == 'mcp' and config.get().approval.ask_in or 'editor'
  local list, faults = {}, {}
  if where ~= 'editor' then
    -- Start-up cost, likewise.
    local client = require('mcp-tools.ui.approval.client')
    local fault = client.missing(call)
    table.insert(fault and faults or list, fault or client)
  end
  if where ~= 'client' then
    if #vim.api.nvim_list_uis() > 0 then
      table.insert(list, EDITOR[config.get().ui.approval]())
    else
      table.insert(faults, 'the editor has no UI to ask in')
    end
  end
  return list, table.concat(faults, ', and ')
end

--- Asks. Denies at once where nobody can be asked.
---@param asked mcp-tools.Asked
---@param answer mcp-tools.Answer
function M.ask(asked, answer)
  local call, options = asked.call, config.get()
  local askers, why_not = askers_of(call)
  if #askers == 0 then
    local why = 'it needs approval, and ' .. why_not
    Question.tell_missed(call, why)
    return answer(nil, denial.error(call, why, 'unanswered'), 'nobody to ask')
  end
  local count = #queue.list()
  if count >= M.MAX_OPEN then
    local text = ('%d questions for approval are open; try again later'):format(count)
    return answer(nil, errors.new('busy', text), 'busy')
  end
  call:move('ask')
  queue.add(Question.new(asked, askers, answer), options.approval.timeout)
end

--- Answers one question, whichever is on screen.
---@param id string the call's, as `User McpToolsApproval` names it
---@param choice mcp-tools.Choice
---@param by? 'person'|'client' who says so (default: the user at the editor)
---@param reason? string why it is denied, for the assistant
---@return boolean answered
---@return string? why_not
function M.answer(id, choice, by, reason)
  for _, question in ipairs(queue.list()) do
    if question.id == id then
      return question:answer(choice, by, reason)
    end
  end
  return false, 'this question is no longer open'
end

--- Answers the question on screen, for commands. Refuses when the person may have meant another one.
---@param choice mcp-tools.Choice
---@param reason? string why it is denied, for the assistant
---@return boolean answered
---@return string? why_not unless it is said beside the question
function M.answer_current(choice, reason)
  local question = queue.current()
  if not question then
    return false, 'there is no open question'
  end
  return question:answer_shown(choice, reason)
end

--- Moves the cursor to the question, where it is a window of ours.
function M.focus()
  EDITOR.float().focus()
end

return M
