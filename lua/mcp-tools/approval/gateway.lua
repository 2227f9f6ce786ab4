--- Decides whether a call may run, in the same order for every caller.
---
--- The first of these decides: (1) the user's rules, (2) access to files, (3) earlier decisions, (4) the definition's
--- `needs_approval`, (5) its annotations, (6) `approval.default`. A "deny" of 1, 2 or 3 always wins. An error in any
--- step denies the call.

local Grants = require('mcp-tools.approval.grants')
local answers = require('mcp-tools.approval.answers')
local canonical_json = require('mcp-tools.util.canonical_json')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.privacy.read')
local review = require('mcp-tools.editor.review')
local rules = require('mcp-tools.approval.rules')
local sanitize = require('mcp-tools.util.sanitize')
local sources = require('mcp-tools.registry.source')
local targets = require('mcp-tools.approval.targets')

local M = {}

---@class mcp-tools.Decision
---@field action 'allow'|'ask'|'deny'
---@field by string what decided, for the audit log: an option, "files", "ledger", …
---@field reason string for the user, or for the client if denied
---@field targets mcp-tools.CallTarget[]? files and buffers that the arguments name
---@field fault string? why earlier decisions are unknown

--- The final result of a decision, after a question if there was one.
---@class mcp-tools.Ruling
---@field allowed boolean
---@field by string who or what decided, for the audit log
---@field err mcp-tools.Error? if it is denied; nil if the call has ended meanwhile

---@class mcp-tools.Gateway
---@field ask mcp-tools.Ask
---@field root fun(): string
---@field ledger mcp-tools.Ledger
---@field grants mcp-tools.Grants
local Gateway = {}
Gateway.__index = Gateway

--- Creates a gateway.
---@param opts { ask: mcp-tools.Ask, root: (fun(): string), ledger: mcp-tools.Ledger }
---@return mcp-tools.Gateway
function M.new(opts)
  return setmetatable({ ask = opts.ask, root = opts.root, ledger = opts.ledger, grants = Grants.new() }, Gateway)
end

--- Returns the resolved project root, by which decisions are stored.
---@return string root
function Gateway:project()
  return paths.real_root(self.root())
end

local NOTHING = {}

--- Answers that apply to later calls, until the user changes them with `:McpTools trust`.
local LASTING = { session = true, always = true, never = true }

--- What raises a question that a review can replace. Explicit rules and files outside the project still raise one.
local BY_DEFINITION = { needs_approval = true, annotations = true, ['approval.default'] = true }

--- Decides by the rules alone, without a question.
---@param call mcp-tools.Call
---@return mcp-tools.Decision
function Gateway:judge(call)
  local root = call.project or self:project()
  local own = rules.by_rules(call, root)
  if own and own.action == 'deny' then
    return own
  end
  local source = call.definition.source
  local args, uri = call.args, nil
  if call.kind and call.kind.named then
    args, uri = call.kind.named(call)
  end
  local named = uri and targets.of_resource(uri, args) or targets.by(args, source ~= nil and source.origin == 'bundled')
  local denied, outside = rules.by_targets(named, root)
  if denied then
    return denied
  end
  local annotations = call.definition.annotations
  if call.definition.agent and annotations and annotations.read_only then
    outside = nil -- an agent may work in every directory that the editor has open
  end
  local verdict, fault = self.ledger:verdict(root, call.definition)
  if verdict and verdict.level == 'denied' then
    return { action = 'deny', by = 'ledger', reason = 'you always deny it (see :McpTools trust)' }
  end
  local decision = own
    or rules.by_memory(call, verdict or NOTHING, self.grants:of_session(call) or NOTHING, outside, named)
    or rules.by_definition(call, root)
  if fault and decision.action == 'allow' then
    -- The unreadable file may contain a "never".
    decision = { action = 'ask', by = 'ledger', reason = 'your earlier decisions cannot be read: ' .. fault }
    decision.fault = fault
  end
  decision.targets = named
  return decision
end

--- Returns the files that a permission is limited to; nil if it is for the tool.
---@param decision mcp-tools.Decision
---@return string[]?
local function files_of(decision)
  return decision.by == 'files' and vim.tbl_map(function(target)
    return target.path
  end, decision.targets) or nil
end

--- Allows permanently: this call if there is a key, the tool with these files, or the tool.
---@param root string
---@param definition mcp-tools.Definition
---@param files string[]? files outside the project
---@param key string? from `rules.call_key`
---@return boolean ok, string? err
function Gateway:allow_always(root, definition, files, key)
  local wanted = key and 'calls' or files and 'files' or 'trusted'
  return self.ledger:set(root, definition, wanted, files, key and { key })
end

--- Notifies the user of an answer that applies to later calls, and of the way to undo it.
---@param call mcp-tools.Call
---@param choice mcp-tools.Choice
---@param files string[]?
local function confirm(call, choice, files)
  local name = sanitize.line(call.name)
  local undo = ('Undo: :McpTools trust %s untrusted'):format(name)
  if choice == 'never' then
    name = name .. ' is never allowed here'
  elseif choice == 'session' then
    name = ('%s is allowed in this session%s'):format(name, files and ' (this file)' or '')
  elseif rules.call_key(call.definition, call.args) then
    name = ('this %s is always allowed here'):format(name)
  else
    name = ('%s is always allowed %s'):format(name, files and 'with this file' or 'here')
  end
  notify.info(name, undo)
end

--- Stores an answer that applies to later calls.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@param choice mcp-tools.Choice
---@param root string
function Gateway:remember(call, decision, choice, root)
  local files = files_of(decision)
  local ok, err = true, nil
  if choice == 'session' then
    self.grants:allow_session(call, files)
  elseif choice == 'always' then
    ok, err = self:allow_always(root, call.definition, files, (rules.call_key(call.definition, call.args)))
  elseif choice == 'never' then
    ok, err = self.ledger:set(root, call.definition, 'denied')
  elseif choice == 'silence' then
    self.grants:silence(call)
  end
  if ok and LASTING[choice] then
    confirm(call, choice, files)
  elseif not ok then
    notify.error(('your decision on %s could not be saved and applies only to this call: %s'):format(call.name, err))
  end
end

---@param by string
---@return mcp-tools.Ruling
local function yes(by)
  return { allowed = true, by = by }
end

---@param by string
---@param err? mcp-tools.Error
---@return mcp-tools.Ruling
local function no(by, err)
  return { allowed = false, by = by, err = err }
end

--- Runs one step of a decision under xpcall and answers with its ruling. If the step throws, the call is denied. The
--- tool runs outside of the xpcall.
---@param call mcp-tools.Call
---@param answer fun(allowed: boolean, err: mcp-tools.Error?)
---@param step fun(...): mcp-tools.Ruling? nil while a question is open, or if it is too late
---@param ... any arguments of `step`
local function conclude(call, answer, step, ...)
  local ok, ruling = xpcall(step, debug.traceback, ...)
  if not ok then
    log.error('%s is denied, because the decision failed: %s', call.name, ruling)
    ruling = no('error', answers.denial(call, 'the decision failed', 'failed'))
  end
  if ruling and not call.decision then
    call.decision = { allowed = ruling.allowed, by = ruling.by }
    answer(ruling.allowed, ruling.err)
  end
end

--- Checks that an approved call is still what the user saw.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@return mcp-tools.Error? err if it is not
function Gateway:changed(call, decision)
  local now = self:judge(call)
  if now.action == 'deny' then
    return answers.denial_of(call, now)
  end
  for i = 1, math.max(#decision.targets, #now.targets) do
    local before, after = decision.targets[i], now.targets[i]
    if not before or not after or before.path ~= after.path then
      return answers.denial(call, 'a file that it names has changed its location since the question', 'changed')
    end
  end
end

--- Applies the answer of the user, or of the client on their behalf.
---@param asked mcp-tools.Asked
---@param decision mcp-tools.Decision
---@param choice mcp-tools.Choice
---@param who 'user'|'client'
---@param reason? string why the user denied it
---@return mcp-tools.Ruling
function Gateway:answered(asked, decision, choice, who, reason)
  local call, by, from_client = asked.call, ('%s: %s'):format(who, choice), who == 'client'
  if not vim.list_contains(asked.choices, choice) or from_client and not answers.is_from_client(call, choice) then
    return no('error', answers.denial(call, ("'%s' is not a valid answer to this question"):format(choice), 'refused'))
  end
  if not answers.YES[choice] then
    self:remember(call, decision, choice, asked.root)
    if from_client then
      return no(by, answers.denial(call, 'the client said no', 'refused'))
    elseif self.grants:denied(call) == Grants.SILENCE_AFTER then
      notify.info('three denials in a row: `:McpTools deny session` denies all further questions of this session')
    end
    local why = reason and (': "%s"'):format(reason) or ''
    return no(by, answers.denial(call, 'the user at the editor said no' .. why, 'refused'))
  end
  call.args = asked.args -- the arguments that the user saw, even if other code has changed its table
  local changed = self:changed(call, decision)
  if changed then
    return no(by, changed)
  end
  self:remember(call, decision, choice, asked.root)
  self.grants:allowed(call)
  return yes(by)
end

--- Returns the error with which the call is certain to fail, if its preview knows it; then the user is not asked. The
--- error may reveal the content of files, so it is not returned before a question about files outside the project.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@return mcp-tools.Error?
local function preview_error(call, decision)
  local definition = call.definition
  local _, outside = rules.by_targets(decision.targets, call.project)
  if not definition.preview or outside or not sources.is_trusted(definition, call.project) then
    return nil
  end
  -- An error thrown by the preview is shown with the question.
  local ok, text, err = errors.try(definition.preview, vim.deepcopy(call.args), nil, call)
  return ok and text == nil and errors.is(err) and err or nil
end

--- Decides on a call, or starts to ask the user.
---@param call mcp-tools.Call
---@param answer fun(allowed: boolean, err: mcp-tools.Error?) called after the user has answered
---@return mcp-tools.Ruling? nil if the user is asked
function Gateway:decide_or_ask(call, answer)
  call.project = call.root and paths.real_root(call.root) or self:project()
  local decision = self:judge(call)
  if decision.action == 'ask' and BY_DEFINITION[decision.by] and review.replaces_question(call) then
    decision = { action = 'allow', by = 'review', reason = 'its changes are reviewed', targets = decision.targets }
  end
  if call:ended() then -- while a rule or a needs_approval function processed events
    return no(call.state)
  end
  call.targets = decision.targets -- for `ctx:covers`
  if decision.action == 'allow' then
    return yes(decision.by)
  elseif decision.action == 'deny' then
    return no(decision.by, answers.denial_of(call, decision))
  elseif self.grants:is_silenced(call) then
    return no('user: silence', answers.denial(call, 'the user has denied all further questions', 'decided'))
  elseif call.kind and call.kind.asks_nothing then
    return no(decision.by, answers.denial(call, decision.reason, 'decided'))
  end
  local err = preview_error(call, decision)
  if not err and read.is_reading() then
    return read.once_read(function() -- the preview needs the content of a file
      conclude(call, answer, function()
        return call:ended() and no(call.state) or self:ask_user(call, decision, answer, preview_error(call, decision))
      end)
    end)
  end
  return self:ask_user(call, decision, answer, err)
end

--- Asks the user and applies the answer, unless the call is certain to fail or late.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@param answer fun(allowed: boolean, err: mcp-tools.Error?)
---@param fault mcp-tools.Error? from the preview
---@return mcp-tools.Ruling?
function Gateway:ask_user(call, decision, answer, fault)
  if fault then
    return no('preview', fault)
  end
  local late = call:late()
  if late then -- the client may have been told that nothing ran
    return no('too late', late)
  end
  local asked = {
    call = call,
    args = vim.deepcopy(call.args),
    reason = decision.reason,
    targets = decision.targets,
    choices = answers.choices(call, decision, self.grants:can_silence(call)),
    files = files_of(decision),
    root = call.project,
  }
  self.ask(asked, function(choice, err, by, reason)
    conclude(call, answer, function()
      if choice and (call.decision or call:ended()) then
        return nil -- a second or late answer is ignored
      elseif choice then
        return self:answered(asked, decision, choice, by --[[@as 'user'|'client'?]] or 'user', reason)
      end
      return no(by or 'nobody', err)
    end)
  end)
end

--- Decides on a call; asks the user if necessary.
---@param call mcp-tools.Call
---@param answer fun(allowed: boolean, err: mcp-tools.Error?) called exactly once; synchronously if there is no question
function Gateway:decide(call, answer)
  local taken, snapshot = pcall(canonical_json.snapshot, call.args)
  call.snapshot = taken and snapshot or nil -- taken now, because the tool may change its arguments
  conclude(call, answer, self.decide_or_ask, self, call, answer)
end

-- For user interfaces ------------------------------------------------------------------------------------------------

--- Returns the trust level of a tool in this project, without arguments, as it is shown to the user.
---@param definition mcp-tools.Definition
---@return 'trusted'|'verified'|'untrusted'|'denied' level
---@return string why
function Gateway:level(definition)
  local root = self:project()
  local verdict, fault = self.ledger:verdict(root, definition)
  local option = rules.by_options(definition, root)
  if option and option.action == 'deny' then
    return 'denied', option.reason
  elseif verdict and verdict.level == 'denied' then
    return 'denied', 'you always deny it'
  elseif not verdict or fault then
    return 'untrusted', 'your earlier decisions cannot be read'
  elseif verdict.level == 'trusted' and not option then
    return 'trusted', 'you trust it'
  end
  local is_asked = verdict.level == 'verified' or sources.is_trusted(definition, root)
  if not option and type(definition.needs_approval) == 'function' and is_asked then
    return 'untrusted', 'it depends on its arguments'
  end
  ---@type any a call without a client
  local call = { definition = definition, args = vim.empty_dict(), client = {}, host = 'nvim', project = root }
  local known = { level = verdict.level, changed = verdict.changed } -- allowed files and calls are left out
  local decision = option or rules.by_memory(call, known, NOTHING, nil, {}) or rules.by_definition(call, root)
  return decision.action == 'allow' and 'verified' or 'untrusted', decision.reason
end

--- Changes the trust level of a tool in this project.
---@param definition mcp-tools.Definition
---@param wanted 'trusted'|'verified'|'untrusted'|'denied'
---@return boolean ok, string? err
function Gateway:trust(definition, wanted)
  if wanted ~= 'trusted' then
    self.grants:revoke(definition.name)
  end
  return self.ledger:set(self:project(), definition, wanted ~= 'untrusted' and wanted or nil)
end

return M
