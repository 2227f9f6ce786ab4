--- Approval in a floating window.

local Window = require('mcp-tools.ui.approval.window')
local choices_of = require('mcp-tools.ui.approval.choices')
local config = require('mcp-tools.config')
local keepers = require('mcp-tools.ui.window.float.keeper')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')

local M = { serial = true }

---@type mcp-tools.FloatKeeper
local keeper

---@param shown mcp-tools.ApprovalWindow
---@param choice mcp-tools.Choice|'reason'
local function answer(shown, choice)
  if choice == 'reason' then
    return shown.question:deny_because()
  end
  local ok, why = shown.question:answer_shown(choice)
  if not ok and why then
    notify.warn(why)
  end
end

---@param question mcp-tools.Question
---@return mcp-tools.FloatKeys
local function keys_of(question)
  local keys = {}
  for _, choice in ipairs(choices_of(question)) do
    keys[choice.key] = { 'n', keeper:key(answer, choice.name), choice.long }
  end
  for _, key in ipairs({ 'q', '<Esc>' }) do
    keys[key] = {
      'n',
      keeper:key(function()
        keeper:leave()
      end),
      'later: the question stays open',
    }
  end
  return keys
end

keeper = keepers.new({
  name = 'approval',
  open = function(question, opened)
    return Window.open(question, keys_of(question), opened)
  end,
  may_enter = function()
    return config.get().ui.approval_focus
  end,
  closed = function(question)
    if question:answer('deny') then
      notify.info(('%s was denied: its window was closed'):format(sanitize.line(question.call.name)))
    end
  end,
})

---@param question mcp-tools.Question
function M.show(question)
  keeper:show(question)
end

---@param question mcp-tools.Question
function M.hide(question)
  keeper:hide(question)
end

function M.update()
  keeper:sync_later()
end

--- Shows it anew; who is in its window stays there.
---@param question mcp-tools.Question
function M.renew(question)
  if keeper:on_screen(question) then
    keeper:renew()
  end
end

--- Shows more of a question that was not on the screen whole.
---@param question mcp-tools.Question
---@return boolean more false when all of it was
function M.reveal(question)
  local shown = keeper:on_screen(question) --[[@as mcp-tools.ApprovalWindow?]]
  if not shown then
    return not question.read
  elseif shown:unread() == 0 then
    return false
  end
  shown:scroll()
  keeper:sync_later()
  return true
end

--- Says in the frame why the answer was not taken.
---@param question mcp-tools.Question
---@return boolean said
function M.refuse(question)
  keeper:sync_later()
  return keeper:on_screen(question) ~= nil
end

--- Enters the window, when there is one.
function M.focus()
  keeper:focus()
end

return M
