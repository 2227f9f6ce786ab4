--- What a question for approval can be answered with, in the order in which it is offered.
---
--- Receives: a question.
--- Sends: its choices, each with a key, a word and a sentence.
--- Does not know about: what a choice does.

---@class mcp-tools.ApprovalChoice
---@field name mcp-tools.Choice
---@field key string
---@field text string
---@field long string

---@type mcp-tools.ApprovalChoice[]
local ALL = {
  { name = 'once', key = 'y', text = 'once', long = 'Allow once' },
  { name = 'review', key = 'r', text = 'review', long = 'Review what it changes, hunk by hunk' },
  { name = 'deny', key = 'n', text = 'deny', long = 'Deny' },
  { name = 'session', key = 's', text = 'session', long = 'Allow in this session' },
  { name = 'always', key = 'a', text = 'always', long = 'Always allow in this project' },
  { name = 'never', key = 'N', text = 'never', long = 'Never allow in this project' },
  { name = 'silence', key = 'S', text = 'silence', long = 'Deny, and ask no more for this session' },
}

---@param question mcp-tools.Question
---@return mcp-tools.ApprovalChoice[]
return function(question)
  return vim.tbl_filter(function(choice)
    return vim.list_contains(question.choices, choice.name)
  end, ALL)
end
