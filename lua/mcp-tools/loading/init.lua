--- What is found rather than registered: tools that other plugins bring along, each kind of place a source.
---
--- There is no timer: who uses the registry finds out that it is time, and the look is taken in a later turn.

local config = require('mcp-tools.config')
local log = require('mcp-tools.log')

local uv = vim.uv

local M = {}

---@class mcp-tools.DiscoverySource
---@field scan fun(registry: mcp-tools.Registry, done: fun(), ttl: number) looks at its places and makes the registry
---  hold what is there; loads only what is new, changed or failed; calls `done` once, now or later; what it keeps for
---  longer than the editor lives counts as known for `ttl` seconds
---@field found fun(): mcp-tools.Found[] what there is
---@field failures fun(): mcp-tools.Failure[] what could not be loaded, until it can be or is gone
---@field reload? fun(registry: mcp-tools.Registry, wanted: (fun(group: string, name: string): boolean), done: fun(),
---  ttl: number)
---  looks as `scan` does, and loads again what is wanted, changed or not; the group is that of registry/source.lua
---@field pattern? string of files (|autocmd-pattern|): when one is written, the source may have to look again
---@field is_ours? fun(path: string): boolean does it? All files of the pattern, when left out
---@field on_stale? fun(fn: fun()) has `fn` called when it has to look again for another reason
---@field age? fun(): integer? ns; of sources that keep what they know for longer than the editor lives

---@class mcp-tools.Found one file or module
---@field file string
---@field tools string[] names, sorted
---@field ms integer? that reading it took

---@class mcp-tools.Failure
---@field source string where: a file, a module, an option
---@field error string

--- In the order in which they are asked; of two tools with one name the first stays.
M.SOURCES = { 'ext', 'python', 'mounts' }

--- Seconds that what was found counts as known; the variable is there for people who write tools.
local TTL, TTL_VARIABLE = 300, 'MCP_TOOLS_CACHE_TTL'

---@class mcp-tools.Scan
---@field at integer ns, when the last look began
---@field busy boolean? one is under way
---@field queue mcp-tools.Look[] what is to be done after it
---@field error string? why the last one broke off

---@class mcp-tools.Look
---@field work fun(source: mcp-tools.DiscoverySource, done: fun())
---@field cb fun()

---@type table<string, mcp-tools.Scan>
local scans = {}
local listeners = {}
local scheduled, watching = false, false
--- ns; until then nothing is to be done. Asked with each call, so it is one comparison.
local due = 0

---@param name string
---@return mcp-tools.DiscoverySource
local function source(name)
  return require('mcp-tools.loading.' .. name) -- by name
end

--- How long what was found counts as known.
---@return number seconds
function M.ttl()
  local seconds = tonumber(vim.env[TTL_VARIABLE])
  return seconds and seconds >= 0 and seconds or TTL
end

--- When a source is to be asked again.
---@param name string
---@return number ns; long ago when it never was
local function due_at(name)
  local scan = scans[name]
  return scan and scan.at + M.ttl() * 1e9 or -math.huge
end

--- Asks a source for the first thing that waits, unless it is busy; then it is asked when it has answered.
---@param name string
local function ask_next(name)
  local scan = scans[name]
  local look = not scan.busy and table.remove(scan.queue, 1)
  if not look then
    return
  end
  scan.busy, scan.at, scan.error = true, uv.hrtime(), nil
  due = math.huge
  for _, each in ipairs(M.SOURCES) do
    due = math.min(due, due_at(each))
  end
  local over = false
  local function done()
    if over then
      return
    end
    over, scan.busy = true, false
    for _, fn in ipairs(vim.list_extend({ look.cb }, listeners)) do
      log.guard('what follows looking for tools', fn)
    end
    ask_next(name)
  end
  local ok, err = log.guard(('looking for tools (%s)'):format(name), function()
    look.work(source(name), done)
  end)
  if not ok then
    scan.error = tostring(err)
    done()
  end
end

--- Has sources do something: each one thing at a time, in the order in which it was wished.
---@param names string[]
---@param work fun(source: mcp-tools.DiscoverySource, done: fun())
---@param cb? fun() called when all have
local function ask(names, work, cb)
  local left = #names
  for _, name in ipairs(names) do
    scans[name] = scans[name] or { at = uv.hrtime(), queue = {} }
    table.insert(scans[name].queue, {
      work = work,
      cb = function()
        left = left - 1
        if left == 0 and cb then
          cb()
        end
      end,
    })
  end
  for _, name in ipairs(names) do
    ask_next(name)
  end
end

---@param registry mcp-tools.Registry
local function scanning(registry)
  return function(each, done)
    each.scan(registry, done, M.ttl())
  end
end

--- A tool that is being written is there when its file is.
---@param registry mcp-tools.Registry
local function watch(registry)
  if watching then
    return
  end
  watching = true
  local group = vim.api.nvim_create_augroup('mcp-tools.loading', {})
  for _, name in ipairs(M.SOURCES) do
    local each = source(name)
    local function look()
      M.refresh(registry, name)
    end
    if each.pattern then
      vim.api.nvim_create_autocmd('BufWritePost', {
        group = group,
        pattern = each.pattern,
        callback = function(event)
          local path = uv.fs_realpath(event.match)
          if path and (each.is_ours == nil or each.is_ours(path)) then
            look()
          end
        end,
      })
    end
    if each.on_stale then
      each.on_stale(look)
    end
  end
end

--- Before the registry is used: looks where nobody has looked yet, and plans a new look where that is long ago.
---@param registry mcp-tools.Registry
function M.use(registry)
  if uv.hrtime() < due or not config.is_setup() then
    return
  end
  watch(registry)
  local new, stale = {}, {}
  for _, name in ipairs(M.SOURCES) do
    if not scans[name] then
      table.insert(new, name)
    elseif not scans[name].busy and uv.hrtime() >= due_at(name) then
      table.insert(stale, name)
    end
  end
  ask(new, scanning(registry))
  if #stale > 0 and not scheduled then
    scheduled = true
    vim.schedule(function()
      scheduled = false
      ask(stale, scanning(registry))
    end)
  end
end

--- Looks again, at one source or all.
---@param registry mcp-tools.Registry
---@param name? string a source
---@param cb? fun()
function M.refresh(registry, name, cb)
  watch(registry)
  ask(name and { name } or M.SOURCES, scanning(registry), cb)
end

--- Has the sources load again what is wanted, changed or not.
---@param registry mcp-tools.Registry
---@param wanted fun(group: string, name: string): boolean
---@param cb? fun()
function M.reload(registry, wanted, cb)
  watch(registry)
  ask(M.SOURCES, function(each, done)
    if each.reload then
      each.reload(registry, wanted, done, M.ttl())
    else
      each.scan(registry, done, M.ttl())
    end
  end, cb)
end

--- Calls `fn` after each look.
---@param fn fun()
---@return fun() stop
function M.on_look(fn)
  table.insert(listeners, fn)
  return function()
    listeners = vim.tbl_filter(function(listener)
      return listener ~= fn
    end, listeners)
  end
end

--- What could not be loaded, of all sources.
---@return mcp-tools.Failure[]
function M.failures()
  local list = {}
  for _, name in ipairs(M.SOURCES) do
    if scans[name] then
      vim.list_extend(list, source(name).failures())
      if scans[name].error then
        table.insert(list, { source = 'looking for tools: ' .. name, error = scans[name].error })
      end
    end
  end
  return list
end

---@class mcp-tools.SourceReport
---@field name string
---@field age_ms integer? since the last look
---@field ttl_ms integer
---@field found mcp-tools.Found[]
---@field failures mcp-tools.Failure[]

--- What each source has found, how long ago, and what failed.
---@return mcp-tools.SourceReport[]
function M.report()
  local list = {}
  for _, name in ipairs(M.SOURCES) do
    local each, scan = source(name), scans[name]
    local age = each.age and each.age() or scan and uv.hrtime() - scan.at
    table.insert(list, {
      name = name,
      age_ms = age and math.floor(age / 1e6),
      ttl_ms = math.floor(M.ttl() * 1000),
      found = each.found(),
      failures = each.failures(),
    })
  end
  return list
end

return M
