--- Asking the person: which questions are open, which one is on screen, what ends them.
---
--- Receives: questions of the gateway, answers of windows, commands, mappings and other plugins.
--- Sends: the answer, or `access_denied` when nobody can be asked or nobody answers in time; `User McpToolsApproval`.
--- Does not know about: why a call needs a yes, what is done with it, what a question looks like.

local config = require('mcp-tools.config')
local errors = require('mcp-tools.errors')
local gateway = require('mcp-tools.gateway')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')

local M = {}

--- An answer by key or command this soon after one question took the place of another may be meant for that other.
local GUARD_NS = 400e6

--- Puts a question to the person somewhere.
---@class mcp-tools.Asker
---@field serial boolean it shows one question at a time
---@field show fun(question: mcp-tools.Question)
---@field hide fun(question: mcp-tools.Question) also when it was never shown
---@field update? fun() how many questions are open has changed

---@class mcp-tools.Question: mcp-tools.Asked
---@field id string the call's
---@field answer mcp-tools.Answer
---@field timer uv.uv_timer_t
---@field askers mcp-tools.Asker[]
---@field shown_at integer? ns, on the screen of the editor
---@field took_over boolean? another question was there a moment before
---@field closed boolean?

---@type mcp-tools.Question[] the first is on screen
local open = {}
local typing_since ---@type integer? ns, since when the command line is open
local last_closed_at = 0

--- Who asks, by the names in the options. A module is loaded when it is first needed.
---@type table<string, fun(): mcp-tools.Asker>
M.askers = {
  float = function()
    return require('mcp-tools.ui.approval')
  end,
  select = function()
    return require('mcp-tools.ui.approval_select')
  end,
  event = function() -- somebody else shows it, by `User McpToolsApproval`
    return { serial = true, show = function() end, hide = function() end }
  end,
}

---@return mcp-tools.Asker[]
local function askers()
  -- `approval.ask_in` adds the client here; until it can be asked, the editor asks.
  return { M.askers[config.get().ui.approval]() }
end

---@alias mcp-tools.ApprovalState 'asked'|'shown'|'allowed'|'denied'|'unanswered'|'ended'

---@param question mcp-tools.Question
---@param state mcp-tools.ApprovalState
---@param choice? mcp-tools.Choice
local function emit(question, state, choice)
  local call = question.call
  local files = vim.tbl_map(function(place)
    return place.path or place.given
  end, question.places)
  local data = {
    id = question.id,
    state = state,
    choice = choice,
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

local watched = false

--- While the person types a command, they may mean the question that they saw when they began.
local function watch_command_line()
  if watched then
    return
  end
  watched = true
  if vim.api.nvim_get_mode().mode:sub(1, 1) == 'c' then
    typing_since = 0
  end
  local group = vim.api.nvim_create_augroup('mcp-tools.approval', {})
  vim.api.nvim_create_autocmd('CmdlineEnter', {
    group = group,
    callback = function()
      typing_since = vim.uv.hrtime()
    end,
  })
  vim.api.nvim_create_autocmd('CmdlineLeave', {
    group = group,
    callback = function()
      vim.schedule(function() -- the command runs before that
        if vim.api.nvim_get_mode().mode:sub(1, 1) ~= 'c' then
          typing_since = nil
        end
      end)
    end,
  })
end

---@param question mcp-tools.Question
local function show(question)
  -- Later: the call came in a request, which must be answered before a prompt may hold the editor.
  vim.schedule(function()
    if question.closed or question.shown_at then
      return
    end
    watch_command_line()
    question.shown_at = vim.uv.hrtime()
    question.took_over = question.shown_at - last_closed_at < GUARD_NS
    emit(question, 'shown')
    for _, asker in ipairs(question.askers) do
      if asker.serial then
        asker.show(question)
      end
    end
  end)
end

---@param question mcp-tools.Question
---@param state mcp-tools.ApprovalState
---@param choice mcp-tools.Choice?
---@param err mcp-tools.Error?
---@param by string?
local function close(question, state, choice, err, by)
  if question.closed then
    return -- answered after the call had ended
  end
  question.closed = true
  question.timer:stop()
  question.timer:close()
  local first = open[1] == question
  for i, item in ipairs(open) do
    if item == question then
      table.remove(open, i)
      break
    end
  end
  if first then
    last_closed_at = vim.uv.hrtime()
  end
  emit(question, state, choice)
  question.answer(choice, err, by)
  for _, asker in ipairs(question.askers) do
    asker.hide(question)
  end
  if open[1] then
    show(open[1])
  end
end

--- Asks. Denies at once where no UI is attached.
---@param asked mcp-tools.Asked
---@param answer mcp-tools.Answer
function M.ask(asked, answer)
  local call, options = asked.call, config.get()
  if #vim.api.nvim_list_uis() == 0 then
    local why = ('it needs approval (%s) and the editor has no UI to ask in'):format(asked.reason)
    return answer(nil, gateway.denied(call, why), 'no UI')
  end
  if #open >= options.limits.approvals then
    local text = ('%d questions for approval are open (option limits.approvals); try again later'):format(#open)
    return answer(nil, errors.new('busy', text), 'busy')
  end
  call:move('ask')
  local question = vim.tbl_extend('error', asked, { id = call.id, answer = answer, askers = askers() })
  question.timer = assert(vim.uv.new_timer())
  local ms = options.approval.timeout
  call.answer_by = vim.uv.hrtime() + ms * 1e6
  question.timer:start(
    ms,
    0,
    vim.schedule_wrap(function()
      if not question.closed then
        local why = ('nobody answered within %d s'):format(ms / 1000)
        notify.warn(
          ('%s was not run: %s; `:McpTools approve` lets it run when it is tried again'):format(call.name, why)
        )
        close(question, 'unanswered', nil, gateway.denied(call, why), 'timeout')
      end
    end)
  )
  call:on_cancel(function()
    close(question, 'ended', nil, nil, 'cancelled')
  end)
  table.insert(open, question)
  emit(question, 'asked')
  for _, asker in ipairs(question.askers) do
    if not asker.serial then
      asker.show(question)
    end
  end
  if question == open[1] then
    return show(question)
  end
  for _, asker in ipairs(open[1].askers) do
    if asker.update then
      asker.update()
    end
  end
end

--- The question on screen.
---@return mcp-tools.Question?
function M.current()
  return open[1] and open[1].shown_at and open[1] or nil
end

--- Every open question, the one on screen first.
---@return mcp-tools.Question[]
function M.list()
  return vim.list_slice(open)
end

--- How many questions are open.
---@return integer
function M.count()
  return #open
end

local YES = { once = true, session = true, always = true }

--- Answers one question, whichever is on screen.
---@param id string the call's, as `User McpToolsApproval` names it
---@param choice mcp-tools.Choice
---@return boolean answered
---@return string? why_not
function M.answer(id, choice)
  for _, question in ipairs(open) do
    if question.id == id then
      if not vim.list_contains(question.choices, choice) then
        return false, ('this question cannot be answered by "%s"'):format(choice)
      end
      close(question, YES[choice] and 'allowed' or 'denied', choice)
      return true
    end
  end
  return false, 'this question is no longer open'
end

--- Answers the question on screen, for keys and commands. Refuses when the person may have meant another one.
---@param choice mcp-tools.Choice
---@return boolean answered
---@return string? why_not
function M.answer_current(choice)
  local question = M.current()
  if not question then
    return false, 'nothing is being asked'
  end
  local now = vim.uv.hrtime()
  if typing_since and typing_since < question.shown_at or question.took_over and now - question.shown_at < GUARD_NS then
    question.took_over = false
    typing_since = nil
    return false, 'the question has just changed: look at it, then answer again'
  end
  return M.answer(question.id, choice)
end

return M
