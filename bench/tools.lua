-- The measured tools, and the clock around `wire.execute`. Loaded by init.lua of the measured Neovim.

local register = require('mcp-tools').register
local uv = vim.uv

local M = {}

local read_only = { read_only = true }
local text = { text = { type = 'string', description = 'What comes back', required = true } }

register({
  name = 'echo',
  description = 'Returns its text',
  args = text,
  annotations = read_only,
  execute = function(ctx, args)
    ctx(args.text)
  end,
})

register({
  name = 'later',
  description = 'Returns its text after 5 ms',
  args = text,
  annotations = read_only,
  execute = function(ctx, args)
    vim.defer_fn(function()
      ctx(args.text)
    end, 5)
  end,
})

register({
  name = 'pending',
  description = 'Never ends',
  annotations = read_only,
  execute = function() end,
})

-- Results of every common shape up to 16 KB: short and long text, and what a language server would send.
local function symbols(bytes)
  local list = {}
  while #vim.json.encode(list) < bytes do
    list[#list + 1] = {
      name = 'symbol_' .. #list,
      kind = 12,
      range = { start = { line = #list, character = 2 }, ['end'] = { line = #list, character = 30 } },
    }
  end
  list[#list] = nil
  return list
end

local shapes = { 'short', ('x'):rep(16 * 1024), symbols(1024), symbols(16 * 1024) }
local turn = 0

register({
  name = 'shapes',
  description = 'Results of up to 16 KB, in turn',
  args = text,
  annotations = read_only,
  execute = function(ctx)
    turn = turn + 1
    ctx(shapes[turn % #shapes + 1])
  end,
})

local mebibyte = ('0123456789abcdef'):rep(2 ^ 16)

require('mcp-tools').register_resource({
  uri = 'bench://text',
  name = 'text',
  description = 'A text of 1 MiB',
  read = function(ctx)
    ctx(mebibyte)
  end,
})

--- A list of maximum length.
---@param count integer
function M.register_many(count)
  for i = 1, count do
    register({
      name = ('many_%04d'):format(i),
      description = 'One of many tools, with a description of common length that says when and how to use it.',
      args = {
        path = { type = 'string', description = 'Path of a file', required = true },
        line = { type = 'integer', description = 'Line, from 1', default = 1 },
        mode = { type = 'string', enum = { 'read', 'write', 'append' } },
      },
      annotations = read_only,
      execute = function(ctx)
        ctx('ok')
      end,
    })
  end
end

local times, original

--- The time of `vim.json.encode` for the largest result.
---@return number µs
function M.encoder()
  local found = {}
  for i = 1, 100 do
    local begun = uv.hrtime()
    vim.json.encode(shapes[#shapes])
    found[i] = uv.hrtime() - begun
  end
  table.sort(found)
  return found[50] / 1000
end

--- Starts to measure the time of each `execute` on the main thread.
function M.clock_on()
  local wire = require('mcp-tools.rpc')
  times, original = {}, wire.execute
  wire.execute = function(...)
    local begun = uv.hrtime()
    local reply = original(...)
    times[#times + 1] = uv.hrtime() - begun
    return reply
  end
end

--- Stops the measurement.
---@return { count: integer, p50: number, p99: number } µs
function M.clock_off()
  require('mcp-tools.rpc').execute = original
  table.sort(times)
  local count = #times
  local function percentile(p)
    return (times[math.max(1, math.ceil(count * p))] or 0) / 1000
  end
  return { count = count, p50 = percentile(0.5), p99 = percentile(0.99) }
end

local trusted = {
  name = 'trusted',
  description = 'Would ask before it runs; the user has said always',
  args = {
    path = { type = 'string', description = 'A file', required = true },
    text = { type = 'string', description = 'What comes back', required = true },
  },
  annotations = { destructive = true },
  execute = function(ctx, args)
    ctx(args.text)
  end,
}

local YES = {
  decide = function(_, _, answer)
    answer(true)
  end,
}

---@param list number[] ns
---@return number µs
local function middle(list)
  table.sort(list)
  return list[math.ceil(#list / 2)] / 1000
end

--- The cost of the decision on a call of a trusted tool: the same call, in turn with the gateway and its audit log, and
--- with a replacement that allows everything.
---@param count integer of calls
---@param path string of a file of the project
---@return { with: number, without: number } µs
function M.gateway(count, path)
  local parts = require('mcp-tools.core').get()
  if not parts.registry:find_tool('trusted') then
    register(trusted)
    assert(parts.gateway:trust(parts.registry:find_tool('trusted'), 'trusted'))
  end
  local bare = require('mcp-tools.calls.executor').new({
    registry = parts.registry,
    gateway = YES,
    settings = parts.executor.settings,
  })
  local found = { with = {}, without = {} }
  for i = 1, count do
    for name, executor in pairs({ with = parts.executor, without = bare }) do
      local args, begun = { path = path, text = 'x' }, uv.hrtime()
      local call = executor:execute('trusted', args, { host = 'mcp' })
      found[name][i] = uv.hrtime() - begun
      assert(call.state == 'done', call.state)
    end
  end
  return { with = middle(found.with), without = middle(found.without) }
end

local EDITS, EVERY_MS = 50, 5

--- Edits the buffer of a file like a program that streams into it, and measures the cost.
---@param path string
---@param ms integer
function M.storm(path, ms)
  local bufnr = vim.fn.bufadd(path)
  vim.fn.bufload(bufnr)
  vim.bo[bufnr].undolevels = -1
  M.stormed = nil
  local function used()
    local now = uv.getrusage()
    return (now.utime.sec + now.stime.sec) * 1e6 + now.utime.usec + now.stime.usec
  end
  local edits, begun, before = 0, uv.hrtime(), used()
  local timer = assert(uv.new_timer())
  timer:start(
    EVERY_MS,
    EVERY_MS,
    vim.schedule_wrap(function()
      if timer:is_closing() then
        return
      end
      for _ = 1, EDITS do
        edits = edits + 1
        vim.api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'edit ' .. edits })
      end
      local seconds = (uv.hrtime() - begun) / 1e9
      if seconds * 1000 >= ms then
        timer:close()
        M.stormed = { cost = (used() - before) / edits, seconds = seconds, edits = edits }
      end
    end)
  )
end

--- The Lua heap after two full collections.
---@return number KiB
function M.heap()
  collectgarbage()
  collectgarbage()
  return collectgarbage('count')
end

BENCH = M
