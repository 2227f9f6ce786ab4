-- slow, every Neovim
local t = require('helpers')
local Process = require('mcp-tools.bridge.process')
local log = require('mcp-tools.log')

local FIXTURE = t.FIXTURES .. '/fake_bridge.py'

local running = {}

--- Starts the fixture; `seen` collects the arguments of its handlers.
local function spawn(behaviour, env)
  local seen = {}
  local process = assert(Process.spawn({
    command = { 'python3', FIXTURE, behaviour },
    cwd = '/',
    env = vim.tbl_extend('force', { MCP_PORT = '4712' }, env or {}),
    stdin = '',
  }, {
    on_ready = function(_, port)
      seen.port = port
      error('handler is broken') -- is logged
    end,
    on_exit = function(_, fault)
      seen.exited, seen.fault = true, fault
    end,
  }))
  table.insert(running, process)
  function seen.wait(field)
    t.wait(function() return seen[field] end, 10000, field)
  end
  return process, seen
end

local function is_alive(pid) return vim.uv.kill(pid, 0) == 0 end

describe('process', function()
  after_each(function()
    for _, process in ipairs(running) do
      process:stop()
      process:signal('sigkill')
      t.wait(function() return process.state == 'exited' end)
    end
    running = {}
    Process.START_TIMEOUT, Process.STOP_GRACE = 20000, 3000
  end)

  it('is ready after the ready line, even in pieces, and ends on SIGTERM without a fault', function()
    for _, behaviour in ipairs({ 'ready', 'split' }) do
      local process, seen = spawn(behaviour)
      t.eq('starting', process.state)
      seen.wait('port')
      t.eq({ 4712, 'ready' }, { seen.port, process.state })
      process:stop()
      t.eq('stopping', process.state)
      seen.wait('exited')
      t.eq(nil, seen.fault)
      t.ok(not is_alive(process.pid))
    end
    t.matches('handler is broken', table.concat(log.lines(20), '\n'))
  end)

  it('kills one that ignores SIGTERM, without waiting for it', function()
    Process.STOP_GRACE = 100
    local process, seen = spawn('deaf')
    seen.wait('port')
    process:stop()
    t.ok(is_alive(process.pid))
    seen.wait('exited')
    t.ok(not is_alive(process.pid))
  end)

  it('ends the child of a wrapper as well', function()
    local report = vim.fn.tempname()
    local process, seen = spawn('wrapper', { FAKE_REPORT = report })
    seen.wait('port')
    local child = vim.json.decode(vim.fn.readfile(report)[2]).pid
    t.ok(is_alive(child))
    process:stop()
    seen.wait('exited')
    t.wait(function() return not is_alive(child) end)
  end)

  it('reports the exit code and the last error on stderr, but no ordinary line', function()
    local _, seen = spawn('fails')
    seen.wait('exited')
    t.matches('code 1: MCP_PORT is no number: set it to one', seen.fault)
    local process, other = spawn('ready') -- it has said INFO hello
    other.wait('port')
    vim.uv.kill(process.pid, 'sigkill')
    other.wait('exited')
    t.eq('the process ended with signal 9', other.fault)
  end)

  it('ends one that is not ready in time, with that as the fault', function()
    Process.START_TIMEOUT = 100
    local process, seen = spawn('silent')
    seen.wait('exited')
    t.matches('not ready within 0.1 s', seen.fault)
    t.ok(not is_alive(process.pid))
  end)

  it('writes stderr to the log by level; a line without a level belongs to the one before', function()
    local _, seen = spawn('levels')
    seen.wait('port')
    local text
    t.wait(function()
      text = table.concat(log.lines(10), '\n')
      return text:find('Traceback line', 1, true)
    end)
    t.matches({ 'WARN  %[%d+%] bridge: careful', 'ERROR %[%d+%] bridge: bad' }, text)
    t.matches('ERROR %[%d+%] bridge:   Traceback line', text)
    t.ok(not text:find('fine detail')) -- DEBUG is below the level of the log
  end)

  it('returns an error when the command cannot be run', function()
    local process, err = Process.spawn({ command = { '/nonexistent/python' }, cwd = '/', env = {}, stdin = '' }, {})
    t.eq(nil, process)
    t.matches('cannot run /nonexistent/python: ', err)
  end)
end)
