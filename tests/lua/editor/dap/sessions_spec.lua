-- Debug sessions as the events of a DAP client report them, and their output.

local Output = require('mcp-tools.editor.dap.output')
local sessions = require('mcp-tools.editor.dap.sessions')
local t = require('helpers')

describe('sessions', function()
  vim.opt.runtimepath:prepend(t.CHECKOUT .. '/tests/lua/support/dap_client')

  local dap, next_id

  --- A session as a client has it, without an adapter.
  local function session(parent)
    next_id = next_id + 1
    return { id = next_id, config = { name = 'made', type = 'none' }, parent = parent, on_close = {} }
  end

  --- Sends an event of one.
  local function event(name, of, body)
    for _, listener in pairs(dap.listeners.before['event_' .. name]) do
      listener(of, body)
    end
    return body
  end

  local function response(name, of, ...)
    for _, listener in pairs(dap.listeners.before[name]) do
      listener(of, ...)
    end
  end

  before_each(function()
    package.loaded.dap = nil
    dap = require('dap')
    next_id = 0
    sessions.attach()
  end)

  it('a child session stops and prints for both, and ends alone', function()
    local parent = session()
    local child = session(parent)
    event('process', parent, {})
    event('output', child, { category = 'stdout', output = 'from the child\n' })
    event('stopped', child, { threadId = 7, reason = 'breakpoint' })
    local root = sessions.get(parent.id)
    local state, which = sessions.state(root)
    t.eq({ 'stopped', child.id }, { state, which.id })
    t.eq({ child.id, parent.id }, { sessions.stopped({ session_id = parent.id }).id, which.root })
    t.eq({ child.id, 'from the child' }, { sessions.active({}).id, root.output:after(0)[1].text })
    event('terminated', child, {})
    t.eq({ parent.id, 'running' }, { sessions.active({}).id, (sessions.state(root)) })
    t.eq('running', (sessions.state(which)))
    event('terminated', parent)
    t.eq('ended', (sessions.state(root)))
  end)

  describe('a stop', function()
    it('is the first one, if other threads stop meanwhile', function()
      local one = session()
      event('stopped', one, { threadId = 1, reason = 'breakpoint' })
      event('stopped', one, { threadId = 2, reason = 'breakpoint' })
      event('continued', one, { threadId = 2, allThreadsContinued = false })
      local entry = sessions.get(one.id)
      t.eq(1, entry.stop.thread_id)
      event('continued', one, { threadId = 1, allThreadsContinued = false })
      t.eq(nil, entry.stop)
      event('stopped', one, { threadId = 2, reason = 'step' })
      event('continued', one, {})
      t.eq('running', (sessions.state(entry)))
    end)

    it("does not move the cursor after a tool's step, but after one of the user", function()
      local one = session()
      t.eq(nil, event('stopped', one, { threadId = 1, reason = 'entry' }).preserveFocusHint)
      local ours = { threadId = 1 }
      sessions.resuming(sessions.get(one.id), ours)
      response('next', one, nil, {}, ours)
      t.eq(true, event('stopped', one, { threadId = 1, reason = 'step' }).preserveFocusHint)
      response('next', one, nil, {}, { threadId = 1 })
      t.eq(nil, event('stopped', one, { threadId = 1, reason = 'step' }).preserveFocusHint)
    end)

    it('is restored if the adapter refuses to continue', function()
      local one = session()
      event('stopped', one, { threadId = 1, reason = 'entry' })
      local entry = sessions.get(one.id)
      local undo = sessions.resuming(entry, { threadId = 1 })
      t.eq('running', (sessions.state(entry)))
      undo()
      t.eq('stopped', (sessions.state(entry)))
    end)

    it('before the first call of a tool is known', function()
      local one = session()
      one.stopped_thread_id = 3
      dap.sessions()[one.id] = one
      package.loaded.dap = setmetatable({}, { __index = dap }) -- loaded anew
      sessions.attach()
      t.eq({ 3, 'stopped before' }, { sessions.get(one.id).stop.thread_id, sessions.get(one.id).stop.reason })
    end)
  end)

  it('a breakpoint is bound as the adapter reports it, also later', function()
    local one = session()
    response(
      'setBreakpoints',
      one,
      nil,
      { breakpoints = { { verified = false, id = 5, message = 'not yet' }, { verified = true, line = 9 } } },
      { source = { path = '/a.py' }, breakpoints = { { line = 3 }, { line = 8 } } }
    )
    local bound = sessions.get(one.id).bound['/a.py']
    t.eq({ false, 'not yet', 3 }, { bound[3].verified, bound[3].message, bound[3].line })
    t.eq({ true, 9 }, { bound[8].verified, bound[8].line })
    event('breakpoint', one, { reason = 'changed', breakpoint = { id = 5, verified = true, line = 4 } })
    t.eq({ true, nil, 4 }, { bound[3].verified, bound[3].message, bound[3].line })
  end)

  it('a session of a tool is distinguished from one that the user starts at the same time', function()
    local wanted = sessions.expect({ name = 'of a tool', type = 'none', request = 'launch' })
    local theirs = session()
    theirs.config.request = 'launch'
    event('process', theirs, {})
    t.eq({ nil, 'user' }, { wanted.entry, sessions.get(theirs.id).resumed_by })
    local ours = session()
    ours.config = { name = 'of a tool', type = 'none', request = 'launch' }
    event('process', ours, {})
    t.eq(ours.id, wanted.entry.id)
  end)

  describe('ended sessions', function()
    it('are kept, up to five', function()
      for _ = 1, 9 do
        local one = session()
        event('output', one, { output = 'text\n' })
        event('terminated', one)
      end
      t.eq({ 5, 5, 9 }, { #sessions.all(), sessions.all()[1].id, sessions.all()[5].id })
      t.eq(9, sessions.any({}).id)
      t.eq('not_found', sessions.get(1) == nil and select(2, sessions.any({ session_id = 1 })).code)
    end)

    it('can also be closed, which notifies waiting calls', function()
      local one = session()
      event('process', one, {})
      local told = 0
      local stop = sessions.on_change(function() told = told + 1 end)
      for _, on_close in pairs(one.on_close) do
        on_close(one)
      end
      t.wait(function() return told > 0 and sessions.get(one.id).ended end)
      stop()
    end)
  end)
end)

local function texts(output, since) return t.field('text', output:after(since or 0)) end

describe('output', function()
  it('is split into lines, however it arrives', function()
    local output = Output.new()
    output:add('stdout', 'one')
    output:add('stdout', ' more\r\ntwo\n\nth')
    output:add('stderr', 'bad\n')
    output:add('stdout', 'ree')
    t.eq({ 'one more', 'two', '', 'three', 'bad' }, texts(output))
    t.eq({ 'three', 'bad' }, texts(output, 3))
    output.reported = output.count
    output:add('stdout', ' four\n')
    t.eq({ ' four' }, texts(output, output.reported), 'what was told does not change')
  end)

  it('is limited in lines, and in the length of a line', function()
    local output = Output.new()
    for i = 1, Output.MAX_LINES + 5 do
      output:add('stdout', i .. '\n')
    end
    t.eq({ Output.MAX_LINES, '6' }, { #texts(output), texts(output)[1] })
    output:add('stdout', ('x'):rep(10000))
    output:add('stdout', ('x'):rep(10000))
    t.eq(4000, #texts(output, output.count - 1)[1])
  end)
end)
