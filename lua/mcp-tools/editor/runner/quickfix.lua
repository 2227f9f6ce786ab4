--- Failures of a run in the quickfix list, which is filled and not opened.
---
--- Receives: a run that has ended.
--- Sends: entries. A list of ours is replaced; what the person had is one `:colder` away.
--- Does not know about: how the tests were run.

local stack = require('mcp-tools.editor.quickfix.stack')

local M = {}

local KIND = 'mcp-tools: tests'

--- Fills the list.
---@param run mcp-tools.runner.Run
---@return integer? entries nil: it was left as it is
function M.fill(run)
  local items = {}
  for _, failure in ipairs(run.results.failures) do
    if failure.path then
      local message = failure.message:match('[^\n]*')
      table.insert(items, {
        filename = failure.path,
        lnum = failure.line or 1,
        type = 'E',
        text = run.from_output and message or ('%s: %s'):format(failure.id, message),
      })
    end
  end
  if #items == 0 and not stack.has_own({}, KIND) then
    return nil
  end
  local title = ('%s (%s)'):format(KIND, run.plan.runner)
  stack.new({}, { title = title, items = items }, KIND, 1)
  return #items
end

return M
