--- Mounted MCP servers: the editor has their configuration, the bridge connects to them and reports their state.

local current = require('mcp-tools.bridge.current')
local json = require('mcp-tools.util.json')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local spec = require('mcp-tools.mounts.spec')
local strings = require('mcp-tools.util.strings')
local timer = require('mcp-tools.util.timer')
local wanted = require('mcp-tools.mounts.wanted')

local uv = vim.uv

local M = {}

--- Time in ms for a process that a killed bridge has left to end after SIGTERM.
local STOP_GRACE = 2000

---@class mcp-tools.MountReport state of a mount as the bridge reports it
---@field name string
---@field state 'connecting'|'ready'|'waiting'
---@field error string?
---@field restarts integer
---@field pid integer? of its process, which leads a process group
---@field next_ms integer? time until the next attempt
---@field server string? the server's own name
---@field faults string[] what the plugin does not expose of it
---@field at integer time of the report in ns
---@field was_ready boolean?

---@type table<string, table> specs from `mount()`
local added = {}
---@type table<string, true> disabled by `unmount()`
local off = {}
---@type table<string, integer> number of restarts by the user
local generations = {}
---@type mcp-tools.WantedMount[]
local list = {}
---@type table<string, true> paths of configuration files
local files = {}
---@type table<string, mcp-tools.MountReport>
local reports = {}
---@type { channel: integer?, text: string?, names: table<string, true>? } the specs that the bridge has received
local sent = {}

--- Returns a JSON value, nil for null.
---@param value any
---@return any?
local function not_null(value)
  return value ~= vim.NIL and value or nil
end

--- Sends the specs to the bridge if they have changed.
---@param specs table[]
local function send(specs)
  local channel = current.reported.channel
  local text = #specs > 0 and assert(json.encode(specs)) or '[]'
  if not channel or (sent.channel == channel and sent.text == text) then
    return
  elseif sent.channel ~= channel and #specs == 0 then
    return -- a new bridge has none
  end
  sent = { channel = channel, text = text, names = {} }
  for _, each in ipairs(specs) do
    sent.names[each.name] = true
  end
  current.send('mounts', text)
end

--- Reports the fault of a mount once.
---@param each mcp-tools.WantedMount
local function report_fault(each)
  notify.once('mount ' .. each.name, 'warn', vim.split(each.fault, '\n')[1], 'See :McpTools mounts')
end

--- Collects the wanted mounts, and sends them to the bridge.
function M.sync()
  list, files = wanted.collect(added)
  local specs, names = {}, {}
  for _, each in ipairs(list) do
    local mount = each.mount
    if mount and not off[each.name] then
      local resolved, fault = spec.resolve(each.name, mount, generations[each.name] or 0)
      each.fault, names[each.name] = fault, resolved and true or nil
      table.insert(specs, resolved)
    end
    if each.fault then
      report_fault(each)
    end
  end
  for name in pairs(reports) do
    if not names[name] then
      reports[name] = nil
    end
  end
  send(specs)
end

--- Mounts a server, or replaces the one with this name.
---@param name string
---@param mount_spec mcp-tools.MountSpec
function M.mount(name, mount_spec)
  local _, fault = spec.check(name, mount_spec)
  if fault then
    error(fault, 3)
  end
  added[name], off[name] = vim.deepcopy(mount_spec), nil
  M.sync()
end

--- Unmounts a server and ends its calls. One from the options is off until `mount()` or the next start of Neovim.
---@param name string
---@return boolean was_there
function M.unmount(name)
  local was_mounted = added[name] ~= nil
  for _, each in ipairs(list) do
    was_mounted = was_mounted or each.name == name and each.mount ~= nil and not off[name]
  end
  added[name], off[name] = nil, was_mounted or nil
  M.sync()
  return was_mounted
end

--- Restarts one mount or all, including unmounted ones.
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

--- Notifies once of a mount that has never been ready and cannot start.
---@param report mcp-tools.MountReport
---@param previous mcp-tools.MountReport?
local function notify_start(report, previous)
  report.was_ready = report.state == 'ready' or (previous and previous.was_ready)
  if report.state == 'waiting' and report.error and not report.was_ready then
    local cause = sanitize.line(strings.join_lines(report.error, '; '))
    local text = ("mount '%s' cannot start: %s"):format(report.name, cause)
    notify.once('start of mount ' .. report.name, 'warn', text, 'See :McpTools mounts')
  end
end

--- Handles the bridge's report about a mount.
---@param channel integer
---@param data table
function M.reported(channel, data)
  if channel ~= sent.channel or not sent.names[data.name] then
    return -- it was unmounted since, and its name may be used again
  end
  local report = {
    name = data.name,
    state = data.state,
    error = data.error ~= '' and data.error or nil,
    restarts = data.restarts or 0,
    pid = not_null(data.pid),
    next_ms = not_null(data.next_ms),
    server = not_null(data.server),
    faults = data.faults or {},
    at = uv.hrtime(),
  }
  notify_start(report, reports[data.name])
  reports[data.name] = report
end

--- Handles the loss of the bridge, and ends the servers' processes, which a killed bridge leaves behind.
---@param channel integer
function M.lost(channel)
  if channel ~= sent.channel then
    return
  end
  local groups = {}
  for _, report in pairs(reports) do
    if report.pid and uv.kill(-report.pid, 'sigterm') then
      table.insert(groups, report.pid)
    end
  end
  sent, reports = {}, {}
  if #groups > 0 then
    timer.after(STOP_GRACE, function()
      for _, pid in ipairs(groups) do
        uv.kill(-pid, 'sigkill')
      end
    end)
  end
end

---@class mcp-tools.MountStatus
---@field name string
---@field from string where it is configured
---@field state 'ready'|'connecting'|'waiting'|'off'|'wrong'|'stopped'
---@field error string? the last one
---@field restarts integer
---@field server string? the server's own name
---@field pid integer?
---@field next_ms integer? time until the next attempt
---@field faults string[] what the plugin does not expose of it, and why

--- Returns the state of all mounts, in the order of their configuration.
---@return mcp-tools.MountStatus[]
function M.status()
  local out = {}
  for _, each in ipairs(list) do
    local report = reports[each.name] or { restarts = 0, faults = {} }
    local state = report.state or (current.reported.channel and 'connecting' or 'stopped') ---@type string
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

--- Describes a mount in one line.
---@param status mcp-tools.MountStatus
---@return string
function M.describe(status)
  local parts = { ('%s  %s'):format(status.name, status.state) }
  table.insert(parts, status.server)
  if status.restarts > 0 then
    table.insert(parts, ('restarted %d×'):format(status.restarts))
  end
  if status.next_ms then
    table.insert(parts, ('next attempt in %d s'):format(math.ceil(status.next_ms / 1000)))
  end
  table.insert(parts, status.error)
  if #status.faults > 0 then
    table.insert(parts, ('%d items not exposed'):format(#status.faults))
  end
  return sanitize.line(strings.join_lines(table.concat(parts, ', '), '; ')) -- the server chose some of this text
end

--- Returns the configuration files.
---@return table<string, true> paths
function M.files()
  return files
end

---@type table<string, string>
local REASONS = {
  connecting = "mount '%s' is connecting; try again in a moment",
  waiting = "mount '%s' could not be connected (%s)",
  off = "mount '%s' was unmounted",
  wrong = "mount '%s' is not mounted (%s)",
  stopped = "mount '%s' needs the bridge, which is not running (:McpTools start)",
}

--- Returns why a tool of a mount is missing; nil if the name is not one of a mount.
---@param tool string
---@return string?
function M.absence(tool)
  local name = tool:match('^(.-)__')
  for _, status in ipairs(name and M.status() or {}) do
    if status.name == name and REASONS[status.state] then
      return (REASONS[status.state]):format(name, status.error)
    end
  end
end

return M
