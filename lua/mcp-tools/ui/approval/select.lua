--- Approval by `vim.ui.select`.
---
--- Receives: a question for approval.
--- Sends: it to `vim.ui.select`, for people whose picker is better than our window.
--- Does not know about: what the answer means.
---
--- The one that comes with Neovim holds the editor until it is answered.

local choices_of = require('mcp-tools.ui.approval.choices')
local text = require('mcp-tools.ui.approval.text')
local sanitize = require('mcp-tools.util.sanitize')

local M = { serial = true }

local MAX_ARGS = 200

--- Arguments for the eye: one line, not endless.
---@param args table
---@return string
local function summary(args)
  local all = sanitize.line(vim.inspect(args, { newline = ' ', indent = '' }))
  return vim.fn.strcharlen(all) > MAX_ARGS and vim.fn.strcharpart(all, 0, MAX_ARGS) .. '…' or all
end

---@param question mcp-tools.Question
function M.show(question)
  local call = question.call
  local who = call.client.name and 'A client that ' .. text.client(call, true)
    or 'The host ' .. sanitize.line(call.host)
  local prompt = ('%s wants to run %s %s (%s)'):format(
    who,
    sanitize.line(call.name),
    summary(question.args),
    sanitize.line(question.reason)
  )
  local choices = choices_of(question)
  vim.ui.select(choices, {
    prompt = prompt,
    kind = 'mcp-tools-approval',
    format_item = function(choice)
      return choice.long
    end,
  }, function(choice)
    local name = type(choice) == 'table' and choice.name
    if not question:answer(name) then
      question:answer('deny') -- put away, or not one of the items, is no
    end
  end)
end

--- A picker cannot be closed from here; an answer that comes later is dropped.
function M.hide() end

return M
