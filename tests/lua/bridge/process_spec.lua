-- slow, every Neovim
local t = require('helpers')
local Process = require('mcp-tools.bridge.process')
local log = require('mcp-tools.log')

local FIXTURE = vim.fs.joinpath(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)), '..', 'fixtures', 'fake_bridge.py')

local running = {}

--- Starts the fixture; `seen` collects what its handlers are told.
local function spawn(behaviour, spec)
  local seen = {}
  local process = assert(Process.spawn(
    vim.tbl_extend('force', {
      command = { 'python3', FIXTURE, behaviour },
      env = { MCP_PORT = '4712' },
    }, spec or {}),
    {
      on_ready = function(_, port)
        seen.port = port
      end,
      on_exit = function(_, fault)
        seen.exited, seen.fault = true, fault
      end,
    }
  ))
  table.insert(running, process)
  return process, seen
end

local function is_alive(pid)
  return vim.uv.kill(pid, 0) == 0
end

describe('process', function()
  after_each(function()
    for _, process in ipairs(running) do
      process:stop()
      process:_signal('sigkill')
      t.wait(function()
        return process.state == 'exited'
      end)
    end
    running = {}
  end)

  it('is ready when the ready line came, with its port', function()
    local process, seen = spawn('ready')
    t.eq('starting', process.state)
    t.wait(function()
      return seen.port
    end, 5000)
    t.eq(4712, seen.port)
    t.eq('ready', process.state)
  end)

  it('puts a ready line together that comes in pieces', function()
    local _, seen = spawn('split')
    t.wait(function()
      return seen.port
    end, 5000)
    t.eq(4712, seen.port)
  end)

  it('ends on SIGTERM without a fault', function()
    local process, seen = spawn('ready')
    t.wait(function()
      return seen.port
    end, 5000)
    process:stop()
    t.eq('stopping', process.state)
    t.wait(function()
      return seen.exited
    end)
    t.eq(nil, seen.fault)
    t.ok(not is_alive(process.pid))
  end)

  it('kills one that does not listen to SIGTERM, without waiting for it', function()
    local process, seen = spawn('deaf', { stop_grace = 100 })
    t.wait(function()
      return seen.port
    end, 5000)
    process:stop()
    t.ok(is_alive(process.pid), 'stop() must return at once')
    t.wait(function()
      return seen.exited
    end)
    t.ok(not is_alive(process.pid))
  end)

  it('ends what a wrapper has started, too', function()
    local report = vim.fn.tempname()
    local process, seen = spawn('wrapper', { env = { MCP_PORT = '4712', FAKE_REPORT = report } })
    t.wait(function()
      return seen.port
    end, 5000)
    local child = vim.json.decode(vim.fn.readfile(report)[2]).pid
    t.ok(is_alive(child))
    process:stop()
    t.wait(function()
      return seen.exited
    end)
    t.wait(function()
      return not is_alive(child)
    end)
  end)

  it('names the code and the last line of stderr when it fails', function()
    local _, seen = spawn('fails')
    t.wait(function()
      return seen.exited
    end, 5000)
    t.matches('code 1: MCP_PORT is no number: set it to one', seen.fault)
  end)

  it('does not take an everyday line for the reason of an end', function()
    local process, seen = spawn('ready') -- it has said INFO hello
    t.wait(function()
      return seen.port
    end, 5000)
    vim.uv.kill(process.pid, 'sigkill')
    t.wait(function()
      return seen.exited
    end)
    t.eq('the process ended with signal 9', seen.fault)
  end)

  it('ends one that is not ready in time, with that as the fault', function()
    local process, seen = spawn('silent', { start_timeout = 100 })
    t.wait(function()
      return seen.exited
    end, 5000)
    t.matches('not ready within 0.1 s', seen.fault)
    t.ok(not is_alive(process.pid))
  end)

  it('writes stderr to the log by level; a line without level goes with the one before', function()
    local _, seen = spawn('levels')
    t.wait(function()
      return seen.port and table.concat(log.lines(5), '\n'):find('Traceback line', 1, true)
    end, 5000)
    local text = table.concat(log.lines(5), '\n')
    t.matches('WARN  %[%d+%] bridge: careful', text)
    t.matches('ERROR %[%d+%] bridge: bad', text)
    t.matches('ERROR %[%d+%] bridge:   Traceback line', text)
    t.ok(not text:find('fine detail'), 'DEBUG lies below the level of the log')
  end)

  it('answers with a reason when the program cannot be run', function()
    local process, err = Process.spawn({ command = { '/nonexistent/python' }, env = {} }, {})
    t.eq(nil, process)
    t.matches('cannot run /nonexistent/python: ENOENT', err)
  end)

  it('survives a handler that throws and puts the error into the log', function()
    local done
    table.insert(
      running,
      Process.spawn({ command = { 'python3', FIXTURE, 'ready' }, env = {} }, {
        on_ready = function()
          done = true
          error('handler is broken')
        end,
        on_exit = function() end,
      })
    )
    t.wait(function()
      return done and table.concat(log.lines(3), '\n'):find('handler is broken', 1, true)
    end, 5000)
  end)
end)
