--- Public API of approval: lists open questions and answers them. `:h mcp-tools-approval-yourself`

local questions = require('mcp-tools.ui.approval')

local M = {}

--- Answers an open question.
---@param id string as in the event
---@param choice mcp-tools.Choice one of its `choices`
---@return boolean ok
---@return string? err why the answer was refused
function M.answer(id, choice)
  return questions.answer(id, choice)
end

---@class mcp-tools.OpenQuestion a copy
---@field id string
---@field tool string
---@field title string?
---@field host string
---@field client { name: string?, version: string? }
---@field session string?
---@field reason string? why approval is required
---@field args table
---@field files string[] files that the arguments name
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

--- Returns the open questions, oldest first, including those that only the client is asked.
---@return mcp-tools.OpenQuestion[]
function M.list()
  return vim.tbl_map(copy, questions.list())
end

--- Returns the question on the screen.
---@return mcp-tools.OpenQuestion?
function M.current()
  local question = questions.current()
  return question and copy(question)
end

--- Returns the number of questions that wait for the user, for example for a statusline. Questions that only the
--- client is asked are not counted.
---@return integer
function M.count()
  return questions.count()
end

return M
