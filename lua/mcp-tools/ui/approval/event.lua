--- Event `User McpToolsApproval`.
---
--- What it hands out is a copy.

local log = require('mcp-tools.log')

---@alias mcp-tools.ApprovalState 'asked'|'shown'|'allowed'|'denied'|'unanswered'|'ended'

---@param question mcp-tools.Question
---@param state mcp-tools.ApprovalState
---@param choice? mcp-tools.Choice
---@param by? 'person'|'client'
return function(question, state, choice, by)
  local call = question.call
  local files = vim.tbl_map(function(target)
    return target.path or target.given
  end, question.targets)
  local data = {
    id = question.id,
    state = state,
    choice = choice,
    by = choice and by,
    tool = call.name,
    title = call.definition and call.definition.title,
    host = call.host,
    client = vim.deepcopy(call.client),
    session = call.session,
    reason = question.reason,
    args = vim.deepcopy(question.args),
    files = files,
    choices = vim.deepcopy(question.choices),
  }
  -- Later, because the call came in a request, which must be answered first.
  vim.schedule(function()
    local opts = { pattern = 'McpToolsApproval', modeline = false, data = data }
    local ok, err = pcall(vim.api.nvim_exec_autocmds, 'User', opts)
    if not ok then
      log.error('an autocommand for User McpToolsApproval failed: %s', err)
    end
  end)
end
