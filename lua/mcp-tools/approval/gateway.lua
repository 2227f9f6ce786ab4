--- May this call run? One order of decision for every host.
---
--- Receives: a call with its definition and its checked arguments.
--- Sends: yes, or an `access_denied` error (approval/denial.lua); questions to a person; what they said to the
--- ledger (for good) and to approval/grants.lua (for a while).
--- Does not know about: how a question is shown, what the tool does, who renders the error.
---
--- First that decides: (1) the person's rules, (2) hard limits on files, (3) what was decided before, (4) the
--- definition's `needs_approval`, (5) its annotations, (6) `approval.default`. A "deny" of 1 to 3 wins wherever it
--- stands. Whatever fails on the way denies.

local Grants = require('mcp-tools.approval.grants')
local ahead = require('mcp-tools.privacy.read_cache')
local canonical_json = require('mcp-tools.util.canonical_json')
local choices = require('mcp-tools.approval.choices')
local denial = require('mcp-tools.approval.denial')
local errors = require('mcp-tools.errors')
local level = require('mcp-tools.approval.level')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local paths = require('mcp-tools.files.paths')
local policy = require('mcp-tools.editor.review.policy')
local rules = require('mcp-tools.approval.rules')
local sources = require('mcp-tools.registry.source')
local targets = require('mcp-tools.approval.targets')

local M = {}

---@class mcp-tools.Decision
---@field action 'allow'|'ask'|'deny'
---@field by string what decided, for the audit log: an option, "files", "ledger", …
---@field reason string for the person, or for the client when denied
---@field targets mcp-tools.CallTarget[]? what the arguments name
---@field fault string? why it is not known what was decided before

--- What a decision came to.
---@class mcp-tools.Ruling
---@field allowed boolean
---@field by string what decided, for the audit log, or who said so
---@field err mcp-tools.Error? when it is not allowed; nil when the call has ended by itself

---@class mcp-tools.Gateway
---@field ask mcp-tools.Ask
---@field root fun(): string
---@field ledger mcp-tools.Ledger
---@field grants mcp-tools.Grants
local Gateway = {}
Gateway.__index = Gateway

--- Makes a gateway.
---@param opts { ask: mcp-tools.Ask, root: (fun(): string), ledger: mcp-tools.Ledger }
---@return mcp-tools.Gateway
function M.new(opts)
  return setmetatable({ ask = opts.ask, root = opts.root, ledger = opts.ledger, grants = Grants.new() }, Gateway)
end

--- The project that decisions are kept for now.
---@return string root
function Gateway:project()
  return paths.real_root(self.root())
end

local NOTHING = {}

--- Whose questions a review takes the place of. What the person has said themselves, and files outside, come first.
local BY_DEFINITION = { needs_approval = true, annotations = true, ['approval.default'] = true }

--- What should happen to a call; asks nobody.
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
  if call.definition.companion and annotations and annotations.read_only then
    outside = nil -- its agent may work in any folder that the editor has open
  end
  local verdict, fault = self.ledger:look(root, call.definition)
  if verdict and verdict.level == 'denied' then
    return { action = 'deny', by = 'ledger', reason = 'you denied it always (see :McpTools trust)' }
  end
  local decision = own
    or rules.by_memory(call, verdict or NOTHING, self.grants:of_session(call) or NOTHING, outside, named)
    or rules.by_definition(call, root)
  if fault and decision.action == 'allow' then
    -- A "never" may stand where nobody can read it.
    decision = { action = 'ask', by = 'ledger', reason = 'what you decided before cannot be known: ' .. fault }
    decision.fault = fault
  end
  decision.targets = named
  return decision
end

--- The files that a yes is for; nil when it is for the tool.
---@param decision mcp-tools.Decision
---@return string[]?
local function files_of(decision)
  return decision.by == 'files' and vim.tbl_map(function(target)
    return target.path
  end, decision.targets) or nil
end

--- Allows a tool for good: with these files outside the project, for this very call, or else altogether.
---@param root string
---@param definition mcp-tools.Definition
---@param files string[]?
---@param key string? of the call, see `rules.call_key`
---@return boolean ok, string? err
function Gateway:allow_always(root, definition, files, key)
  local wanted = key and 'calls' or files and 'files' or 'trusted'
  return self.ledger:set(root, definition, wanted, files, key and { key })
end

--- Keeps what the person said beyond this call.
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
  if not ok then
    notify.error(('what you decided on %s counts for this call only: %s'):format(call.name, err))
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

--- Takes a step of a decision, and hands out what it came to. A step that fails denies; what is run upon a yes is no
--- part of it.
---@param call mcp-tools.Call
---@param answer fun(allowed: boolean, err: mcp-tools.Error?)
---@param step fun(...): mcp-tools.Ruling? none when somebody is being asked, or when it comes too late to count
---@param ... any its arguments
local function conclude(call, answer, step, ...)
  local ok, ruling = xpcall(step, debug.traceback, ...)
  if not ok then
    log.error('deciding on %s, which is therefore denied, failed: %s', call.name, ruling)
    ruling = no('error', denial.error(call, 'the decision failed', 'failed'))
  end
  if ruling and not call.decision then
    call.decision = { allowed = ruling.allowed, by = ruling.by }
    answer(ruling.allowed, ruling.err)
  end
end

--- Is a call that was allowed still what the person saw?
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@return mcp-tools.Error? err
function Gateway:changed(call, decision)
  local now = self:judge(call)
  if now.action == 'deny' then
    return denial.decided(call, now)
  end
  for i = 1, math.max(#decision.targets, #now.targets) do
    local before, after = decision.targets[i], now.targets[i]
    if not before or not after or before.path ~= after.path then
      return denial.error(call, 'a file that it names has moved since the question was asked', 'changed')
    end
  end
end

--- Does what the person said, or their client in their name.
---@param asked mcp-tools.Asked
---@param decision mcp-tools.Decision
---@param choice mcp-tools.Choice
---@param who 'person'|'client'
---@param reason? string why the user denied it
---@return mcp-tools.Ruling
function Gateway:answered(asked, decision, choice, who, reason)
  local call, by, from_client = asked.call, ('%s: %s'):format(who, choice), who == 'client'
  if not vim.list_contains(asked.choices, choice) or from_client and not choices.is_from_client(call, choice) then
    return no('error', denial.error(call, ('"%s" is no answer to this question'):format(choice), 'refused'))
  end
  if not choices.YES[choice] then
    self:remember(call, decision, choice, asked.root)
    if from_client then
      return no(by, denial.error(call, 'the client said no', 'refused'))
    elseif self.grants:denied(call) == Grants.PATIENCE then
      notify.info('three denials in a row: `:McpTools deny session` denies all that this session asks for')
    end
    local why = reason and (': "%s"'):format(reason) or ''
    return no(by, denial.error(call, 'the user at the editor said no' .. why, 'refused'))
  end
  call.args = asked.args -- whoever else had them
  local changed = self:changed(call, decision)
  if changed then
    return no(by, changed)
  end
  self:remember(call, decision, choice, asked.root)
  self.grants:allowed(call)
  self.grants:forget_unanswered(call)
  return yes(by)
end

--- Asks the person and does what they say.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@param answer fun(allowed: boolean, err: mcp-tools.Error?)
function Gateway:question(call, decision, answer)
  local asked = {
    call = call,
    args = vim.deepcopy(call.args),
    reason = decision.reason,
    targets = decision.targets,
    choices = choices.of(call, decision, self.grants:is_tiresome(call)),
    root = call.project,
  }
  self.ask(asked, function(choice, err, by, reason)
    conclude(call, answer, function()
      if choice and (call.decision or call:ended()) then
        return nil -- said twice, or too late: it counts for nothing
      elseif choice then
        return self:answered(asked, decision, choice, by or 'person', reason)
      elseif by == 'timeout' or by == 'nobody to ask' then
        self.grants:missed(call, decision, asked.choices, files_of(decision))
      end
      return no(by or 'nobody', err)
    end)
  end)
end

--- Why a call is certain to come to nothing, when its preview knows: nobody is asked for that. The reason may speak of
--- what is in files, so it is told before the question only where the question is not about files.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@return mcp-tools.Error?
local function futile(call, decision)
  local definition = call.definition
  local _, outside = rules.by_targets(decision.targets, call.project)
  if not definition.preview or outside or not sources.is_believed(definition, call.project) then
    return nil
  end
  -- One that throws is told of beside the question.
  local ok, text, err = pcall(definition.preview, vim.deepcopy(call.args))
  return ok and text == nil and errors.is(err) and err or nil
end

--- Decides on a call whose arguments are noted, or has the person asked.
---@param call mcp-tools.Call
---@param answer fun(allowed: boolean, err: mcp-tools.Error?) for what the person says
---@return mcp-tools.Ruling?
function Gateway:settle(call, answer)
  call.project = call.root and paths.real_root(call.root) or self:project()
  local decision = self:judge(call)
  if decision.action == 'ask' and BY_DEFINITION[decision.by] and policy.replaces_question(call) then
    decision = { action = 'allow', by = 'review', reason = 'what it changes is reviewed', targets = decision.targets }
  end
  if call:ended() then -- a rule or a needs_approval let the editor go on meanwhile
    return no(call.state)
  end
  call.targets = decision.targets -- what a tool that reads is held to
  if decision.action == 'allow' then
    return yes(decision.by)
  elseif decision.action == 'deny' then
    return no(decision.by, denial.decided(call, decision))
  elseif self.grants:redeem(call, decision.targets) then
    return yes('person: before')
  elseif self.grants:is_silenced(call) then
    return no('person: silence', denial.error(call, 'the person at the editor wants no more such questions', 'decided'))
  elseif call.kind and call.kind.asks_nothing then
    return no(decision.by, denial.error(call, decision.reason, 'decided'))
  end
  local vain = futile(call, decision)
  if not vain and ahead.is_reading() then
    return ahead.once_read(function() -- what the person is to see, and whether there is anything to ask about
      conclude(call, answer, function()
        return call:ended() and no(call.state) or self:put(call, decision, answer, futile(call, decision))
      end)
    end)
  end
  return self:put(call, decision, answer, vain)
end

--- Puts the question, unless it is certain by now that the call comes to nothing.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@param answer fun(allowed: boolean, err: mcp-tools.Error?)
---@param vain mcp-tools.Error?
---@return mcp-tools.Ruling?
function Gateway:put(call, decision, answer, vain)
  if vain then
    return no('preview', vain)
  end
  local late = call:late()
  if late then -- whoever waits for it may have been told that nothing runs
    return no('too late', late)
  end
  self:question(call, decision, answer)
end

--- Decides, asking the person where that is the decision.
---@param call mcp-tools.Call
---@param answer fun(allowed: boolean, err: mcp-tools.Error?) called exactly once, at once unless a person is asked
function Gateway:decide(call, answer)
  local taken, snapshot = pcall(canonical_json.snapshot, call.args)
  call.snapshot = taken and snapshot or nil -- now, for a tool may change its arguments
  conclude(call, answer, self.settle, self, call, answer)
end

-- For people ---------------------------------------------------------------------------------------------------------

--- How far a tool is trusted now.
---@param definition mcp-tools.Definition
---@return 'trusted'|'verified'|'untrusted'|'denied' level
---@return string why
function Gateway:level(definition)
  local root = self:project()
  return level.of(root, definition, self.ledger:look(root, definition))
end

--- Changes how far a tool is trusted in this project.
---@param definition mcp-tools.Definition
---@param wanted 'trusted'|'verified'|'untrusted'|'denied'
---@return boolean ok, string? err
function Gateway:trust(definition, wanted)
  return self.ledger:set(self:project(), definition, wanted ~= 'untrusted' and wanted or nil)
end

return M
