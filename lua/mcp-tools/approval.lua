--- Approval, for plugins of the person: which questions wait, and an answer to one. `:h mcp-tools-approval-yourself`

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

---@class mcp-tools.OpenQuestion a copy: nothing changes with it
---@field id string
---@field tool string
---@field title string?
---@field host string
---@field client { name: string?, version: string? }
---@field session string?
---@field reason string? why it is asked
---@field args table
---@field files string[] that its arguments name
---@field choices mcp-tools.Choice[]

---@param question mcp-tools.Question
---@return mcp-tools.OpenQuestion
local function copy(question)
  local call = question.call
  return vim.deepcopy({
    id = question.id,
    tool = call.name,
    title = call.definition and call.definition.title,
    host = call.host,
    client = call.client,
    session = call.session,
    reason = question.reason,
    args = question.args,
    files = vim.tbl_map(function(target)
      return target.path or target.given
    end, question.targets),
    choices = question.choices,
  })
end

--- The open questions, oldest first, those included that only the client is asked.
---@return mcp-tools.OpenQuestion[]
function M.list()
  return vim.tbl_map(copy, questions.list())
end

--- The question that is on the screen.
---@return mcp-tools.OpenQuestion?
function M.current()
  local question = questions.current()
  return question and copy(question)
end

--- How many questions wait for the person at the editor; of use in a status line. Those that only the client is asked
--- are not counted.
---@return integer
function M.count()
  return questions.count()
end

return M
