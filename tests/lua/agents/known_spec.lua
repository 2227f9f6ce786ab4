-- What known agents send and receive; tests/clients/test_terminal_agents.py runs the agents themselves.

local agents = require('agent_sessions')
local changes = require('mcp-tools.editor.edit.history')
local context = require('mcp-tools.editor.context')
local core = require('mcp-tools.core')
local project = require('editor_project')
local proposals = require('mcp-tools.editor.agents.proposals')
local edit = require('mcp-tools.editor.edit')
local review = require('mcp-tools.editor.review')
local t = require('helpers')

local ENDPOINT = { port = 4321, token = 'secret', socket = '/run/s.sock', pid = 7, roots = { '/a', '/b' } }
local session, file

context.on_change(function() end)

local function open(name, client)
  session = agents.open(name, client)
  return session
end

local function pushes(name) return require('mcp-tools.agents.known.' .. name).context(context.get(), session) end

--- The first notification of the session.
local function first_push()
  return t.wait(function() return session.pushed[1] end, 5000, 'a notification')
end

local function agent(name) return require('mcp-tools.agents.known.' .. name) end

local function buffer_lines() return vim.api.nvim_buf_get_lines(0, 0, -1, false) end

--- Gemini CLI proposes a new text for a file.
---@return mcp-tools.Review
local function gemini_proposes(text, path)
  agents.call(session, 'openDiff', { filePath = path or file, newContent = text })
  return agents.review(session)
end

after_each(function()
  if session then
    agents.close(session)
    session = nil
  end
end)
project.each(nil, function() file = project.edit('a.txt', 'one\ntwo\nthree\n') end)

describe('Claude Code', function()
  local function begin()
    local args = { old_file_path = file, new_file_path = file, tab_name = 'tab' }
    args.new_file_contents = 'ONE\ntwo\nthree\n'
    return agents.begin(session or open('claude', 'claude-code'), 'openDiff', args)
  end

  local function texts(call) return t.field('text', agents.result(call).content) end

  it('gets a rejection when the user closes the window or the buffer', function()
    local call = begin()
    agents.review(session).close(agents.review(session), 'the user has closed it')
    t.eq({ 'DIFF_REJECTED', 'tab' }, texts(call))
    call = begin()
    agents.review(session)
    vim.cmd('silent bwipeout! ' .. file)
    t.eq({ 'DIFF_REJECTED', 'tab' }, texts(call))
  end)

  it('can close its own proposals, but not those of another session', function()
    local first = open('claude')
    local first_call = begin()
    agents.review(first)
    t.eq('CLOSED_0_DIFF_TABS', agents.value(open('claude'), 'closeAllDiffTabs'))
    t.eq({ 'running', 'CLOSED_1_DIFF_TABS' }, { first_call.state, (agents.value(first, 'closeAllDiffTabs')) })
    agents.close(first)
  end)

  it('gets no answer when the bridge goes away, so that it continues to ask in its terminal', function()
    local call = begin()
    agents.review(session)
    agent('claude').left(session, true)
    t.eq({ 0, 'running' }, { review.count(), call.state })
  end)

  it('is notified of the selection and of its end', function()
    open('claude', 'claude-code')
    vim.api.nvim_feedkeys(vim.keycode('jV<Esc>'), 'xt', false)
    local range = { start = { line = 1, character = 0 }, ['end'] = { line = 1, character = 3 }, isEmpty = false }
    local params = { text = 'two', filePath = file, fileUrl = vim.uri_from_fname(file), selection = range }
    t.eq({ { method = 'selection_changed', params = params } }, pushes('claude'))
    vim.b.sensitive = true
    local push = pushes('claude')[1].params
    t.eq({ '', file, true, {} }, { push.text, push.filePath, push.selection.isEmpty, (pushes('claude')) })
  end)

  it('gets 0-based lines, opencode 1-based ones', function()
    local function mention(client, place)
      return agent('claude').mention({ client = client, data = {} }, vim.tbl_extend('error', { path = file }, place))
    end
    local place = { first = 2, last = 3 }
    local params = { filePath = file, lineStart = 1, lineEnd = 2 }
    t.eq({ method = 'at_mentioned', params = params }, mention('claude-code', place))
    t.eq({ filePath = file, lineStart = 2, lineEnd = 3 }, mention('opencode', place).params)
    t.eq({ filePath = file }, mention('claude-code', {}).params)
    t.eq({ filePath = file, lineStart = 1, lineEnd = 1 }, mention('opencode', {}).params)
    open('claude', 'opencode')
    t.eq(1, pushes('claude')[1].params.selection.start.line)
  end)

  it('can open a file at a text', function()
    open('claude')
    t.matches('^Opened file', agents.value(session, 'openFile', { filePath = file, startText = 'three' }))
    t.eq(3, vim.api.nvim_win_get_cursor(0)[1])
  end)

  it('cannot open a sensitive file, or one outside of the directories that it was given', function()
    open('claude')
    local outside = project.write(project.base .. '/outside.txt', 'one\n')
    local link = project.root .. '/link.txt'
    vim.uv.fs_symlink(outside, link)
    for path, why in pairs({ [outside] = 'outside', [link] = 'outside', [project.root .. '/.env'] = 'sensitive' }) do
      for _, front in ipairs({ true, false }) do
        t.fails('access_denied', why, agents.call(session, 'openFile', { filePath = path, makeFrontmost = front }))
      end
    end
    t.eq({ file, nil }, { vim.api.nvim_buf_get_name(0), require('mcp-tools.editor.buffer').of_path(outside) })
    require('mcp-tools.editor.agents').set_roots({ project.root, vim.fs.dirname(outside) })
    t.matches('^Opened file', agents.value(session, 'openFile', { filePath = outside }))
    require('mcp-tools.editor.agents').set_roots({})
  end)
end)

it('a tool of an agent that does more than read asks the user first', function()
  local tools, runs = agent('claude').tools, 0
  table.insert(tools, {
    name = 'writeFile',
    description = 'Writes a file',
    annotations = { read_only = false },
    execute = function(ctx)
      runs = runs + 1
      ctx('written')
    end,
  })
  open('claude')
  table.remove(tools)
  local gateway, answer = core.get().gateway, nil
  local ask = gateway.ask
  gateway.ask = function(_, fn) answer = fn end
  local call = agents.begin(session, 'writeFile')
  t.eq({ 'function', false }, { type(answer), call:ended() })
  answer('deny')
  t.eq({ 'access_denied', 0 }, { call.outcome.error.code, runs })
  call = agents.begin(session, 'writeFile')
  answer('once')
  t.eq({ 'done', 1 }, { call.state, runs })
  gateway.ask = ask
end)

describe('Gemini CLI and Qwen Code', function()
  it('get the open files with 1-based positions, and nothing about trust', function()
    open('gemini')
    vim.fn.cursor(2, 2)
    local state = pushes('gemini')[1].params.workspaceState
    t.eq(nil, state.isTrusted)
    local active = state.openFiles[1]
    t.eq({ file, true, { line = 2, character = 2 } }, { active.path, active.isActive, active.cursor })
  end)

  local agent_sessions = require('mcp-tools.editor.agents')

  local function lose_bridge()
    agent_sessions.remove(session.key)
    agent('gemini').left(session, true)
  end

  --- The agent has a new session with the same key.
  local function reconnect()
    session = setmetatable({ data = {}, pushed = {} }, { __index = session })
    agent_sessions.add(session)
  end

  it('keep their proposals while the bridge is away, and get the outcome when it is back', function()
    open('gemini')
    gemini_proposes('ONE\ntwo\nthree\n')
    lose_bridge()
    t.eq(1, review.count())
    review.current():decide_rest('accepted')
    reconnect()
    agent('gemini').opened(session)
    t.eq({ 'ide/diffAccepted', { filePath = file, content = 'ONE\ntwo\nthree\n' } }, first_push())
  end)

  it('can close an earlier proposal before their stream is open again', function()
    open('gemini')
    gemini_proposes('ONE\ntwo\nthree\n')
    lose_bridge()
    reconnect()
    local closed = agents.value(session, 'closeDiff', { filePath = file, suppressNotification = true })
    t.eq({ content = 'ONE\ntwo\nthree\n' }, closed)
    agent('gemini').opened(session)
    t.eq({ 0, {} }, { review.count(), session.pushed })
  end)

  it('get the text that the user has made of the proposal when they close it', function()
    open('qwen')
    gemini_proposes('ONE\ntwo\nTHREE\n'):reject(1, 1)
    t.eq({ content = 'one\ntwo\nTHREE\n' }, agents.value(session, 'closeDiff', { filePath = file }))
    t.eq({ { 'ide/diffRejected', { filePath = file } } }, session.pushed)
    t.eq({}, agents.value(session, 'closeDiff', { filePath = file }))
  end)
end)

describe('Copilot CLI', function()
  it('is trusted only in directories that its configuration trusts', function()
    vim.env.COPILOT_HOME = vim.fn.tempname()
    vim.fn.mkdir(vim.env.COPILOT_HOME, 'p')
    vim.fn.writefile({ vim.json.encode({ trustedFolders = { '/a' } }) }, vim.env.COPILOT_HOME .. '/config.json')
    local function look(roots, is_trusted)
      agent('copilot').discovery(vim.tbl_extend('force', ENDPOINT, { roots = roots }))
      local one, read = open('copilot'), false
      require('mcp-tools.privacy.read').read(vim.env.COPILOT_HOME .. '/config.json', 1000, function() read = true end)
      t.wait(function() -- two threads read it
        return read and (not is_trusted or one.data.trusted)
      end)
      agents.close(one)
      session = nil
      return one.data.trusted == true
    end
    t.eq({ true, false, false }, { look({ '/a/b' }, true), look({ '/a', '/b' }), look({}) })
    vim.env.COPILOT_HOME = nil
  end)

  it('gets no context before the user trusts the directory or has given it work', function()
    open('copilot')
    t.eq({ {}, nil }, { pushes('copilot'), (agent('copilot').mention(session, { path = file, lines = 3 })) })
    agents.value(session, 'update_session_name', { name = 'x' })
    t.eq('selection_changed', session.pushed[1][1])
    t.ok(agent('copilot').mention(session, { path = file, lines = 3 }))
  end)

  it('gets a trusted discovery file only if the user has set that option', function()
    local function is_told(trusted)
      local endpoint = vim.tbl_extend('force', ENDPOINT, { trusted = trusted })
      return agent('copilot').discovery(endpoint)[1].body.isTrusted
    end
    t.eq(true, is_told(true))
    open('copilot')
    t.ok(session.data.trusted)
    t.eq(false, is_told(nil))
  end)

  local function propose()
    open('copilot')
    local args = { original_file_path = file, new_file_contents = 'ONE\ntwo\nTHREE\nfour\n', tab_name = 't' }
    local call = agents.begin(session, 'open_diff', args)
    return agents.review(session), function() return vim.json.decode(agents.result(call).content[1].text) end
  end

  it('gets one decision for the whole file, since it accepts no other text', function()
    local one, answer = propose()
    t.eq(false, (one:edit(1, 1, { 'mine' })))
    one:accept(1, 1)
    t.eq({ 'SAVED', 'accepted' }, { answer().result, one.ended })
    one, answer = propose()
    one:reject(1, 2)
    t.eq({ 'REJECTED', 'rejected' }, { answer().result, one.ended })
  end)

  it('writes the accepted text while the other unsaved lines of the buffer stay', function()
    vim.api.nvim_buf_set_lines(0, 1, 2, false, { 'of the user' })
    local one, answer = propose()
    one:decide_rest('accepted')
    t.eq('SAVED', answer().result)
    project.write('a.txt', 'ONE\ntwo\nTHREE\nfour\n')
    t.wait(function() return vim.deep_equal({ 'ONE', 'of the user', 'THREE', 'four' }, buffer_lines()) end)
    t.eq(true, vim.bo.modified)
    vim.cmd('silent write') -- without a question
    t.eq({ 'ONE', 'of the user', 'THREE', 'four' }, vim.fn.readfile(file))
  end)

  it('gets no acceptance when the user has typed into the hunk or the file has changed', function()
    local one, answer = propose()
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'of the user' })
    t.eq({ false, nil }, { (one:decide_rest('accepted')), one.ended })
    vim.cmd('silent undo')
    project.write('a.txt', 'one\ntwo\nof another\n')
    t.eq({ true, 'REJECTED' }, { (one:decide_rest('accepted')), answer().result })
    t.matches('changed on disk', answer().message)
  end)

  it('gets diagnostics whose message is not a string', function()
    open('copilot')
    local space = vim.api.nvim_create_namespace('not text')
    local validate = vim.validate
    vim.diagnostic.config({ virtual_text = false }, space) -- the screen of 0.10 shows text alone
    vim.validate = function() end
    vim.diagnostic.set(space, 0, {
      { lnum = 0, col = 0, message = { kind = 'plaintext', value = 'marked up' } },
      { lnum = 1, col = 0, message = 7 },
    })
    vim.validate = validate
    local files = agents.value(session, 'get_diagnostics', {})
    t.eq({ 'marked up', '' }, { files[1].diagnostics[1].message, files[1].diagnostics[2].message })
    vim.diagnostic.reset(space)
  end)

  it('is notified of the lines that the user mentions', function()
    open('copilot')
    session.data.trusted = true
    local params = agent('copilot').mention(session, { path = file, first = 2, last = 3 }).params
    t.eq({ 1, 2 }, { params.selection.start.line, params.selection['end'].line })
  end)

  it('can close a proposal before it has been opened', function()
    open('copilot')
    local first = { original_file_path = file, new_file_contents = 'ONE\ntwo\nTHREE\n', tab_name = 'a (1)' }
    t.eq(true, agents.value(session, 'close_diff', { tab_name = 'a (1)' }).already_closed)
    local answer = agents.value(session, 'open_diff', first)
    t.eq({ 'REJECTED', 'closed_via_tool', 0 }, { answer.result, answer.trigger, review.count() })
    agents.begin(session, 'open_diff', vim.tbl_extend('force', first, { tab_name = 'a (2)' }))
    agents.review(session)
    t.eq(false, agents.value(session, 'close_diff', { tab_name = 'a (2)' }).already_closed)
  end)

  it('gets each change of diagnostics', function()
    open('copilot')
    agents.value(session, 'update_session_name', { name = 'x' })
    local space = vim.api.nvim_create_namespace('copilot spec')
    vim.diagnostic.set(space, 0, { { lnum = 0, col = 0, message = 'oh' } })
    session.pushed = {}
    pushes('copilot')
    t.eq('diagnostics_changed', session.pushed[1][1])
    t.eq('oh', session.pushed[1][2].uris[1].diagnostics[1].message)
    vim.diagnostic.reset(space)
    pushes('copilot')
    t.eq({}, session.pushed[2][2].uris[1].diagnostics)
  end)
end)

describe('a proposal', function()
  it('for a modified buffer is compared with the file: unsaved changes stay', function()
    open('gemini')
    vim.api.nvim_buf_set_lines(0, 2, 3, false, { 'of the user' })
    local one = gemini_proposes('ONE\ntwo\nthree\n')
    t.eq(1, #one.files[1].hunks)
    one:decide_rest('accepted')
    t.eq('ONE\ntwo\nof the user\n', first_push()[2].content)
  end)

  it('that was accepted and written is in the buffer and the list of changes, and can be reverted', function()
    local function propose(path, text, verdict)
      session.pushed = {}
      gemini_proposes(text, path):decide_rest(verdict)
      first_push()
    end
    local before = #changes.list()
    local function noted(count)
      return t.wait(function() return #changes.list() == before + count and changes.list()[1] end, 5000, 'the change')
    end
    local events = project.events('McpToolsEdit')
    open('gemini')
    propose(file, 'ONE\ntwo\nTHREE\n', 'rejected')
    propose(file, 'ONE\n2\ntwo\n', 'accepted')
    project.write('a.txt', 'ONE\n2\ntwo\n')
    local change = noted(1)
    t.eq({ file, 'gemini', false }, { change.path, change.client.name, change.is_new })
    t.eq({ 'ONE', '2', 'two' }, changes.after(change))
    t.wait(function() return buffer_lines()[1] == 'ONE' end, 5000, 'the text in the buffer')
    edit.revert(change, function() end)
    t.wait(function() return vim.deep_equal({ 'one', 'two', 'three' }, buffer_lines()) end, 5000, 'the text as it was')

    local new, closed = project.root .. '/new.txt', project.write('closed.txt', 'a\nb\n')
    propose(new, 'x\n', 'accepted')
    project.write('new.txt', 'x\n')
    change = noted(2)
    t.eq({ new, true, { 'x' } }, { change.path, change.is_new, changes.after(change) })
    propose(closed, 'b\n', 'accepted')
    project.write('closed.txt', 'b\n')
    change = noted(3)
    t.eq({ closed, { 'b' } }, { change.path, changes.after(change) })
    edit.revert(change, function() end)
    t.wait(function() return table.concat(vim.fn.readfile(closed)) == 'ab' end, 5000, 'the file as it was')
    local by_agent = vim.tbl_filter(function(event) return event.client end, events)
    t.eq({ 'a.txt', 'new.txt', 'closed.txt' }, vim.tbl_map(vim.fs.basename, t.field('path', by_agent)))
  end)

  it('is in the list of changes even if the agent writes the file in steps', function()
    open('gemini')
    local before = #changes.list()
    gemini_proposes('ONE\ntwo\nthree\n'):decide_rest('accepted')
    first_push()
    project.write('a.txt', '')
    vim.wait(200)
    project.write('a.txt', 'ONE\ntwo\nthree\n')
    t.wait(function() return #changes.list() == before + 1 end, 5000, 'the change')
  end)

  it('that changes only line endings or the encoding is asked about', function()
    open('gemini')
    local latin = project.write('latin.txt', 'caf\233\n')
    for _, case in ipairs({
      { file, 'one\r\ntwo\r\nthree\r\n', 'CRLF' },
      { file, 'one\ntwo\nthree', 'line break at the end' },
      { latin, 'café\n', 'encoding' },
    }) do
      for verdict, method in pairs({ rejected = 'ide/diffRejected', accepted = 'ide/diffAccepted' }) do
        session.pushed = {}
        local one = gemini_proposes(case[2], case[1])
        t.matches(case[3], one.files[1].hunks[1].form)
        one:decide_rest(verdict)
        local content = verdict == 'accepted' and case[2] or nil
        t.eq({ method, content }, { first_push()[1], first_push()[2].content })
      end
    end
    agents.call(session, 'openDiff', { filePath = file, newContent = 'one\ntwo\nthree\n' })
    t.wait(function() return session.pushed[2] end)
    t.eq({ 'ide/diffAccepted', 'one\ntwo\nthree\n' }, { session.pushed[2][1], session.pushed[2][2].content })
  end)

  it('that the buffer already contains does not expose other unsaved lines', function()
    open('gemini')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'ONE', 'two', 'a draft' })
    gemini_proposes('ONE\ntwo\nthree\n'):decide_rest('accepted')
    t.eq('ONE\ntwo\nthree\n', first_push()[2].content)
  end)

  it('keeps what others have written in the meantime, or cannot be accepted', function()
    open('gemini')
    local unseen = project.write('unseen.txt', 'one\ntwo\nthree\n')
    local function accepted(path, text, meanwhile)
      session.pushed = {}
      local one = gemini_proposes(text, path)
      project.write(vim.fs.basename(path), meanwhile)
      one:decide_rest('accepted')
      return unpack(first_push())
    end
    for _, path in ipairs({ file, unseen }) do
      local method, params = accepted(path, 'ONE\ntwo\nthree\n', 'one\ntwo\nof another\n')
      t.eq({ 'ide/diffAccepted', 'ONE\ntwo\nof another\n' }, { method, params.content })
      t.eq('ide/diffRejected', (accepted(path, '1\ntwo\nof another\n', 'of another\n')))
      t.eq('ide/diffRejected', (accepted(path, 'of another', 'of a third\n')))
    end
    local new = vim.fs.joinpath(vim.fs.dirname(file), 'new.txt')
    t.eq('ide/diffRejected', (accepted(new, 'x\n', 'of another\n')))
    vim.api.nvim_buf_set_lines(0, -1, -1, false, { 'a draft' })
    vim.uv.sleep(5)
    t.eq('ide/diffRejected', (accepted(file, 'ONE\n', 'of a fourth\n')))
  end)

  it('that its agent closes or replaces is not reported as rejected', function()
    open('gemini')
    vim.api.nvim_buf_set_lines(0, 2, 3, false, { 'of the user' })
    local function propose(text) agents.call(session, 'openDiff', { filePath = file, newContent = text }) end
    propose('1\n')
    propose('2\n')
    agents.call(session, 'closeDiff', { filePath = file, suppressNotification = true })
    propose('3\n')
    agents.review(session)
    propose('4\n')
    t.wait(function() return #review.list() == 1 and review.list()[1].files[1].hunks[1].new[1] == '4' end)
    t.eq({}, session.pushed)
  end)

  it('leaves few file watchers behind', function()
    open('gemini')
    local watch = require('mcp-tools.editor.watch')
    local file_of, count = watch.file, 0
    watch.file = function(...)
      local stop = file_of(...)
      count = count + 1
      return function()
        count = count - 1
        stop()
      end
    end
    for i = 1, 100 do
      local path = ('%s.%d'):format(file, i)
      proposals.open(session, path, { path = path, text = 'x\n' }, function() end)
      proposals.close(session, path, 'enough')
    end
    watch.file = file_of
    t.eq({ 64, 64 }, { count, #session.data.written })
  end)

  it('is refused as busy, not rejected, when too many are waiting', function()
    for _, name in ipairs({ 'claude', 'gemini' }) do
      open(name)
      local function propose(i)
        local args = { old_file_path = file, new_file_path = file, new_file_contents = 'x\n', tab_name = 't' .. i }
        if name == 'gemini' then
          args = { filePath = ('%s.%d'):format(file, i), newContent = 'x\n' }
        end
        return agents.begin(session, 'openDiff', args)
      end
      for i = 1, 8 do
        propose(i)
      end
      t.wait(function() return review.count() == 8 end)
      t.fails('busy', 'propose it again', agents.result(propose(9)))
      review.current():decide_rest('rejected')
      propose(10)
      t.wait(function() return review.count() == 8 end)
      agents.close(session)
      session = nil
      t.wait(function() return review.count() == 0 end)
    end
  end)

  it('for a sensitive file or buffer is not shown', function()
    vim.b.sensitive = true
    local secret = project.write('.env', 'TOKEN=1\n')
    for name, path in pairs({ claude = secret, copilot = file }) do
      local args = { old_file_path = path, new_file_path = path, original_file_path = path }
      args.new_file_contents, args.tab_name = 'x', 't'
      t.fails(nil, 'sensitive', agents.call(open(name), name == 'claude' and 'openDiff' or 'open_diff', args))
      agents.close(session)
      session = nil
    end
  end)

  it('for a modified buffer is asked about only once', function()
    local disk_writes = require('mcp-tools.editor.agents.disk_writes')
    local noop = function() end
    review.set_presenter({ is_attended = t.returns(true), show = noop, update = noop, hide = noop })
    disk_writes.start()
    open('gemini')
    vim.api.nvim_buf_set_lines(0, 2, 3, false, { 'of the user' })
    gemini_proposes('ONE\ntwo\nthree\n'):decide_rest('accepted')
    project.write('a.txt', first_push()[2].content)
    t.wait(function() return not vim.bo.modified end, 5000, 'the text in the buffer')
    t.eq({ 'ONE', 'two', 'of the user' }, buffer_lines())
    t.wait(function() return review.count() == 0 end)
    disk_writes.stop()
    review.set_presenter(nil)
  end)

  it('replaces an earlier one with the same key', function()
    open('claude')
    local outcomes = {}
    for i = 1, 2 do
      local function done(outcome) table.insert(outcomes, i .. outcome.state) end
      proposals.open(session, 'k', { path = file, text = i .. '\n' }, done)
    end
    t.wait(function() return #outcomes == 1 end)
    t.eq('1closed', outcomes[1])
  end)
end)

it('discovery files are where the agents look, with all roots and the process ID of the editor', function()
  local function found(name)
    local files = agent(name).discovery(ENDPOINT)
    return files[1].path, files[1].body, #files
  end

  local home = vim.uv.os_homedir()
  vim.env.CLAUDE_CONFIG_DIR = nil
  local path, body, count = found('claude')
  t.eq({ home .. '/.claude/ide/4321.lock', 1 }, { path, count })
  t.eq({ 7, { '/a', '/b' }, 'secret', 'ws' }, { body.pid, body.workspaceFolders, body.authToken, body.transport })
  vim.env.CLAUDE_CONFIG_DIR = '/elsewhere'
  t.eq('/elsewhere/ide/4321.lock', agent('claude').discovery(ENDPOINT)[2].path)
  vim.env.CLAUDE_CONFIG_DIR = nil
  path, body = found('gemini')
  t.eq(vim.uv.os_tmpdir() .. '/gemini/ide/gemini-ide-server-7-4321.json', path)
  t.eq('/a:/b', body.workspacePath)
  path, body = found('qwen')
  t.eq({ home .. '/.qwen/ide/4321.lock', 7, 'neovim' }, { path, body.ppid, body.ideInfo.name })
  path, body = found('copilot')
  t.matches('/%.copilot/ide/%x+%-%x+%-4%x+%-8%x+%-%x+%.lock$', path)
  t.eq({ '/run/s.sock', 'Nonce secret', false }, { body.socketPath, body.headers.Authorization, body.isTrusted })
  local time = os.time
  os.time = function() return time() + 60 end
  local later = { found('copilot') }
  os.time = time
  t.eq({ path, body, 1 }, later) -- the same bytes: it is only rewritten when something has changed
end)

describe('in a terminal', function()
  it('agents get our tools and, if it is open, their endpoint by environment and flags', function()
    local written
    local more = {
      server = { name = 'nvim-tools', url = 'http://127.0.0.1:1/mcp', token = 'main' },
      file = function(body)
        written = body
        return '/private/file.json'
      end,
    }
    local claude = agent('claude').environment(more)
    t.eq({ '--mcp-config', '/private/file.json' }, claude.args)
    t.eq({ 'Bearer main', {} }, { written.mcpServers['nvim-tools'].headers.Authorization, claude.env })
    local both = vim.tbl_extend('force', ENDPOINT, more)
    t.eq('4321', agent('claude').environment(both).env.CLAUDE_CODE_SSE_PORT)
    t.eq('4321', agent('qwen').environment(both).env.QWEN_CODE_IDE_SERVER_PORT)
    t.eq('/private/file.json', agent('qwen').environment(both).env.QWEN_CODE_SYSTEM_DEFAULTS_PATH)
    t.eq('4321', agent('gemini').environment(both).env.GEMINI_CLI_IDE_SERVER_PORT)
    t.eq(nil, agent('gemini').environment(both).env.GEMINI_CLI_SYSTEM_DEFAULTS_PATH)
    t.eq({ '--additional-mcp-config', '@/private/file.json' }, agent('copilot').environment(both).args)
    local config = vim.json.decode(agent('opencode').environment(more).env.OPENCODE_CONFIG_CONTENT)
    t.eq('http://127.0.0.1:1/mcp', config.mcp['nvim-tools'].url)
    local codex = agent('codex').environment(more)
    t.eq('main', codex.env.MCP_TOOLS_NVIM_TOKEN)
    t.ok(not table.concat(codex.args):find('main'))
  end)

  it('agents use the language server of `connect lsp`, but no server that the project names', function()
    local places, config_home = require('mcp-tools.instances.project'), vim.env.XDG_CONFIG_HOME
    local directory, root = vim.fn.tempname(), places.root
    local function write(path, value)
      vim.fn.mkdir(vim.fs.dirname(path), 'p')
      vim.fn.writefile({ vim.json.encode(value) }, path)
    end
    local more = { server = { name = 'nvim-tools', url = '', token = '' }, file = tostring }
    places.root = function() return directory end
    vim.env.CLAUDE_CONFIG_DIR, vim.env.XDG_CONFIG_HOME = directory .. '/claude', directory .. '/config'
    local ours = { command = 'mcp-tools', args = { 'lsp' }, extensionToLanguage = { ['.py'] = 'python' } }
    write(directory .. '/.claude/nvim-tools/.lsp.json', { other = ours })
    write(directory .. '/.lsp.json', { ['nvim-tools'] = ours, other = ours })
    local function started()
      return {
        vim.list_contains(agent('claude').environment(more).args, '--plugin-dir'),
        agent('qwen').environment(more).args,
        agent('opencode').environment(more).env.OPENCODE_EXPERIMENTAL_LSP_TOOL,
      }
    end
    local before = started()
    write(directory .. '/claude/nvim-tools/.lsp.json', { ['nvim-tools'] = ours })
    write(directory .. '/.lsp.json', { ['nvim-tools'] = ours })
    write(directory .. '/config/opencode/opencode.json', { lsp = { ['nvim-tools'] = ours } })
    local after = started()
    ours.command = 'evil'
    write(directory .. '/.lsp.json', { ['nvim-tools'] = ours })
    local hostile = agent('qwen').environment(more).args
    places.root, vim.env.CLAUDE_CONFIG_DIR, vim.env.XDG_CONFIG_HOME = root, nil, config_home
    t.eq({ { false }, { true, { '--experimental-lsp' }, 'true' }, nil }, { before, after, hostile })
  end)

  it('agents run permitted tools without asking, unless the project has a server of our name', function()
    local places, root = require('mcp-tools.instances.project'), vim.fn.tempname()
    local real = places.root
    vim.fn.mkdir(root .. '/.qwen', 'p')
    places.root = function() return root end
    local settings
    local more = {
      server = { name = 'nvim-tools', url = '', token = '', permitted = { 'nvim_a', 'nvim_b' } },
      file = function(body)
        settings = body
        return 'file'
      end,
    }
    local function started()
      local opencode = vim.json.decode(agent('opencode').environment(more).env.OPENCODE_CONFIG_CONTENT)
      local claude = agent('claude').environment(more).args[3]
      agent('qwen').environment(more)
      return { claude or '', settings.permissions or {}, opencode.permission or {} }
    end
    local files = { '.mcp.json', '.qwen/settings.json', 'opencode.json' }
    local function with(text)
      for _, name in ipairs(files) do
        vim.fn.writefile({ text }, root .. '/' .. name)
      end
      return started()
    end
    local without, other = started(), with('{"mcpServers": {"other": {}}}')
    local same = with('{"mcpServers": {"nvim-\\u0074ools": {}}, "mcp": {}}')
    local unreadable = with('{ broken')
    local below = root .. '/below'
    vim.fn.mkdir(below)
    places.root = function() return below end
    local above = started()
    for _, name in ipairs(files) do
      vim.fn.delete(root .. '/' .. name)
    end
    vim.fn.mkdir(below .. '/.opencode')
    vim.fn.writefile({ '{"mcp": {"nvim-tools": {}}}' }, below .. '/.opencode/opencode.jsonc')
    local elsewhere = started()[3]
    places.root = real
    local named = { 'mcp__nvim-tools__nvim_a', 'mcp__nvim-tools__nvim_b' }
    local expected = {
      '--allowedTools=' .. table.concat(named, ','),
      { allow = named },
      { ['nvim-tools_nvim_a'] = 'allow', ['nvim-tools_nvim_b'] = 'allow' },
    }
    t.eq({ expected, expected }, { without, other })
    t.eq({ { '', {}, {} }, { '', {}, {} }, { '', {}, {} }, {} }, { same, unreadable, above, elsewhere })
  end)

  it('Codex and opencode start a relay, so that no environment contains the token', function()
    local relay = { command = '/bin/python', args = { '-I', 'mcp_tools_nvim' }, env = { XDG_RUNTIME_DIR = '/run/7' } }
    local more = { server = { name = 'nvim-tools', url = 'http://127.0.0.1:1/mcp', token = 'main', relay = relay } }
    local opencode = agent('opencode').environment(more)
    t.ok(not vim.inspect(opencode):find('main'))
    local server = vim.json.decode(opencode.env.OPENCODE_CONFIG_CONTENT).mcp['nvim-tools']
    t.eq({ '/bin/python', '-I', 'mcp_tools_nvim' }, server.command)
    local codex = agent('codex').environment(more)
    t.ok(not vim.inspect(codex):find('main'))
    local options = { 'args=["-I","mcp_tools_nvim"]', 'command="/bin/python"', 'env={"XDG_RUNTIME_DIR"="/run/7"}' }
    local prefix = '-c mcp_servers.nvim-tools.'
    t.eq(prefix .. table.concat(options, ' ' .. prefix), table.concat(codex.args, ' '))
  end)
end)
