--- Subcommands for questions and decisions: answer, approve, deny, trust, audit.

local answers = require('mcp-tools.approval.answers')
local approval = require('mcp-tools.ui.approval')
local audit = require('mcp-tools.approval.audit')
local core = require('mcp-tools.core')
local interview = require('mcp-tools.ui.interview')
local notify = require('mcp-tools.notify')
local reviews = require('mcp-tools.editor.review')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local source = require('mcp-tools.registry.source')
local suggest = require('mcp-tools.util.suggest')
local trim = require('mcp-tools.util.trim')

---@type table<string, mcp-tools.Subcommand>
local M = {}

---@type mcp-tools.Subcommand
M.answer = {
  description = 'go to the questions of a tool',
  run = function()
    interview.focus()
  end,
}

local APPROVE_CHOICES = { 'once', 'review', 'session', 'always', 'look' }

--- Decides hunks of a review, as no question is open.
---@param verb string
---@param action string function of the review
---@param ... any
local function decide_review(verb, action, ...)
  if approval.has_just_closed() then
    local text = 'the question has just closed, and this would %s hunks of a review'
    return notify.warn(text:format(verb), 'Check the review, then repeat the command')
  end
  require('mcp-tools.ui.review')[action](...) -- start-up cost
end

---@type mcp-tools.Subcommand
M.approve = {
  usage = '[once | review | session | always | look]',
  description = 'allow the call that waits for approval; without a question, accept the visible hunks of a review;'
    .. ' `look` goes to the window of the question',
  run = function(rest)
    local choice = rest == '' and 'once' or rest
    if choice == 'look' then
      approval.focus()
    elseif not vim.list_contains(APPROVE_CHOICES, choice) then
      notify.error(("unknown answer '%s'; valid: %s"):format(choice, table.concat(APPROVE_CHOICES, ', ')))
    elseif approval.count() > 0 then
      approval.answer_current(choice --[[@as mcp-tools.Choice]])
    elseif choice == 'once' and reviews.count() > 0 then
      decide_review('accept', 'accept_seen')
    else
      notify.info('no open question')
    end
  end,
  complete = APPROVE_CHOICES,
}

local DENY_CHOICES = { [''] = 'deny', always = 'never', session = 'silence' }

---@type mcp-tools.Subcommand
M.deny = {
  usage = '[always | session | REASON]',
  description = 'deny the call that waits for approval, with a reason for the assistant; deny its tool always, or all'
    .. ' further questions of its session; without a question, reject the rest of a review',
  run = function(rest)
    local choice, reason = DENY_CHOICES[rest] or 'deny', not DENY_CHOICES[rest] and rest or nil
    if approval.count() == 0 and choice == 'deny' and reviews.count() > 0 then
      decide_review('reject', 'none', reason)
    else
      approval.answer_current(choice, reason)
    end
  end,
  complete = { 'always', 'session' },
}

local LEVELS = { 'trusted', 'verified', 'untrusted', 'denied' }

---@param definitions table[]
---@param level 'trusted'|'verified'|'untrusted'|'denied'
local function set(definitions, level)
  local gateway = core.get().gateway
  for _, definition in ipairs(definitions) do
    local ok, err = gateway:trust(definition, level)
    if not ok then
      return notify.error(err)
    end
  end
  local what = #definitions == 1 and definitions[1].name .. ' is' or #definitions .. ' tools are'
  notify.info(('%s now %s'):format(what, level))
end

--- Returns the resources and prompts of mounted servers, in the form in which they are approved.
---@return table[]
local function of_mounts()
  local list = {}
  for _, kind in ipairs({ 'resources', 'templates', 'prompts' }) do
    for _, entry in ipairs(core.get().registry:list(kind)) do
      if source.is_mounted(entry) then
        table.insert(list, {
          name = entry.key,
          title = entry.title,
          description = entry.description,
          annotations = entry.annotations,
          source = entry.source,
        })
      end
    end
  end
  return list
end

--- Finds what is approved under a name.
---@param name string
---@return table?
local function find(name)
  local tool = core.get().registry:find_tool(name)
  return tool or vim.iter(of_mounts()):find(function(definition)
    return definition.name == name
  end)
end

--- Returns all tools except those that the user has denied.
---@param only? string level
---@return table[]
local function tools(only)
  local gateway = core.get().gateway
  return vim.tbl_filter(function(definition)
    local level = gateway:level(definition)
    return level ~= 'denied' and (not only or level == only)
  end, core.get().registry:list('tools'))
end

--- Returns the files outside the project and the calls that the user has always allowed, by tool.
---@return table<string, string[]>
local function allowed_by_tool()
  local gateway, allowed = core.get().gateway, {}
  for _, entry in ipairs((gateway.ledger:list(gateway:project()))) do
    if entry.level ~= 'denied' then
      local list = vim.list_extend(allowed[entry.tool] or {}, entry.paths or {})
      allowed[entry.tool] = vim.list_extend(list, entry.calls or {})
    end
  end
  return allowed
end

--- Adds all tools, and the resources and prompts of mounts that the user has decided on. Decided ones come first.
---@param lines string[]
local function add_tools(lines)
  local gateway = core.get().gateway
  local allowed, decided, others = allowed_by_tool(), {}, {}
  local tool_list = core.get().registry:list('tools')
  for i, definition in ipairs(vim.list_extend(vim.list_slice(tool_list), of_mounts())) do
    local level, why = gateway:level(definition)
    local sessions, own = gateway.grants:count(definition.name), allowed[definition.name] or {}
    local more = sessions > 0 and (', allowed in %d session%s'):format(sessions, sessions == 1 and '' or 's') or ''
    local is_decided = level == 'trusted' or level == 'denied' or sessions > 0 or #own > 0
    local list = is_decided and decided or i <= #tool_list and others or {}
    table.insert(list, ('  %-9s  %-28s  %s%s'):format(level, sanitize.line(definition.name), sanitize.line(why), more))
    for _, path in ipairs(own) do
      table.insert(list, ('  %-9s  always with %s'):format('', sanitize.line(path)))
    end
  end
  if #decided + #others == 0 then
    others = { '  no tools are on' }
  end
  vim.list_extend(vim.list_extend(lines, { '', 'tools' }), decided)
  vim.list_extend(lines, others)
end

---@param lines string[]
local function add_questions(lines)
  local open = approval.list()
  vim.list_extend(lines, #open > 0 and { '', 'questions' } or {})
  for _, question in ipairs(open) do
    local text = ('  open        %-28s  %s'):format(question.call.name, question.reason)
    table.insert(lines, sanitize.line(text))
  end
end

---@return string[]
local function trust_lines()
  local gateway = core.get().gateway
  local root = gateway:project()
  local _, fault = gateway.ledger:list(root)
  local lines = { 'trust in ' .. root }
  if fault then
    table.insert(lines, '  earlier decisions cannot be read: ' .. fault)
    local hint = gateway.ledger:can_reset(root) and '; `:McpTools trust reset` deletes them' or ''
    table.insert(lines, '  until this is fixed, every call needs approval' .. hint)
  end
  table.insert(lines, '  :McpTools trust TOOL [' .. table.concat(LEVELS, ' | ') .. '] changes a level')
  table.insert(
    lines,
    '  trusted, verified: runs. untrusted: asks, except for its lines "always with". denied: never runs.'
  )
  table.insert(lines, '  :McpTools trust TOOL untrusted also forgets what is always allowed')
  add_questions(lines)
  local silenced = gateway.grants.silenced
  if next(silenced) then
    vim.list_extend(lines, { '', 'silenced sessions (:McpTools trust unsilence allows their questions)' })
  end
  for _, name in vim.spairs(silenced) do
    table.insert(lines, '  named ' .. sanitize.line(name))
  end
  add_tools(lines)
  return lines
end

local function unsilence()
  local grants = core.get().gateway.grants
  if next(grants.silenced) == nil then
    return notify.info('no session is silenced')
  end
  grants:unsilence()
  notify.info('all sessions may ask again')
end

local function reset()
  local gateway = core.get().gateway
  gateway.grants:reset()
  local ok, err = gateway.ledger:reset(gateway:project())
  if not ok then
    return notify.error(err)
  end
  notify.info('all decisions for this project were deleted')
end

---@param name string
---@param level string
local function change(name, level)
  local definition = find(name)
  if not definition then
    local near = suggest(name, vim.tbl_keys(core.get().registry.entries.tools))
    local hint = near and ('did you mean %s?'):format(near) or ':McpTools tools'
    return notify.error(("unknown tool '%s'"):format(name), hint)
  elseif not vim.list_contains(LEVELS, level) then
    local text = ("'%s' is not a valid level"):format(level)
    return notify.error(text, 'One of ' .. table.concat(LEVELS, ', '))
  end
  set({ definition }, level --[[@as any]])
end

---@type mcp-tools.Subcommand
M.trust = {
  usage = '[verify | all | reset | unsilence | TOOL [LEVEL]]',
  description = 'show which tools run without approval; allow it for the tools whose definitions need none (`verify`),'
    .. ' for all tools or for one; delete all decisions; allow the questions of silenced sessions',
  run = function(rest)
    local name, level = rest:match('^(%S+)%s*(.*)$')
    if not name then
      scratch.show('trust', trust_lines)
    elseif name == 'verify' then
      set(tools('untrusted'), 'verified')
    elseif name == 'all' then
      set(tools(), 'trusted')
    elseif name == 'reset' then
      reset()
    elseif name == 'unsilence' then
      unsilence()
    else
      change(name, level == '' and 'trusted' or level)
    end
  end,
  arguments = 2,
  complete = function(_, rest)
    if rest ~= '' then
      return find(trim(rest)) and LEVELS or {}
    end
    local names = { 'verify', 'all', 'reset', 'unsilence' }
    return vim.list_extend(names, vim.tbl_keys(core.get().registry.entries.tools))
  end,
}

--- In bytes: about two thousand calls.
local AUDIT_TAIL = 512 * 1024

--- Why a call was allowed without asking the user.
local BY = { annotations = 'it only reads', needs_approval = 'its definition allows it', ledger = 'you trust it' }

---@param entry table
---@return string
local function line_of(entry)
  local who, ms = entry.client or entry.host or '?', tonumber(entry.ms) or 0
  local text = ('%s in %s'):format(
    tostring(entry.outcome),
    ms < 1000 and ('%.1f ms'):format(ms) or ('%.1f s'):format(ms / 1000)
  )
  if entry.decision == 'deny' then
    text = answers.reason_in(tostring(entry.reason or 'not run')):gsub('^cancelled: ', '') -- as `by` says
  end
  return ('%s  %-5s  %s  (%s)  for %s: %s%s'):format(
    (tostring(entry.time):match('T(%d+:%d+:%d+)')),
    tostring(entry.decision),
    sanitize.line(tostring(entry.tool)),
    entry.decision == 'allow' and BY[entry.by] or tostring(entry.by),
    sanitize.line(tostring(who)),
    sanitize.line(text),
    entry.session and ', session ' .. tostring(entry.session) or ''
  )
end

local function show_audit()
  audit.tail(AUDIT_TAIL, function(entries)
    local lines = vim.tbl_map(line_of, entries or {})
    if #lines == 0 then
      lines = { 'No call has been recorded yet: ' .. audit.path() }
    end
    scratch.show('audit', lines, { at_end = true, again = show_audit })
  end)
end

---@type mcp-tools.Subcommand
M.audit = {
  description = 'show the last calls, the decisions on them and their outcomes',
  run = show_audit,
}

return M
