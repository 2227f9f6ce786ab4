-- slow, every Neovim
local Question = require('mcp-tools.ui.approval.question')
local approved = require('mcp-tools.editor.edit.approved')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local double = require('lsp_double')
local project = require('editor_project')
local queue = require('mcp-tools.ui.approval')
local t = require('helpers')
local task = require('mcp-tools.util.task')

local api = vim.api

describe('an edit that was approved', function()
  local main, other, gateway, asks

  after_each(function() gateway.ask = asks end)
  project.each(nil, function()
    project.write('b.txt', 'bee\nsea\n')
    project.write('a.txt', 'one\ntwo\n')
    project.age()
    vim.cmd('silent edit b.txt')
    other = api.nvim_get_current_buf()
    vim.cmd('silent edit a.txt')
    main = api.nvim_get_current_buf()
    config.setup({ tools = { 'code', 'symbol', 'file' } })
    gateway = core.get().gateway
    asks = gateway.ask
    local asker = { serial = true, show = function() end, hide = function() end }
    gateway.ask = function(asked, answer) -- without a screen
      asked.call:move('ask')
      queue.add(Question.new(asked, { asker }, answer), 60000)
    end
  end)

  local function execute(name, args)
    return core.get().executor:execute(name, args, { kind = 'tool', host = 'mcp', client = { name = 'agent' } })
  end

  --- Starts a call and waits until its question has a diff, or this text.
  local function ask(name, args, wanted)
    local call = execute(name, args)
    local question
    t.wait(function()
      question = queue.current()
      local text = question and Question.preview_of(question)
      return text and text:find(wanted or '\n@@ ') ~= nil
    end, 10000)
    return call, question
  end

  local function refused(call)
    t.fails('stale', 'no longer the one that the user has approved', nil, t.ended(call, 20000).error)
  end

  --- A server that renames in `a.txt`, and in `b.txt` too when `is_different` is set.
  local function server()
    local place = { range = double.range(0, 0, 3) }
    local state = {}
    local function change(text)
      local edits = { { range = place.range, newText = text } }
      local changes = { [vim.uri_from_bufnr(main)] = edits }
      changes[vim.uri_from_bufnr(other)] = state.is_different and edits or nil
      return { changes = changes }
    end
    local capabilities = {
      codeActionProvider = { resolveProvider = true },
      executeCommandProvider = { commands = { 'do' } },
      renameProvider = true,
    }
    local d = double.start(main, project.root, capabilities, {
      ['textDocument/rename'] = function(params) return change(params.newName) end,
      ['textDocument/codeAction'] = function()
        return {
          { title = 'Fix it', kind = 'quickfix', data = state.is_different and 'EVIL' or 'SAFE' },
          { title = 'Run it', command = { title = 'Run it', command = 'do' } },
        }
      end,
      ['codeAction/resolve'] = function(action)
        return vim.tbl_extend('error', action, { edit = change(state.resolved or action.data) })
      end,
    })
    d:publish(main, nil, {})
    return state
  end

  it('is made in a line with invalid UTF-8', function()
    local path = project.write('latin.txt', 'one\ntwo \233\n')
    vim.cmd('silent edit ++enc=utf-8 ++bad=keep ' .. path)
    local edits = { { old_text = 'two', new_text = 'TWO' } }
    local call, question = ask('file_edit', { path = 'latin.txt', edits = edits })
    t.eq(true, question:answer('once'))
    t.ok(t.ended(call, 20000).error == nil)
    t.eq({ 'one', 'TWO \233' }, api.nvim_buf_get_lines(0, 0, -1, false))
  end)

  it('is refused if the server answers differently: a rename', function()
    local state = server()
    local call, question = ask('symbol_rename', { path = 'a.txt', line = 1, symbol = 'one', new_name = 'uno' })
    state.is_different = true
    t.eq(true, question:answer('once'))
    refused(call)
    local actual = { api.nvim_buf_get_lines(main, 0, 1, false)[1], api.nvim_buf_get_lines(other, 0, 1, false)[1] }
    t.eq({ 'one', 'bee' }, actual)
  end)

  it('is refused if the server answers differently: a code action', function()
    local state = server()
    local call, question = ask('code_actions', { path = 'a.txt', apply = 'Fix it' })
    state.is_different = true
    t.eq(true, question:answer('once'))
    refused(call)
    t.eq('one', api.nvim_buf_get_lines(main, 0, 1, false)[1])
  end)

  local function listed(title)
    local call = execute('code_actions', { path = 'a.txt' })
    t.eq(nil, t.ended(call, 20000).error)
    return t.ok(call.outcome.payload.text:match('(a%d+%-%x+)[^\n]*: ' .. title))
  end

  it('is shown for a code action by its id, and applied wherever the cursor is', function()
    local state = server()
    local id = listed('Fix it')
    local call, question = ask('code_actions', { apply = id })
    t.matches('%-one\n%+SAFE\n', question.preview)
    vim.cmd.buffer(other)
    t.eq({ true, nil }, { question:answer('once'), t.ended(call, 20000).error })
    t.eq('SAFE', api.nvim_buf_get_lines(main, 0, 1, false)[1])
    id = listed('Fix it')
    state.resolved = 'EVIL'
    call, question = ask('code_actions', { apply = id })
    t.matches('%+EVIL', question.preview)
    t.eq(true, question:answer('deny'))
    t.ended(call)
  end)

  it('of a code action with a command says that its changes are not known', function()
    server()
    for _, args in ipairs({ { apply = listed('Run it') }, { path = 'a.txt', apply = 'Run it' } }) do
      local call, question =
        ask('code_actions', args, 'runs the command do of double; its changes are not known in advance')
      t.eq(true, question:answer('deny'))
      t.ended(call)
    end
  end)

  describe('of other files when a file is moved', function()
    local args = { path = 'a.txt', new_path = 'c.txt' }

    --- Starts a server that changes `b.txt`.
    ---@param answer? any the text of the change, or another answer
    local function serve(answer)
      local state = { answer = answer or 'new' }
      local capabilities = {
        workspace = { fileOperations = { willRename = { filters = { { pattern = { glob = '**' } } } } } },
      }
      double
        .start(main, project.root, capabilities, {
          ['workspace/willRenameFiles'] = function()
            local range = double.range(0, 0, 3)
            local edits = { { range = range, newText = state.answer } }
            return type(state.answer) ~= 'string' and state.answer
              or { changes = { [vim.uri_from_bufnr(other)] = edits } }
          end,
        })
        :publish(main, nil, {})
      return state
    end

    --- Returns the first line of `b.txt`, and whether the file was moved.
    local function state_after()
      return { api.nvim_buf_get_lines(other, 0, 1, false)[1], vim.fn.filereadable('c.txt') == 1 }
    end

    it('is shown, and then made', function()
      serve()
      local call, question = ask('file_move', args)
      t.eq('a.txt → c.txt\n--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n-bee\n+new\n sea\n', question.preview)
      t.eq({ true, nil }, { question:answer('once'), t.ended(call, 20000).error })
      t.eq({ 'new', true }, state_after())
    end)

    it('is refused if the server answers differently', function()
      local state = serve()
      local call, question = ask('file_move', args)
      state.answer = 'EVIL'
      t.eq(true, question:answer('once'))
      refused(call)
      t.eq({ 'bee', false }, state_after())
    end)

    for name, case in pairs({
      ['the server has not answered yet'] = { double.SILENT, 'only if their diff is shown here', 'without their diff' },
      ['the server has failed'] = { double.fault('no luck'), 'are not updated: double answered', 'without their diff' },
      ['nothing would change'] = { { changes = {} }, 'No language server changes', '\nno language server changed' },
    }) do
      it('is not made if it was not shown, because ' .. name, function()
        local state = serve(case[1])
        local call, question = ask('file_move', args, case[2])
        state.answer = 'EVIL'
        t.eq({ true, nil }, { question:answer('once'), t.ended(call, 20000).error })
        t.eq({ 'bee', true }, state_after())
        t.matches(case[3], call.outcome.payload.text)
      end)
    end

    it('ends the call if what is moved has changed since the question', function()
      project.write('dir/one.txt', 'one')
      local function outcome_of(name, path, text)
        local call, question = ask('file_move', { path = name, new_path = 'moved' }, 'No language server')
        project.write(path, text)
        t.eq(true, question:answer('once'))
        return t.ended(call, 20000)
      end
      local function change(name, path, text)
        t.fails('stale', 'has changed since the user was asked', nil, outcome_of(name, path, text).error)
        t.eq(nil, vim.uv.fs_stat(project.root .. '/moved'))
      end
      change('dir', 'dir/two.txt', 'two')
      vim.cmd('silent bwipeout a.txt')
      change('a.txt', 'a.txt', 'two\none\n')
      t.eq(nil, outcome_of('dir', 'dir/one.txt', 'a longer log').error)
      t.eq({ 'a longer log' }, vim.fn.readfile(project.root .. '/moved/one.txt'))
    end)
  end)

  it('is applied if nothing has changed, or if the user has typed elsewhere', function()
    server()
    local call, question = ask('symbol_rename', { path = 'a.txt', line = 1, symbol = 'one', new_name = 'uno' })
    t.eq({ true, nil }, { question:answer('once'), t.ended(call, 20000).error })
    t.eq('uno', api.nvim_buf_get_lines(main, 0, 1, false)[1])
    local edit = { { path = 'b.txt', old_text = 'sea', new_text = 'ocean' } }
    call, question = ask('file_edit', { edits = edit })
    api.nvim_buf_set_lines(other, 0, 0, false, { 'typed' })
    t.eq(false, (question:answer('once'))) -- the diff is shown again
    t.eq({ true, nil }, { question:answer('once'), t.ended(call, 20000).error })
    t.eq({ 'typed', 'bee', 'ocean' }, api.nvim_buf_get_lines(other, 0, -1, false))
  end)

  it('is refused if the user was told that the call would fail', function()
    local call = { approved_preview = approved.WILL_FAIL .. 'there is no such text' }
    local err = approved.refusal({}, { call = call }, {})
    t.eq({ 'stale', nil }, { err and err.code, call.approved_preview })
    t.eq(nil, approved.refusal({}, { call = call }, {}))
  end)

  it('is refused for a file that is named only as a part of another name, or after a diff that is cut', function()
    local diff = '--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-x\n+y\n'
    local function refusal(text)
      local list = { { row = 0, col = 0, end_row = 0, end_col = 3, lines = { 'EVIL' } } }
      local ctx = { root = project.root, call = { approved_preview = text } }
      local target = { bufnr = main, path = project.root .. '/a.txt', prepared = { list = list } }
      local err = false
      task.run({}, function(work) err = approved.refusal(work, ctx, { target }) end, function() end)
      t.wait(function() return err ~= false end)
      return err and err.code
    end
    t.eq('stale', refusal(diff .. approved.not_shown('data.txt', 'it has 9000 lines.')))
    t.eq('stale', refusal(diff .. approved.not_shown('b.txt', 'it is not a.txt')))
    t.eq('stale', refusal(diff .. '… and 7 more lines\n'))
    t.eq(nil, refusal(diff .. approved.not_shown('a.txt', 'it has 9000 lines.')))
  end)

  it('may have many rows', function()
    local diff = '--- a/x\n+++ b/x\n@@ -0,0 +1,200000 @@\n' .. ('+a line of text of a usual length\n'):rep(200000)
    t.eq(200000 * 34, #approved.parse(diff).files.x) -- joined row by row, this takes minutes
  end)

  it('is compared row by row', function()
    local diff = table.concat({
      '--- a/x.lua',
      '+++ b/x.lua',
      '@@ -1,3 +1,3 @@',
      ' a',
      '--- b/y', -- a removed row "-- b/y"
      '+++ b/z',
      ' c',
      '--- /dev/null',
      '+++ /tmp/new',
      '@@ -0,0 +1 @@',
      '+n',
      '',
    }, '\n')
    local files = { ['x.lua'] = '--- b/y\n+++ b/z\n', ['/tmp/new'] = '+n\n' }
    t.eq({ files = files, notes = {} }, approved.parse(diff))
    local cut = approved.parse('--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n… and 3 more lines\n')
    t.eq({ files = { x = '-a\n' }, notes = {}, cut = 'x' }, cut)
    local note = approved.not_shown('x', 'it is too long.')
    t.eq({ note:sub(1, -2) }, approved.parse(note).notes)
  end)
end)
