--- A question for approval: it is put to one or more askers, and the first answer ends it.

local answers = require('mcp-tools.approval.answers')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.privacy.read')
local sanitize = require('mcp-tools.util.sanitize')
local source = require('mcp-tools.registry.source')

local uv = vim.uv

local M = {}

--- Within this time after a question replaced another one, an answer may be meant for the earlier one.
local GUARD_NS = 400e6
--- Maximum number of times that a preview is computed until all its files have been read.
local MAX_ROUNDS = 10

---@alias mcp-tools.Choice
---| 'once'    # this call
---| 'review'  # this call, but only the hunks that the user accepts
---| 'session' # this tool in this session
---| 'always'  # this tool in this project
---| 'deny'    # not this call
---| 'never'   # not this tool in this project
---| 'silence' # nothing that needs approval in this session

---@alias mcp-tools.ApprovalState 'asked'|'shown'|'allowed'|'denied'|'unanswered'|'ended'

---@class mcp-tools.Asked
---@field call mcp-tools.Call
---@field args table a copy: the call runs with the arguments that were shown
---@field reason string
---@field targets mcp-tools.CallTarget[]
---@field choices mcp-tools.Choice[]
---@field root string
---@field files string[]? files that a permission for more than this call is limited to

--- `by`: who answered, "user" or "client"; without a choice, why nobody did. `reason`: the user's, for a denial.
---@alias mcp-tools.Answer fun(choice: mcp-tools.Choice?, err: mcp-tools.Error?, by: string?, reason: string?)
---@alias mcp-tools.Ask fun(asked: mcp-tools.Asked, answer: mcp-tools.Answer)

--- Shows questions to the user and answers them with `question:answer(choice)`.
---@class mcp-tools.Asker
---@field serial boolean it shows one question at a time, on the screen of the editor
---@field show fun(question: mcp-tools.Question)
---@field hide fun(question: mcp-tools.Question) also called if it was not shown, and after its own answer
---@field update? fun(question: mcp-tools.Question) the number of open questions has changed
---@field renew? fun(question: mcp-tools.Question) the content of the question has changed
---@field reveal? fun(question: mcp-tools.Question): boolean scrolls down; false if the end was on the screen
---@field refuse? fun(question: mcp-tools.Question): boolean shows `why_not`; false if the question is not visible

---@class mcp-tools.Question: mcp-tools.Asked
---@field id string of the call
---@field askers mcp-tools.Asker[] the first answer counts
---@field serial boolean one of the askers is serial
---@field open integer number of open serial questions
---@field shown_at integer? when a serial asker showed it, ns
---@field took_over boolean? an early answer may be meant for an earlier question, or for a review
---@field read boolean? its end was on the screen
---@field entered boolean? see mcp-tools.FloatSubject
---@field preview string|false|nil the change; false: the preview failed
---@field why_not string? why the last answer was refused
---@field is_answered boolean? by the user
---@field closed boolean?
---@field tell mcp-tools.Answer
---@field on_close fun(question: mcp-tools.Question, state: mcp-tools.ApprovalState)
local Question = {}
Question.__index = Question

---@class mcp-tools.ApprovalChoice
---@field name mcp-tools.Choice|'reason' 'reason' asks for a reason, then denies
---@field answer mcp-tools.Choice? default: the name
---@field key string
---@field text string
---@field long string

---@type mcp-tools.ApprovalChoice[]
local CHOICES = {
  { name = 'once', key = 'y', text = 'once', long = 'Allow once' },
  { name = 'review', key = 'r', text = 'review', long = 'Review the change hunk by hunk' },
  { name = 'deny', key = 'n', text = 'deny', long = 'Deny' },
  { name = 'reason', answer = 'deny', key = 'N', text = 'reason', long = 'Deny, and tell the assistant why' },
  { name = 'session', key = 's', text = 'session', long = 'Allow it in this session' },
  { name = 'always', key = 'a', text = 'always', long = 'Always allow it in this project' },
  { name = 'never', key = 'X', text = 'never', long = 'Never allow it in this project' },
  { name = 'silence', key = 'S', text = 'silence', long = 'Deny, and deny everything else in this session' },
}

--- Returns what a permission for more than this call covers.
---@param question mcp-tools.Question
---@param name string of the tool
---@return string
local function coverage_of(question, name)
  local files = #(question.files or {})
  return files == 0 and 'every ' .. name or ('%s of %s'):format(name, files == 1 and 'this file' or 'these files')
end

--- Returns the texts that depend on the question: on its client, its files, and whether permissions are per command.
---@param question mcp-tools.Question
---@param name string of the tool
---@return table<string, { text: string?, long: string }>
local function specific_texts(question, name)
  local call, coverage, out = question.call, coverage_of(question, name), {}
  out.session = { long = ('Allow %s in this session'):format(coverage) }
  if not call.session then
    out.session.long = ("Allow %s by '%s' until Neovim quits"):format(
      coverage,
      sanitize.line(call.client.name or call.host)
    )
  end
  out.always = { text = 'always all', long = ('Always allow %s in this project'):format(coverage) }
  if (call.definition or {}).always_ignores then
    out.always = { text = 'always this', long = ('Always allow this exact %s in this project'):format(name) }
  elseif question.files then
    out.always = { text = 'always this file', long = ('Always allow %s'):format(coverage) }
  end
  out.never = { long = ('Never allow %s in this project'):format(name) }
  return out
end

--- When the user began to type the current command line, ns.
local typing_since ---@type integer?
local watched = false

local function in_command_line()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == 'c'
end

local function watch_command_line()
  if watched then
    return
  end
  watched = true
  if in_command_line() then
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
        if not in_command_line() then
          typing_since = nil
        end
      end)
    end,
  })
end

--- Calls the `preview` function of the definition.
---@param question mcp-tools.Question
---@param again? fun(err: mcp-tools.Error?)
---@return string|false
local function read_preview(question, again)
  local definition = question.call.definition
  local ok, text, err = errors.try(definition.preview, vim.deepcopy(question.args), again, question.call)
  if ok and text == nil and errors.is(err) then
    text = require('mcp-tools.editor.edit.approved').WILL_FAIL .. err.message -- start-up cost
  end
  if ok and type(text) == 'string' then
    return text
  end
  log.error('the preview of %s failed: %s', definition.name, vim.inspect(text))
  return false
end

--- Returns the callback for a preview that is completed later: it updates the question or, if the call would fail, ends
--- it. A question about files outside the project is not ended: the client must learn nothing about them before the
--- answer.
---@param question mcp-tools.Question
---@param rounds? integer how often it may still be called
---@return fun(err: mcp-tools.Error?)
local function renewer(question, rounds)
  rounds = rounds or MAX_ROUNDS
  local is_waiting = false
  local function renew()
    if not question.closed then
      question.preview = read_preview(question, rounds > 1 and renewer(question, rounds - 1) or nil)
      question:renew()
    end
  end
  return vim.schedule_wrap(function(err)
    local outside = vim.iter(question.targets):any(function(target)
      return target.path ~= nil and (target.unclear or not paths.inside(target.path, question.root))
    end)
    if question.closed then
      return
    elseif err and not outside then
      return question:close('ended', nil, err, 'preview')
    elseif not is_waiting then
      is_waiting = true
      read.once_read(renew) -- several files are read at once
    end
  end)
end

--- Returns the preview, computed once for each question. Previews of untrusted definitions are ignored.
---@param question mcp-tools.Question
---@return string? text, string? fault
function M.preview_of(question)
  local definition = question.call.definition
  if not definition.preview or not source.is_trusted(definition, question.root) then
    return nil
  elseif question.preview == nil then
    question.preview = read_preview(question, renewer(question))
  end
  return question.preview or nil, not question.preview and 'its preview failed (:McpTools log)' or nil
end

--- Computes the preview again and returns whether it differs from the one that was shown.
---@param question mcp-tools.Question
---@return boolean
local function has_changed(question)
  if not question.preview then
    return false -- none was shown
  end
  local before = question.preview
  question.preview = read_preview(question, renewer(question))
  return question.preview ~= before
end

--- Creates a question that was not asked yet.
---@param asked mcp-tools.Asked
---@param askers mcp-tools.Asker[] at least one
---@param tell mcp-tools.Answer called once
---@return mcp-tools.Question
function M.new(asked, askers, tell)
  local question = vim.tbl_extend('error', asked, { id = asked.call.id, askers = askers, tell = tell, open = 1 })
  question.serial = vim.iter(askers):any(function(asker)
    return asker.serial
  end)
  return setmetatable(question, Question)
end

--- Fires `User McpToolsApproval`. Its data is a copy.
---@param state mcp-tools.ApprovalState
---@param choice? mcp-tools.Choice
---@param by? 'user'|'client'
function Question:announce(state, choice, by)
  local call = self.call
  local files = vim.tbl_map(function(target)
    return target.path or target.given
  end, self.targets)
  local data = {
    id = self.id,
    state = state,
    choice = choice,
    by = choice and by,
    tool = call.name,
    title = call.definition and call.definition.title,
    host = call.host,
    client = vim.deepcopy(call.client),
    session = call.session,
    reason = self.reason,
    args = vim.deepcopy(self.args),
    files = files,
    choices = vim.deepcopy(self.choices),
  }
  -- Later: the call came in a request, which must be answered first.
  vim.schedule(function()
    local opts = { pattern = 'McpToolsApproval', modeline = false, data = data }
    local ok, err = pcall(vim.api.nvim_exec_autocmds, 'User', opts)
    if not ok then
      log.error('an autocommand for User McpToolsApproval failed: %s', err)
    end
  end)
end

--- Returns the answers that can be given, in the order in which they are shown.
---@return mcp-tools.ApprovalChoice[]
function Question:offered()
  local list, texts = {}, specific_texts(self, sanitize.line(self.call.name))
  for _, choice in ipairs(CHOICES) do
    if vim.list_contains(self.choices, choice.answer or choice.name) then
      table.insert(list, (vim.tbl_extend('force', choice, texts[choice.name] or {})))
    end
  end
  return list
end

--- Calls a method of an asker and logs its errors.
---@param asker mcp-tools.Asker
---@param what 'show'|'hide'|'update'|'renew'|'reveal'|'refuse'
---@return boolean ok
---@return any value
function Question:call_asker(asker, what)
  if not asker[what] then
    return true
  end
  local ok, value = xpcall(asker[what], debug.traceback, self)
  if not ok then
    log.error('a question for approval of %s: %s failed: %s', self.call.name, what, value)
  end
  return ok, value
end

--- Asks the serial askers, or the others.
---@param serial boolean
function Question:ask(serial)
  for _, asker in ipairs(vim.list_slice(self.askers)) do
    if asker.serial == serial and not self.closed and not self:call_asker(asker, 'show') then
      self:give_up(asker, 'the user could not be asked')
    end
  end
end

--- Shows the question on the screen.
---@param took_over boolean an early answer may be meant for an earlier question, or for a review
function Question:show(took_over)
  watch_command_line()
  self.shown_at, self.took_over = uv.hrtime(), took_over
  self:announce('shown')
  self:ask(true)
end

--- Updates the number of open questions.
---@param count integer
function Question:set_open(count)
  if self.open == count then
    return
  end
  self.open = count
  for _, asker in ipairs(self.askers) do
    self:call_asker(asker, 'update')
  end
end

--- Ends the question. Later answers are ignored.
---@param state mcp-tools.ApprovalState
---@param choice? mcp-tools.Choice
---@param err? mcp-tools.Error
---@param by? string who answered, or why nobody did
---@param reason? string why the user denied the call
function Question:close(state, choice, err, by, reason)
  if self.closed then
    return
  end
  self.closed = true
  self.on_close(self, state)
  self:announce(state, choice, by)
  -- Before the call runs, which may ask something itself.
  for _, asker in ipairs(self.askers) do
    self:call_asker(asker, 'hide')
  end
  self.tell(choice, err, by, reason)
end

--- The content has changed, so it must be read again.
function Question:renew()
  self.read = nil
  for _, asker in ipairs(self.askers) do
    self:call_asker(asker, 'renew')
  end
end

--- Refuses an answer. The reason is shown with the question, or returned if the question is not visible.
---@param why string
---@return false taken
---@return string? why_not
function Question:refuse(why)
  self.why_not = why
  for _, asker in ipairs(self.askers) do
    local _, is_shown = self:call_asker(asker, 'refuse')
    if is_shown then
      return false
    end
  end
  return false, why
end

--- Answers the question. Approval is refused if the change is no longer the one that was shown.
---@param choice mcp-tools.Choice
---@param by? 'user'|'client' default: 'user'
---@param reason? string why the call is denied, for the assistant
---@return boolean taken
---@return string? why_not unless it is shown with the question
function Question:answer(choice, by, reason)
  if self.closed then
    return false, 'this question is no longer open'
  elseif not vim.list_contains(self.choices, choice) then
    return false, ("this question cannot be answered with '%s'"):format(choice)
  elseif answers.YES[choice] and by ~= 'client' and has_changed(self) then
    self:renew()
    return self:refuse('The change is different now. Review it, then answer again.')
  end
  if by ~= 'client' and choice ~= 'review' then -- no diff was shown to the client; a review shows it again
    self.call.approved_preview = self.preview or nil
  end
  self.is_answered = by ~= 'client'
  self:close(answers.YES[choice] and 'allowed' or 'denied', choice, nil, by or 'user', reason)
  return true
end

--- Answers the question on the screen, by key or command. Refuses answers that may be meant for another question, and
--- approval before the end of the question was on the screen.
---@param choice mcp-tools.Choice
---@param reason? string see `answer`
---@return boolean taken
---@return string? why_not unless it is shown with the question
function Question:answer_shown(choice, reason)
  local too_soon = self.took_over and uv.hrtime() - self.shown_at < GUARD_NS
  if too_soon or typing_since and typing_since < self.shown_at then
    self.took_over = false
    typing_since = nil
    return self:refuse('The question has just changed. Read it, then answer again.')
  end
  -- A review shows the whole change again.
  for _, asker in ipairs(answers.YES[choice] and choice ~= 'review' and self.askers or {}) do
    local ok, more = self:call_asker(asker, 'reveal')
    if more or not ok then
      return self:refuse('more is shown now: read it, then press again')
    end
  end
  return self:answer(choice, nil, reason)
end

--- Asks the user why the call is denied, then denies it. Without a reason the question stays open.
---@param stays_open? fun() called if no reason was given
function Question:deny_because(stays_open)
  vim.ui.input({ prompt = 'Reason for the assistant (empty: back to the question): ' }, function(reason)
    if reason and vim.trim(reason) ~= '' then
      local ok, why = self:answer('deny', nil, vim.trim(reason))
      if ok then
        notify.info('denied; the assistant gets the reason')
      else
        notify.warn(why)
      end
    elseif stays_open and not self.closed then
      stays_open()
    end
  end)
end

--- Removes an asker that cannot ask. Without any asker left, the call is denied.
---@param asker mcp-tools.Asker
---@param why string
function Question:give_up(asker, why)
  self.askers = vim.tbl_filter(function(other)
    return other ~= asker
  end, self.askers)
  if #self.askers == 0 then
    self:close('unanswered', nil, answers.denial(self.call, why, 'unanswered'), 'nobody to ask')
  end
end

--- Notifies the user of a call that was denied because nobody answered.
---@param call mcp-tools.Call
---@param what string what happened, after the name of the tool
function M.notify_denied(call, what)
  notify.warn(('%s %s'):format(sanitize.line(call.name), what), 'Ask the assistant to try again')
end

--- Returns whether a question was closed so recently that an answer to the next one may be meant for it.
---@param closed_at integer ns
---@return boolean
function M.is_recent(closed_at)
  return uv.hrtime() - closed_at < GUARD_NS
end

return M
