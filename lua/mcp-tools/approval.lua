--- Approval, for plugins of the person: which questions wait, and an answer to one. `:h mcp-tools-approval-yourself`
---
--- Receives: answers of handlers of `User McpToolsApproval`.
--- Sends: them to ui/approval/.
--- Does not know about: what a question is about.

local questions = require('mcp-tools.ui.approval')

local M = {}

--- Answers a question that is open.
---@param id string as in the event
---@param choice mcp-tools.Choice one of its `choices`
---@return boolean ok
---@return string? err why it was not taken
function M.answer(id, choice)
  return questions.answer(id, choice)
end

--- The open questions, the shown one first.
---@return mcp-tools.Question[]
function M.list()
  return questions.list()
end

--- The question that is on the screen.
---@return mcp-tools.Question?
function M.current()
  return questions.current()
end

--- How many questions are open; of use in a status line.
---@return integer
function M.count()
  return questions.count()
end

return M
