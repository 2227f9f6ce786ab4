--- Mounted servers: the editor says which there are to be, the bridge talks to them and tells how they are.

local current = require('mcp-tools.bridge.current')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local resolve = require('mcp-tools.mounts.resolve').resolve
local spec = require('mcp-tools.mounts.spec')
local strings = require('mcp-tools.util.strings')
local timer = require('mcp-tools.util.timer')
local wanted = require('mcp-tools.mounts.wanted')

local uv = vim.uv

local M = {}

--- ms for a process that a killed bridge has left, to end when it is told to.
local PATIENCE = 2000

---@class mcp-tools.MountReport what the bridge tells of one
---@field name string
---@field state 'connecting'|'ready'|'waiting'
---@field error string?
---@field restarts integer
---@field pid integer? of its process, and of the group that it leads
---@field next_ms integer? until it is tried again
---@field server string? what it calls itself
---@field faults string[] what of it is left out
---@field at integer ns, when it was told

---@type table<string, table> by `mount()`
local made = {}
---@type table<string, true> that are not to be mounted, by `unmount()`
local off = {}
---@type table<string, integer> how often each was to begin anew
local generations = {}
---@type mcp-tools.WantedMount[]
local list = {}
---@type table<string, true>
local files = {}
---@type table<string, mcp-tools.MountReport>
local reports = {}
---@type { channel: integer?, text: string?, names: table<string, true>? } what the bridge was told last
local told = {}

---@param value any
---@return any? nil for null
local function given(value)
  return value ~= vim.NIL and value or nil
end

--- Tells the bridge, unless it knows.
---@param specs table[]
local function tell(specs)
  local channel = current.said.channel
  local text = #specs > 0 and assert(json.encode(specs)) or '[]'
  if not channel or (told.channel == channel and told.text == text) then
    return
  elseif told.channel ~= channel and #specs == 0 then
    return -- it knows of none
  end
  told = { channel = channel, text = text, names = {} }
  for _, each in ipairs(specs) do
    told.names[each.name] = true
  end
  local ok, err = pcall(vim.rpcnotify, channel, 'mounts', text)
  if not ok then
    log.debug('channel %d: mounts did not go out: %s', channel, err)
  end
end

--- Says once what is wrong with a mount.
---@param each mcp-tools.WantedMount
local function complain(each)
  notify.once('mount ' .. each.name, 'warn', vim.split(each.fault, '\n')[1], 'See :McpTools mounts')
end

--- Looks at what is wanted, and has the bridge follow.
function M.sync()
  list, files = wanted.collect(made)
  local specs, names = {}, {}
  for _, each in ipairs(list) do
    local mount = each.mount
    if mount and not off[each.name] then
      local resolved, fault = resolve(each.name, mount, generations[each.name] or 0)
      each.fault, names[each.name] = fault, resolved and true or nil
      table.insert(specs, resolved)
    end
    if each.fault then
      complain(each)
    end
  end
  for name in pairs(reports) do
    if not names[name] then
      reports[name] = nil
    end
  end
  tell(specs)
end

--- Is anything mounted or to be?
---@return boolean
function M.any()
  return #list > 0 or wanted.any(made)
end

--- Mounts a server, or another in place of the one of that name.
---@param name string
---@param given_spec mcp-tools.MountSpec
function M.mount(name, given_spec)
  local _, fault = spec.check(name, given_spec)
  if fault then
    error(fault, 3)
  end
  made[name], off[name] = vim.deepcopy(given_spec), nil
  M.sync()
end

--- Takes a mount away; its calls end. One of the options is away until `mount()` or the next start of Neovim.
---@param name string
---@return boolean was_there
function M.unmount(name)
  local there = made[name] ~= nil
  for _, each in ipairs(list) do
    there = there or each.name == name and each.mount ~= nil and not off[name]
  end
  made[name], off[name] = nil, there or nil
  M.sync()
  return there
end

--- Has one begin anew, or all; what was taken away comes back.
---@param name? string
function M.retry(name)
  for _, each in ipairs(list) do
    if name == nil or each.name == name then
      generations[each.name] = (generations[each.name] or 0) + 1
      off[each.name] = nil
    end
  end
  M.sync()
end

--- The bridge tells how a mount is.
---@param channel integer
---@param data table
function M.reported(channel, data)
  if channel ~= told.channel or not told.names[data.name] then
    return -- it was taken away meanwhile, and another may get its name
  end
  reports[data.name] = {
    name = data.name,
    state = data.state,
    error = data.error ~= '' and data.error or nil,
    restarts = data.restarts or 0,
    pid = given(data.pid),
    next_ms = given(data.next_ms),
    server = given(data.server),
    faults = data.faults or {},
    at = uv.hrtime(),
  }
end

--- The bridge is gone. One that was killed has left processes: they read the end of their input, and are told to end.
---@param channel integer
function M.lost(channel)
  if channel ~= told.channel then
    return
  end
  local groups = {}
  for _, report in pairs(reports) do
    if report.pid and vim.fn.has('win32') == 0 and uv.kill(-report.pid, 'sigterm') then
      table.insert(groups, report.pid)
    end
  end
  told, reports = {}, {}
  if #groups > 0 then
    timer.after(PATIENCE, function()
      for _, pid in ipairs(groups) do
        uv.kill(-pid, 'sigkill')
      end
    end)
  end
end

---@class mcp-tools.MountStatus
---@field name string
---@field from string who wants it
---@field state 'ready'|'connecting'|'waiting'|'off'|'wrong'|'stopped'
---@field error string? the last one
---@field restarts integer
---@field server string? what it calls itself
---@field pid integer?
---@field next_ms integer? until it is tried again
---@field faults string[] what of it is left out, and why

--- How all of them are, in the order in which they were asked for.
---@return mcp-tools.MountStatus[]
function M.status()
  local out = {}
  for _, each in ipairs(list) do
    local report = reports[each.name] or { restarts = 0, faults = {} }
    local state = report.state or (current.said.channel and 'connecting' or 'stopped')
    if not each.mount or each.fault then
      state = 'wrong'
    elseif off[each.name] then
      state = 'off'
    end
    table.insert(out, {
      name = each.name,
      from = each.from,
      state = state,
      error = each.fault or report.error,
      restarts = report.restarts,
      server = report.server,
      pid = report.pid,
      next_ms = report.next_ms and math.max(0, report.next_ms - math.floor((uv.hrtime() - report.at) / 1e6)),
      faults = report.faults,
    })
  end
  return out
end

--- One of them for people, in a line.
---@param status mcp-tools.MountStatus
---@return string
function M.describe(status)
  local parts = { ('%s  %s'):format(status.name, status.state) }
  table.insert(parts, status.server)
  if status.restarts > 0 then
    table.insert(parts, ('restarted %d×'):format(status.restarts))
  end
  if status.next_ms then
    table.insert(parts, ('tried again in %d s'):format(math.ceil(status.next_ms / 1000)))
  end
  table.insert(parts, status.error)
  if #status.faults > 0 then
    table.insert(parts, ('%d of what it offers left out'):format(#status.faults))
  end
  return sanitize.line(strings.join_lines(table.concat(parts, ', '), '; ')) -- servers choose some of these words
end

--- The files that were looked into.
---@return table<string, true> paths
function M.files()
  return files
end

---@type table<string, string>
local WHY = {
  connecting = "mount '%s' is still being connected; ask again in a moment",
  waiting = "mount '%s' has never been connected (%s)",
  off = "mount '%s' was taken away",
  wrong = "mount '%s' is not mounted (%s)",
  stopped = "mount '%s' waits for the bridge, which does not run (:McpTools start)",
}

--- Why there is no tool of this name, when it would be one of a mount.
---@param tool string
---@return string?
function M.absence(tool)
  local name = tool:match('^(.-)__')
  for _, status in ipairs(name and M.status() or {}) do
    if status.name == name and WHY[status.state] then
      return (WHY[status.state]):format(name, status.error)
    end
  end
end

return M
