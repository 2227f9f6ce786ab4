--- Subcommands for tools and mounts.

local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local core = require('mcp-tools.core')
local loading = require('mcp-tools.loading')
local groups = require('mcp-tools.groups')
local kinds = require('mcp-tools.registry.kinds')
local mounts = require('mcp-tools.mounts')
local notify = require('mcp-tools.notify')
local report = require('mcp-tools.loading.report')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local source = require('mcp-tools.registry.source')
local suggest = require('mcp-tools.util.suggest')
local trim = require('mcp-tools.util.trim')

---@type table<string, mcp-tools.Subcommand>
local M = {}

local function registry()
  return core.get().registry
end

---@param entry table
---@return string
local function summary(entry)
  return (tostring(entry.title or entry.description or entry.name):match('[^\n]*'))
end

---@param groups_of table<string, string[]> modified
---@param group string
---@param text string
local function add_to(groups_of, group, text)
  groups_of[group] = groups_of[group] or {}
  table.insert(groups_of[group], text)
end

---@return string[]
local function tool_lines()
  local lines, on, off = {}, {}, {}
  for _, tool in ipairs(registry():list('tools')) do
    add_to(on, source.group(tool), ('  %-32s %s'):format(config.get('tool_prefix') .. tool.name, summary(tool)))
  end
  for group, list in vim.spairs(on) do
    table.insert(lines, group)
    vim.list_extend(lines, list)
  end
  if #lines == 0 then
    table.insert(lines, 'No tools are on. setup({ tools = "recommended" }) turns the bundled ones on.')
  end
  for _, row in ipairs(kinds.rows) do
    local list = row.grouped and {} or registry():list(row.kind)
    table.insert(lines, #list > 0 and row.heading or nil)
    for _, entry in ipairs(list) do
      table.insert(lines, ('  %-32s %s'):format(entry.key, summary(entry)))
    end
  end
  for _, item in ipairs(groups.items()) do
    if not item.on then
      add_to(off, item.group or item.kind, item.name)
    end
  end
  table.insert(lines, next(off) and 'off; turn on with :McpTools tools enable NAME' or nil)
  for group, names in vim.spairs(off) do
    table.insert(lines, ('  %-32s %s'):format(group, table.concat(names, ', ')))
  end
  local failed = vim.tbl_map(function(failure) -- at the beginning, where they are noticed
    return ('failed: %s: %s'):format(failure.source, failure.error:match('[^\n]*'))
  end, report.failures(registry()))
  return vim.tbl_map(sanitize.line, vim.list_extend(failed, lines))
end

--- Returns whether a failure belongs to a group or tool.
---@param failure mcp-tools.Failure
---@param name string
local function concerns(failure, name)
  -- The last two parts of the name: group and tool, or the file of a plugin and its group.
  local names = vim.split(failure.source:gsub('%.lua$', ''):gsub('%.py$', ''), '[/.]')
  local group, file = names[#names - 1], names[#names]
  return group == name or file == name or ('%s_%s'):format(group or '', file or '') == name
end

--- Returns what the user has to do so that connected clients list other tools; nil if nothing.
---@return string?
local function advice()
  for _, name in ipairs(current.client_names()) do
    if vim.startswith(name, 'codex') then
      return 'type /new in Codex: it lists tools only when a conversation starts'
    end
  end
end

---@param done string message without failures, with %d for the number of tools
---@param name? string the group or tool (default: everything)
---@return fun(failures: mcp-tools.Failure[])
local function reporter(done, name)
  local prefix = config.get('tool_prefix')
  name = name and (name:match('^.*/(.*)$') or name)
  name = name and vim.startswith(name, prefix) and name:sub(#prefix + 1) or name
  return function(failures)
    local found = {}
    for _, origin in ipairs(name and loading.report() or {}) do
      for _, file in ipairs(origin.found) do
        found[file.file] = vim.list_contains(file.tools, name)
      end
    end
    failures = vim.tbl_filter(function(failure)
      return not name or found[failure.source] or concerns(failure, name)
    end, failures)
    local first = failures[1]
    if not first then
      return notify.info(done:format(#registry():list('tools')), advice())
    end
    local file = vim.fn.fnamemodify(first.source, ':t') -- a whole path could fill the line
    local text = ('could not be loaded: %s: %s'):format(file, first.error:match('[^\n]*'))
    notify.error(text, #failures > 1 and (':checkhealth mcp-tools lists %d more'):format(#failures - 1) or nil)
  end
end

---@class mcp-tools.ToolsAction
---@field run fun(name: string?): any, mcp-tools.Error?
---@field accepts? fun(item: mcp-tools.Item): boolean which items are candidates (default: sources of tools)
---@field optional boolean?

---@param to 'on'|'off'
---@param names string[]?
---@param err mcp-tools.Error?
local function report_switched(to, names, err)
  if names then
    notify.info(('%s now: %s'):format(to, table.concat(names, ', ')), advice())
  end
  return names, err
end

---@type table<string, mcp-tools.ToolsAction>
local ACTIONS = {
  enable = {
    run = function(name)
      return report_switched('on', groups.enable(name))
    end,
    accepts = function(item)
      return not item.on
    end,
  },
  disable = {
    run = function(name)
      return report_switched('off', groups.disable(name))
    end,
    accepts = function(item)
      return item.on
    end,
  },
  reload = {
    optional = true,
    run = function(name)
      return groups.reload(name, reporter('reloaded; %d tools are on', name))
    end,
    accepts = function(item)
      return item.on and item.loadable
    end,
  },
  refresh = {
    optional = true,
    run = function(name)
      return groups.refresh(name, reporter('searched again; %d tools are on'))
    end,
  },
}

local ACTION_NAMES = { 'disable', 'enable', 'refresh', 'reload' }

---@type mcp-tools.Subcommand
M.tools = {
  usage = '[enable | disable | reload | refresh] [NAME]',
  description = 'list the registered tools; turn a group or a tool on or off, reload its files, or search for tools of'
    .. ' other plugins',
  run = function(rest)
    local word, name = rest:match('^(%S+)%s*(.*)$')
    if not word then
      return scratch.show('tools', tool_lines)
    end
    local action = ACTIONS[word]
    if not action then
      local near = suggest(word, ACTION_NAMES)
      local hint = near and ('did you mean %s?'):format(near) or 'one of ' .. table.concat(ACTION_NAMES, ', ')
      return notify.error(("unknown action '%s'; %s"):format(word, hint))
    elseif name == '' and not action.optional then
      return notify.error(('which one? :McpTools tools %s NAME'):format(word))
    end
    local _, err = action.run(name ~= '' and name or nil)
    if err then
      notify.error(err.message)
    end
  end,
  arguments = 2,
  complete = function(_, rest)
    if rest == '' then
      return ACTION_NAMES
    end
    local action = ACTIONS[trim(rest)]
    return not action and {} or action.accepts and groups.names(action.accepts) or loading.SOURCES
  end,
}

---@return string[]
local function mount_names()
  return vim.tbl_map(function(each)
    return each.name
  end, mounts.status())
end

---@return string[]
local function mount_lines()
  local lines = {}
  for _, each in ipairs(mounts.status()) do
    table.insert(lines, mounts.describe(each))
    table.insert(lines, sanitize.line(('    from %s'):format(each.from)))
    for _, fault in ipairs(each.faults) do
      table.insert(lines, sanitize.line('    not exposed: ' .. fault))
    end
  end
  return #lines > 0 and lines or { 'no mounts; see :h mcp-tools-mounts' }
end

---@type mcp-tools.Subcommand
M.mounts = {
  usage = '[retry [NAME]]',
  description = 'show the mounted servers; with `retry`, connect one or all of them again',
  arguments = 2,
  run = function(rest)
    local word, name = rest:match('^(%S*)%s*(%S*)$')
    mounts.sync()
    if word == '' then
      return scratch.show('mounts', mount_lines)
    elseif word ~= 'retry' then
      return notify.error((":McpTools mounts accepts only retry, not '%s'"):format(rest))
    elseif name ~= '' and not vim.list_contains(mount_names(), name) then
      return notify.error(("unknown mount '%s'"):format(name))
    end
    mounts.retry(name ~= '' and name or nil)
    notify.info(name ~= '' and ("reconnecting mount '%s'"):format(name) or 'reconnecting all mounts')
  end,
  complete = function(_, rest)
    return rest:find('^retry%s') and mount_names() or { 'retry' }
  end,
}

return M
