--- The rules of approval, one function for each source: options, files, earlier decisions, definitions.

local canonical_json = require('mcp-tools.util.canonical_json')
local config = require('mcp-tools.config')
local log = require('mcp-tools.log')
local source = require('mcp-tools.registry.source')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')

local M = {}

local VERDICTS = { allow = true, ask = true, deny = true }

--- Decides by the option `approval.rule`, a function.
---@param call mcp-tools.Call
---@param rule function
---@return mcp-tools.Decision?
local function by_function(call, rule)
  local info = { host = call.host, client = vim.deepcopy(call.client), session = call.session }
  info.uri = call.definition.uri
  local ok, verdict = xpcall(rule, debug.traceback, call.definition.name, vim.deepcopy(call.args), info)
  if not ok or (verdict ~= nil and not VERDICTS[verdict]) then
    log.error('approval.rule failed for %s, so the call is denied: %s', call.definition.name, vim.inspect(verdict))
    return { action = 'deny', by = 'approval.rule', reason = 'the option approval.rule failed (see :McpTools log)' }
  end
  local reason = verdict and ('the option approval.rule returned "%s"'):format(verdict)
  return verdict and { action = verdict, by = 'approval.rule', reason = reason }
end

---@param option 'tools'|'groups'
---@param name string?
---@return mcp-tools.Decision?
local function by_option(option, name)
  local verdict = name and config.get().approval[option][name]
  if verdict then
    local by = ('approval.%s.%s'):format(option, name)
    return { action = verdict, by = by, reason = ('the option %s is "%s"'):format(by, verdict) }
  end
end

---@param name string
---@return boolean
local function is_bundled_group(name)
  local base = vim.fs.joinpath(project.lua_dir(), 'tools', name)
  return vim.uv.fs_stat(base) ~= nil or vim.uv.fs_stat(base .. '.lua') ~= nil
end

--- Decides by the option for the tool's group. A project chooses the names of its files, and a mount may have the name
--- of a bundled group, so an "allow" for a bundled group does not apply to them.
---@param definition mcp-tools.Definition
---@param root string resolved
---@return mcp-tools.Decision?
local function by_group(definition, root)
  local name = source.group(definition)
  local group = by_option('groups', name)
  local bundled = definition.source and definition.source.group ~= nil
  if group and group.action == 'allow' and not bundled then
    if source.in_project(definition, root) or is_bundled_group(name) then
      return nil
    end
  end
  return group
end

--- Decides by the options for tools and groups.
---@param definition mcp-tools.Definition
---@param root string resolved
---@return mcp-tools.Decision?
function M.by_options(definition, root)
  local tool = by_option('tools', definition.name)
  if tool and tool.action == 'deny' then
    return tool
  end
  local group = by_group(definition, root)
  if group and group.action == 'deny' then
    return group
  end
  return tool or group
end

--- (1) Decides by the user's options: the function, then the tool, then its group. A "deny" of any of them wins.
---@param call mcp-tools.Call
---@param root string resolved
---@return mcp-tools.Decision?
function M.by_rules(call, root)
  local rule = config.get().approval.rule
  local first = rule and by_function(call, rule)
  local second = M.by_options(call.definition, root)
  return second and second.action == 'deny' and second or first or second
end

---@param call mcp-tools.Call
---@return mcp-tools.Decision?
local function by_needs(call)
  local definition = call.definition
  local needs = definition.needs_approval
  if type(needs) == 'function' then
    local ok, verdict = xpcall(needs, debug.traceback, vim.deepcopy(call.args), call)
    if not ok then
      log.error('needs_approval of %s failed, so the user is asked: %s', definition.name, verdict)
      return { action = 'ask', by = 'needs_approval', reason = 'its needs_approval failed' }
    end
    needs = verdict
  end
  if needs == false then
    return { action = 'allow', by = 'needs_approval', reason = 'needs_approval is false' }
  elseif needs then
    local reason = type(needs) == 'string' and needs or 'its definition requires approval'
    return { action = 'ask', by = 'needs_approval', reason = reason }
  end
end

--- (2) Denies sensitive files and finds files outside the project, which require a question.
---@param targets mcp-tools.CallTarget[]
---@param root string
---@return mcp-tools.Decision? denial
---@return mcp-tools.CallTarget? outside
function M.by_targets(targets, root)
  local outside
  for _, target in ipairs(targets) do
    if target.sensitive then
      return { action = 'deny', by = 'files', reason = ('%s is %s'):format(target.given, target.bad or 'sensitive') }
    end
    if not outside and target.path and (target.unclear or not paths.inside(target.path, root)) then
      outside = target
    end
  end
  return nil, outside
end

--- Returns whether the user has allowed all of these files for this tool.
---@param granted string[]?
---@param targets mcp-tools.CallTarget[]
local function all_granted(granted, targets)
  for _, target in ipairs(targets) do
    if target.path and (target.other or not (granted and vim.list_contains(granted, target.path))) then
      return false
    end
  end
  return granted ~= nil
end

--- Maximum bytes of a key. "Always" is not possible for a longer call.
local MAX_KEY = 4096

--- Returns the JSON of the arguments that "always" applies to, for tools with `always_ignores`.
---@param definition mcp-tools.Definition
---@param args table
---@return string? key nil if "always" applies to the tool; only the beginning if it is too long
---@return boolean never "always" is not possible for this call
function M.call_key(definition, args)
  local ignored = definition.always_ignores
  if not ignored then
    return nil, false
  end
  for _, name in ipairs(definition.short_lived or {}) do
    if args[name] then
      return nil, true
    end
  end
  local decisive = vim.tbl_extend('force', {}, args)
  for _, name in ipairs(type(ignored) == 'function' and ignored(args) or ignored) do
    decisive[name] = nil
  end
  local snapshot = canonical_json.snapshot(next(decisive) and decisive or vim.empty_dict())
  local key = canonical_json.head(snapshot, MAX_KEY + 1)
  return key, #key > MAX_KEY
end

--- Returns whether the user has always allowed calls with these arguments.
---@param call mcp-tools.Call
---@param verdict mcp-tools.Verdict
---@return boolean
local function is_always_allowed(call, verdict)
  local key, never = M.call_key(call.definition, call.args)
  return key ~= nil and not never and vim.list_contains(verdict.calls or {}, key)
end

--- (3) Decides by earlier decisions.
---@param call mcp-tools.Call
---@param verdict mcp-tools.Verdict
---@param grant { all: boolean?, paths: string[]?, changed: boolean? }
---@param outside mcp-tools.CallTarget?
---@param targets mcp-tools.CallTarget[]
---@return mcp-tools.Decision?
function M.by_memory(call, verdict, grant, outside, targets)
  if outside then
    local exact = call.definition.always_ignores ~= nil
    if all_granted(verdict.paths, targets) and (not exact or is_always_allowed(call, verdict)) then
      return { action = 'allow', by = 'ledger', reason = 'you always allow it these files' }
    elseif all_granted(grant.paths, targets) then
      return { action = 'allow', by = 'session', reason = 'you allowed it these files in this session' }
    end
    local where = outside.other and '%s is not a regular file'
      or outside.unclear and 'the location of %s is unclear'
      or '%s is outside the project'
    return { action = 'ask', by = 'files', reason = where:format(outside.path) }
  elseif verdict.level == 'trusted' then
    return { action = 'allow', by = 'ledger', reason = 'you trust it' }
  elseif is_always_allowed(call, verdict) then
    return { action = 'allow', by = 'ledger', reason = 'you always allow this call' }
  elseif grant.all then
    return { action = 'allow', by = 'session', reason = 'you allowed it in this session' }
  elseif verdict.changed or grant.changed then
    return { action = 'ask', by = 'ledger', reason = 'its definition has changed since you trusted it' }
  elseif verdict.level == 'verified' then
    local needs = by_needs(call)
    return needs and needs.action == 'ask' and needs or { action = 'allow', by = 'ledger', reason = 'you verified it' }
  end
end

--- (4) to (6) Decides by `needs_approval` and the annotations, if the definition's source is trusted; otherwise by
--- the default.
---@param call mcp-tools.Call
---@param root string resolved
---@return mcp-tools.Decision
function M.by_definition(call, root)
  local definition = call.definition
  local trusted = source.is_trusted(definition, root)
  -- A definition from an untrusted source may only make the rules stricter, and its functions are not called.
  local applies = trusted or type(definition.needs_approval) ~= 'function'
  local decision = applies and by_needs(call)
  if decision and (trusted or decision.action == 'ask') then
    return decision
  end
  local annotations = definition.annotations or {}
  if annotations.read_only == true and trusted then
    return { action = 'allow', by = 'annotations', reason = 'it only reads' }
  elseif annotations.destructive == true then
    return { action = 'ask', by = 'annotations', reason = 'it is marked as destructive' }
  end
  local default = config.get().approval.default
  local reason = ('the option approval.default is "%s"'):format(default)
  if not trusted and default == 'ask' then
    reason = 'its own claims are not trusted: it comes from this project or another server'
  end
  return { action = default, by = 'approval.default', reason = reason }
end

return M
