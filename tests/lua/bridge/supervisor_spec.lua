-- slow
local notifications = require('notifications')
local t = require('helpers')
local Supervisor = require('mcp-tools.bridge.supervisor')

local FIXTURE = vim.fs.joinpath(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)), '..', 'fixtures', 'fake_bridge.py')

local supervisor, report, gave_up

local function starts()
  local out = {}
  if vim.uv.fs_stat(report) then
    for _, line in ipairs(vim.fn.readfile(report)) do
      table.insert(out, vim.json.decode(line))
    end
  end
  return out
end

local function new(behaviour, opts)
  report, gave_up = vim.fn.tempname(), {}
  supervisor = Supervisor.new(vim.tbl_extend('force', {
    backoff = 10,
    launch = function(done)
      done({ command = { 'python3', FIXTURE, behaviour }, env = { MCP_PORT = '4713', FAKE_REPORT = report } })
    end,
    on_give_up = function(err)
      table.insert(gave_up, err)
    end,
  }, opts or {}))
  return supervisor
end

local function reach(state)
  t.wait(function()
    return supervisor.state == state
  end, 5000, 'state ' .. state)
end

describe('supervisor', function()
  after_each(function()
    supervisor:stop()
    reach('stopped')
  end)

  it('calls on_ready of everyone who asked, before and after it is ready', function()
    new('slow')
    local ports = {}
    local function watcher(name)
      return {
        on_ready = function(port)
          ports[name] = port
        end,
      }
    end
    supervisor:start(watcher('first'))
    supervisor:start(watcher('second'))
    reach('ready')
    supervisor:start(watcher('third'))
    t.wait(function()
      return ports.third
    end)
    t.eq({ first = 4713, second = 4713, third = 4713 }, ports)
    t.eq(1, #starts())
  end)

  it('calls the next on_ready although one throws', function()
    notifications.collect()
    new('ready')
    local port
    supervisor:start({
      on_ready = function()
        error('mine is broken')
      end,
    })
    supervisor:start({
      on_ready = function(p)
        port = p
      end,
    })
    t.wait(function()
      return port
    end, 5000)
    notifications.wait('mine is broken')
    notifications.restore()
  end)

  it('starts anew after stop() and start() at once; the old end does not touch the new process', function()
    new('ready')
    local stopped, ready = 0, 0
    supervisor:start({
      on_stop = function()
        stopped = stopped + 1
      end,
    })
    reach('ready')
    local old = supervisor.process
    supervisor:stop()
    t.eq('stopping', supervisor.state)
    t.eq(nil, supervisor.port)
    supervisor:start({
      on_ready = function()
        ready = ready + 1
      end,
      on_stop = function()
        stopped = stopped + 100
      end,
    })
    reach('ready')
    t.ok(supervisor.process ~= old)
    t.wait(function()
      return ready == 1
    end)
    t.eq(1, stopped)
    t.eq('exited', old.state)
    t.eq(2, #starts())
    t.eq(supervisor.process.pid, starts()[2].pid)
  end)

  it('stops for good after start, stop, start, stop', function()
    new('ready')
    local stopped = 0
    local function on_stop()
      stopped = stopped + 1
    end
    supervisor:start({ on_stop = on_stop })
    supervisor:stop()
    supervisor:start({ on_stop = on_stop })
    supervisor:stop()
    reach('stopped')
    t.wait(function()
      return stopped == 2
    end)
    t.ok(not supervisor:is_wanted())
    t.eq(nil, supervisor.process)
  end)

  it('starts again after a crash; nobody is told of an end', function()
    new('crash-once')
    local ready, stopped = 0, false
    supervisor:start({
      on_ready = function()
        ready = ready + 1
      end,
      on_stop = function()
        stopped = true
      end,
    })
    t.wait(function()
      return #starts() == 2 and supervisor.state == 'ready'
    end, 5000)
    t.eq(1, ready)
    t.eq(false, stopped)
    t.eq(1, supervisor.tries)
    t.matches('signal 9', supervisor.last_error)
  end)

  it('forgets the crashes after a stable time', function()
    new('crash-once', { stable = 150 })
    supervisor:start()
    t.wait(function()
      return #starts() == 2 and supervisor.state == 'ready'
    end, 5000)
    t.wait(function()
      return supervisor.tries == 0
    end)
  end)

  it('gives up after five new tries, says so once, and starts afresh when asked', function()
    new('fails', { backoff = 1 })
    local stopped = 0
    supervisor:start({
      on_stop = function()
        stopped = stopped + 1
      end,
    })
    t.wait(function()
      return supervisor.state == 'failed'
    end, 10000)
    t.eq(6, #starts())
    t.eq(1, #gave_up)
    t.eq(1, stopped)
    t.matches('MCP_PORT is no number', supervisor.last_error)
    supervisor:start()
    t.eq(0, supervisor.tries)
    t.eq('starting', supervisor.state)
  end)

  it('starts again after an end that nobody here has asked for, however orderly', function()
    new('ends-once')
    supervisor:start()
    t.wait(function()
      return #starts() == 2 and supervisor.state == 'ready'
    end, 5000)
    t.eq('the process ended with code 0', supervisor.last_error)
  end)

  it('does not start when the command was found only after stop()', function()
    local found
    new('ready', {
      launch = function(done)
        found = done
      end,
    })
    supervisor:start()
    supervisor:stop()
    found({ command = { 'python3', FIXTURE, 'ready' }, env = {} })
    t.eq(nil, supervisor.process)
    t.eq('stopped', supervisor.state)
  end)

  it('restarts on request, and keeps those who watch', function()
    new('ready')
    local stopped = 0
    supervisor:start({
      on_stop = function()
        stopped = stopped + 1
      end,
    })
    reach('ready')
    supervisor:restart()
    t.wait(function()
      return #starts() == 2 and supervisor.state == 'ready'
    end, 5000)
    t.eq(0, stopped)
    supervisor:stop()
    reach('stopped')
    t.eq(1, stopped)
  end)

  it('calls the callback of every stop()', function()
    new('ready')
    local called = 0
    local function count()
      called = called + 1
    end
    supervisor:start()
    reach('ready')
    supervisor:stop(count)
    supervisor:stop(count)
    t.wait(function()
      return called == 2
    end)
    supervisor:stop(count)
    t.wait(function()
      return called == 3
    end)
  end)
end)
