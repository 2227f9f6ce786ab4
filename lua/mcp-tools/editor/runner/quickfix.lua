--- Failures of a run in the quickfix list, which is filled and not opened.
---
--- Receives: a run that has ended.
--- Sends: entries. A list of ours is replaced; what the person had is one `:colder` away.
--- Does not know about: how the tests were run.

local M = {}

local TITLE = 'mcp-tools: tests'

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
  local is_ours = vim.startswith(vim.fn.getqflist({ title = 0 }).title or '', TITLE)
  if #items == 0 and not is_ours then
    return nil
  end
  local title = ('%s (%s)'):format(TITLE, run.plan.runner)
  vim.fn.setqflist({}, is_ours and 'r' or ' ', { title = title, items = items })
  return #items
end

return M
