--- May this call run? One order of decision for every host.
---
--- Receives: a call with its definition and its checked arguments.
--- Sends: yes, or an `access_denied` error that names what would allow it; asks the person through approval.lua.
--- Does not know about: how the question is shown, what the tool does, who renders the error.
---
--- First that decides: (1) the person's rules, (2) hard limits on files, (3) what was decided before, (4) the
--- definition's `needs_approval`, (5) its annotations, (6) `approval.default`. A "deny" anywhere wins. Whatever fails
--- on the way denies.

local config = require('mcp-tools.config')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local paths = require('mcp-tools.paths')

local M = {}

---@class mcp-tools.Decision
---@field action 'allow'|'ask'|'deny'
---@field reason string for the person, or for the client when denied

---@class mcp-tools.Gateway
---@field ask fun(call: mcp-tools.Call, reason: string, answer: fun(allowed: boolean, err: mcp-tools.Error?))
---@field root fun(): string
local Gateway = {}
Gateway.__index = Gateway

--- Makes a gateway.
---@param opts { ask: fun(call, reason, answer), root: fun(): string }
---@return mcp-tools.Gateway
function M.new(opts)
  return setmetatable({ ask = opts.ask, root = opts.root }, Gateway)
end

local VERDICTS = { allow = true, ask = true, deny = true }

--- (1) What the person's own rules say: the function, then the tool, then its group.
---@return mcp-tools.Decision?
local function by_rules(call)
  local approval, definition = config.get().approval, call.definition
  local verdicts = {}
  if approval.rule then
    local info = { host = call.host, client = call.client, session = call.session }
    local ok, verdict = xpcall(approval.rule, debug.traceback, definition.name, vim.deepcopy(call.args), info)
    if not ok or (verdict ~= nil and not VERDICTS[verdict]) then
      log.error('approval.rule failed for %s, so the call is denied: %s', definition.name, vim.inspect(verdict))
      return { action = 'deny', reason = 'the option approval.rule failed (see :McpTools log)' }
    end
    table.insert(verdicts, verdict and { action = verdict, reason = 'the option approval.rule says so' })
  end
  local group = definition.source and definition.source.group
  for _, entry in ipairs({ { 'tools', definition.name }, { 'groups', group } }) do
    local verdict = entry[2] and approval[entry[1]][entry[2]]
    if verdict then
      local reason = ('the option approval.%s.%s is "%s"'):format(entry[1], entry[2], verdict)
      table.insert(verdicts, { action = verdict, reason = reason })
    end
  end
  for _, decision in ipairs(verdicts) do
    if decision.action == 'deny' then
      return decision
    end
  end
  return verdicts[1]
end

--- (2) Sensitive files are denied, files outside the project are asked for.
---@param call mcp-tools.Call
---@param root fun(): string
---@return mcp-tools.Decision?
local function by_places(call, root)
  local outside
  for _, place in ipairs(paths.named_by(call.args)) do
    if place.sensitive then
      return { action = 'deny', reason = ('%s is %s'):format(place.given, place.bad or 'sensitive') }
    end
    if not outside and place.path and not paths.inside(place.path, root()) then
      outside = place
    end
  end
  return outside and { action = 'ask', reason = ('%s is outside the project'):format(outside.path) }
end

--- (4) to (6) What the definition says of itself, else the default.
---@param call mcp-tools.Call
---@return mcp-tools.Decision
local function by_definition(call)
  local definition = call.definition
  local needs = definition.needs_approval
  if type(needs) == 'function' then
    local ok, verdict = xpcall(needs, debug.traceback, call.args, call)
    if not ok then
      log.error('needs_approval of %s failed, so the person is asked: %s', definition.name, verdict)
      return { action = 'ask', reason = 'its needs_approval failed' }
    end
    needs = verdict
  end
  if needs == false then
    return { action = 'allow', reason = 'needs_approval is false' }
  elseif needs then
    return { action = 'ask', reason = type(needs) == 'string' and needs or 'it asks for approval each time' }
  end
  local annotations = definition.annotations or {}
  if annotations.read_only == true then
    return { action = 'allow', reason = 'it only reads' }
  elseif annotations.destructive == true then
    return { action = 'ask', reason = 'it can destroy' }
  end
  local default = config.get().approval.default
  return { action = default, reason = ('the option approval.default is "%s"'):format(default) }
end

--- What should happen to a call; asks nobody.
---@param call mcp-tools.Call
---@return mcp-tools.Decision
function Gateway:judge(call)
  local rules = by_rules(call)
  if rules and rules.action == 'deny' then
    return rules
  end
  local places = by_places(call, self.root)
  if places and places.action == 'deny' then
    return places
  end
  return rules or places or by_definition(call)
end

--- The error of a call that may not run, with the line that would allow it.
---@param call mcp-tools.Call
---@param why string
---@return mcp-tools.Error
function M.denied(call, why)
  local line = ('require("mcp-tools").setup({ approval = { tools = { %s = "allow" } } })'):format(call.name)
  return errors.new('access_denied', ('%s was not run: %s. To allow it always: %s'):format(call.name, why, line))
end

--- Decides, asking the person where that is the decision.
---@param call mcp-tools.Call
---@param answer fun(allowed: boolean, err: mcp-tools.Error?) called exactly once, at once unless a person is asked
function Gateway:decide(call, answer)
  local ok, decision = xpcall(self.judge, debug.traceback, self, call)
  if not ok then
    log.error('deciding on %s failed, so it is denied: %s', call.name, decision)
    decision = { action = 'deny', reason = 'the decision failed (see :McpTools log)' }
  end
  if decision.action == 'allow' then
    return answer(true)
  elseif decision.action == 'deny' then
    return answer(false, M.denied(call, decision.reason))
  end
  self.ask(call, decision.reason, answer)
end

return M
