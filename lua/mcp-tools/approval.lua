--- Asking the person, one question at a time.
---
--- Receives: calls that need a yes.
--- Sends: the answer, or `access_denied` when nobody can be asked or nobody answers in time.
--- Does not know about: why a call needs a yes, what is done with it.

local config = require('mcp-tools.config')
local errors = require('mcp-tools.errors')
local gateway = require('mcp-tools.gateway')
local notify = require('mcp-tools.notify')

local M = {}

---@class mcp-tools.Question
---@field call mcp-tools.Call
---@field reason string
---@field answer fun(allowed: boolean, err: mcp-tools.Error?)
---@field timer uv.uv_timer_t?
---@field answered boolean?

---@type mcp-tools.Question[] the first is on screen
local open = {}

local show

---@param question mcp-tools.Question
---@param allowed boolean
---@param err mcp-tools.Error?
local function close(question, allowed, err)
  if question.answered then
    return -- the prompt was answered after the call had ended
  end
  question.answered = true
  question.timer:stop()
  question.timer:close()
  local first = open[1] == question
  for i, item in ipairs(open) do
    if item == question then
      table.remove(open, i)
      break
    end
  end
  question.answer(allowed, err)
  if first and open[1] then
    show(open[1])
  end
end

--- Arguments for the eye: one line, controls made visible, not endless.
local function summary(args)
  local text = vim.fn.strtrans(vim.inspect(args, { newline = ' ', indent = '' }))
  return vim.fn.strcharlen(text) > 200 and vim.fn.strcharpart(text, 0, 200) .. '…' or text
end

show = function(question)
  local call = question.call
  local prompt = ('%s wants to run %s %s (%s)'):format(
    call.client.name and ('A client that calls itself "%s"'):format(vim.fn.strtrans(call.client.name))
      or 'The host ' .. call.host,
    call.name,
    summary(call.args),
    question.reason
  )
  -- Later: the call came in a request, which must be answered before a prompt may hold the editor.
  vim.schedule(function()
    if question.answered then
      return
    end
    vim.ui.select({ 'Allow once', 'Deny' }, { prompt = prompt, kind = 'mcp-tools-approval' }, function(_, choice)
      if choice == 1 then
        close(question, true)
      else
        close(question, false, gateway.denied(call, 'the person at the editor said no'))
      end
    end)
  end)
end

--- Asks. Denies at once where no UI is attached.
---@param call mcp-tools.Call
---@param reason string why it needs a yes
---@param answer fun(allowed: boolean, err: mcp-tools.Error?)
function M.ask(call, reason, answer)
  if #vim.api.nvim_list_uis() == 0 then
    return answer(
      false,
      gateway.denied(call, ('it needs approval (%s) and the editor has no UI to ask in'):format(reason))
    )
  end
  local limit = config.get().limits.approvals
  if #open >= limit then
    local text = ('%d questions for approval are open (option limits.approvals); try again later'):format(#open)
    return answer(false, errors.new('busy', text))
  end
  call:move('ask')
  local question = { call = call, reason = reason, answer = answer, timer = vim.uv.new_timer() }
  local ms = config.get().approval.timeout
  call.answer_by = vim.uv.hrtime() + ms * 1e6
  question.timer:start(
    ms,
    0,
    vim.schedule_wrap(function()
      if not question.answered then
        notify.warn(('%s was not run: nobody answered within %d s'):format(call.name, ms / 1000))
        close(question, false, gateway.denied(call, ('nobody answered within %d s'):format(ms / 1000)))
      end
    end)
  )
  call:on_cancel(function()
    close(question, false)
  end)
  table.insert(open, question)
  if #open == 1 then
    show(question)
  end
end

--- How many questions are open.
---@return integer
function M.count()
  return #open
end

return M
