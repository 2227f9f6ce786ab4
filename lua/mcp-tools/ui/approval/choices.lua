--- The answers to a question for approval, in the order in which they are offered.

local sanitize = require('mcp-tools.util.sanitize')

---@class mcp-tools.ApprovalChoice
---@field name mcp-tools.Choice|'reason' 'reason' asks for a reason, then answers 'deny'
---@field answer mcp-tools.Choice? what it answers, if that is not its name
---@field key string
---@field text string
---@field long string

---@type mcp-tools.ApprovalChoice[]
local ALL = {
  { name = 'once', key = 'y', text = 'once', long = 'Allow once' },
  { name = 'review', key = 'r', text = 'review', long = 'Review what it changes, hunk by hunk' },
  { name = 'deny', key = 'n', text = 'deny', long = 'Deny' },
  { name = 'reason', answer = 'deny', key = 'N', text = 'deny, why', long = 'Deny, and tell the assistant why' },
  { name = 'session', key = 's', text = 'session', long = 'Allow every %s in this session' },
  { name = 'always', key = 'a', text = 'always', long = 'Always allow every %s in this project' },
  { name = 'never', key = 'X', text = 'never', long = 'Never allow %s in this project' },
  { name = 'silence', key = 'S', text = 'silence', long = 'Deny, and deny all further questions of this session' },
}

--- What differs where a connection has no session, and where "always" is about one call.
---@param question mcp-tools.Question
---@return table<string, { text: string?, long: string }>
local function special(question)
  local call, out = question.call, {}
  if not call.session then
    local who = sanitize.line(call.client.name or call.host)
    out.session = { long = ("Allow every %%s of '%s' until Neovim quits"):format((who:gsub('%%', '%%%%'))) }
  end
  if (call.definition or {}).always_for then
    out.always = { text = 'always this', long = 'Always allow this exact %s in this project' }
  end
  return out
end

---@param question mcp-tools.Question
---@return mcp-tools.ApprovalChoice[]
return function(question)
  local list, other, name = {}, special(question), sanitize.line(question.call.name)
  for _, choice in ipairs(ALL) do
    if vim.list_contains(question.choices, choice.answer or choice.name) then
      local made = vim.tbl_extend('force', choice, other[choice.name] or {})
      made.long = made.long:format(name)
      table.insert(list, made)
    end
  end
  return list
end
