-- slow, every Neovim
-- Changes by language servers, with scripted servers.

local double = require('lsp_double')
local double_project = require('double_project')
local format = require('mcp-tools.tools.code.format')
local project = require('lsp_project')
local rename = require('mcp-tools.tools.symbol.rename')
local t = require('helpers')

local path, bufnr
local result_of = double_project.result_of

local server, ready = double_project.starters(function(number) bufnr = number end)

local function buffer_lines() return vim.api.nvim_buf_get_lines(bufnr, 0, -1, false) end

local function is_known() return t.ok(project.call('symbol_info', { path = path, line = 1, column = 1 })) end

--- The edits of the file as a workspace edit.
local function changes_of(...) return { changes = { [vim.uri_from_fname(path)] = { ... } } } end

before_each(function() path = double_project.open() end)
after_each(project.close)

describe('a call that is cancelled', function()
  it('during the search for changed files does not lose changes', function()
    for i = 1, 1500 do
      vim.fn.mkdir(('%s/many/%d'):format(project.root, i), 'p')
    end
    local s = ready({ hoverProvider = true }, { ['textDocument/hover'] = { contents = 'text' } })
    for ms = 1, 40, 3 do
      local call = project.start('symbol_info', { path = path })
      vim.wait(ms, function() return call:ended() end, 1)
      require('mcp-tools.core').get().executor:cancel(call.id, 'test')
    end
    t.ok(project.call('symbol_info', { path = path }))
    project.write('later.txt', 'text\n')
    t.wait(function()
      t.ok(project.call('symbol_info', { path = path }))
      return s:heard('workspace/didChangeWatchedFiles')
    end, 8000)
  end)

  it('while it restarts a server leaves the user with one', function()
    local s, call
    s = server({ hoverProvider = true }, {
      shutdown = function() require('mcp-tools.core').get().executor:cancel(call.id, 'test') end,
    })
    call = project.start('editor_servers', { path = path, restart = 'all' })
    t.ended(call)
    t.eq('cancelled', call.outcome.error.code)
    t.wait(function()
      local client = vim.lsp.get_clients({ name = 'double' })[1]
      return client and client.id ~= s.client.id and client.attached_buffers[bufnr]
    end)
  end)
end)

describe('files that other processes change', function()
  local CHANGED, DELETED, MADE = 2, 3, 1

  --- The kinds of changes of a file that a server was notified of since a moment.
  local function changes_seen(s, name, since)
    local uri, kinds = vim.uri_from_fname(project.root .. '/' .. name), {}
    for i = since + 1, #s.told do
      local changes = s.told[i].method == 'workspace/didChangeWatchedFiles' and s.told[i].params.changes or {}
      for _, change in ipairs(changes) do
        if change.uri == uri then
          table.insert(kinds, change.type)
        end
      end
    end
    return kinds
  end

  --- Asks until a server was notified of a change of a file.
  local function await(s, name, kind, since)
    t.wait(function()
      is_known()
      return vim.list_contains(changes_seen(s, name, since), kind)
    end, 8000, ('%s was notified of %s'):format(kind, name))
  end

  local function watching()
    local s = ready({ hoverProvider = true }, { ['textDocument/hover'] = { contents = 'text' } })
    is_known()
    return s
  end

  it('in a directory that is moved are reported at both places', function()
    project.write('one/inner/a.txt', 'text\n')
    local s = watching()
    local since = #s.told
    assert(vim.uv.fs_rename(project.root .. '/one', project.root .. '/two'))
    await(s, 'one/inner/a.txt', DELETED, since)
    await(s, 'two/inner/a.txt', MADE, since)
    since = #s.told
    project.write('two/inner/a.txt', 'other\n')
    await(s, 'two/inner/a.txt', CHANGED, since)
    t.eq({}, changes_seen(s, 'one/inner/a.txt', since))
  end)

  it('in a directory that was deleted and created again are reported', function()
    project.write('one/a.txt', 'text\n')
    local s = watching()
    vim.fn.delete(project.root .. '/one', 'rf')
    project.write('one/b.txt', 'text\n')
    await(s, 'one/b.txt', MADE, 0)
    project.write('one/c.txt', 'text\n')
    await(s, 'one/c.txt', MADE, 0)
  end)

  it('and that git ignores are not reported', function()
    vim.fn.system({ 'git', 'init', '-q', project.root })
    project.write('.gitignore', 'target/\n*.o\n')
    local s = watching()
    project.write('target/deep/a.txt', 'text\n')
    project.write('a.o', 'text\n')
    project.write('new/b.o', 'text\n')
    project.write('new/b.txt', 'text\n')
    await(s, 'new/b.txt', MADE, 0)
    project.write('target/deep/b.txt', 'text\n')
    project.write('c.txt', 'text\n')
    await(s, 'c.txt', MADE, 0)
    for _, name in ipairs({ 'target/deep/a.txt', 'target/deep/b.txt', 'a.o', 'new/b.o' }) do
      t.eq({ name }, { name, unpack(changes_seen(s, name, 0)) })
    end
  end)

  it('and that references lack lead to another request, then to a warning', function()
    local location = { uri = vim.uri_from_fname(project.root .. '/late.txt'), range = double.range(0, 0, 3) }
    local s, asked, is_late = nil, 0, false
    s = ready({ referencesProvider = true }, {
      ['textDocument/references'] = function()
        asked = asked + math.min(1, #changes_seen(s, 'late.txt', 0))
        return asked > 1 and not is_late and { location } or {}
      end,
    })
    local function references() return t.ok(project.call('symbol_references', { path = path, line = 1, column = 1 })) end
    t.eq(0, references().total)
    project.write('late.txt', 'one\n')
    local answer
    t.wait(function()
      answer = references()
      return asked > 0
    end, 8000, 'word of the file')
    t.eq({ 1, 2, nil }, { answer.total, asked, answer.incomplete })
    is_late = true
    answer = references()
    t.eq(0, answer.total)
    t.matches('^double may not have read late.txt yet', answer.incomplete)
  end)

  it('behind a link to a directory are not reported', function()
    local s = watching()
    local outside = vim.fn.tempname()
    vim.fn.mkdir(outside, 'p')
    vim.fn.writefile({ 'text' }, outside .. '/a.txt')
    assert(vim.uv.fs_symlink(outside, project.root .. '/linked'))
    project.write('c.txt', 'text\n')
    await(s, 'c.txt', MADE, 0)
    t.eq({}, changes_seen(s, 'linked/a.txt', 0))
  end)

  it('are checked in linear time', function()
    local DirectoryWatch = require('mcp-tools.editor.lsp.directory_watch')
    local function nothing() end
    local watch, changes = DirectoryWatch.new('spec'), {}
    watch:walk(project.root, nothing, nothing, nothing)
    for i = 1, 20000 do
      watch:note(('%s/%d.txt'):format(project.root, i))
    end
    local begun = vim.uv.hrtime()
    for i = 1, 10000 do
      watch:check(('%s/%d.txt'):format(project.root, i), nothing, nothing, changes)
    end
    t.eq(10000, vim.tbl_count(changes))
    t.ok(vim.uv.hrtime() - begun < 10e9)
    watch:close()
  end)

  it('in a project that was deleted and created again are reported', function()
    local s = watching()
    for _ = 1, 3 do -- the new directory often has the same inode
      vim.fn.delete(project.root, 'rf')
      project.write('text.txt', 'one\n')
      is_known()
      local since = #s.told
      project.write('later.txt', 'text\n')
      await(s, 'later.txt', MADE, since)
    end
  end)
end)

describe('an edit of a server', function()
  --- The lines of a file of two lines after an action.
  local function after(edit_of)
    path = project.write('text.txt', 'one\ntwo\n')
    ready({ codeActionProvider = true, hoverProvider = true }, {
      ['textDocument/codeAction'] = { { title = 'Do', edit = changes_of(edit_of) } },
    })
    local offered = t.ok(project.call('code_actions', { path = path, line = 1 }))
    t.ok(project.call('code_actions', { apply = offered.actions[1].id }))
    return buffer_lines()
  end

  it('is found by the kind of its action, which some servers return only on request', function()
    path = project.write('text.txt', 'one\n')
    local change = changes_of({ range = double.range(0, 0, 0, 3), newText = 'two' })
    ready({ codeActionProvider = true, hoverProvider = true }, {
      ['textDocument/codeAction'] = function(params)
        local kind = 'source.organizeImports'
        local actions = { { title = 'Sort', kind = kind .. '.double', edit = change } }
        return vim.deep_equal({ kind }, params.context.only) and actions or {}
      end,
    })
    t.eq({}, t.ok(project.call('code_actions', { path = path })).actions)
    t.ok(project.call('code_actions', { path = path, apply = 'Organize imports' }))
    t.eq({ 'two' }, buffer_lines())
    t.matches('no action matches', t.ok(project.call('code_actions', { path = path, apply = 'inline' })).note)
  end)

  it('is refused when it differs from the one that was shown', function()
    path = project.write('text.txt', 'one\n')
    local other = project.write('other.txt', 'alpha\nbeta\n')
    local edit_of = { range = double.range(0, 0, 0, 1), newText = '' }
    local action = { title = 'Do', edit = { changes = { [vim.uri_from_fname(other)] = { edit_of } } } }
    ready({ codeActionProvider = true, hoverProvider = true }, { ['textDocument/codeAction'] = { action } })
    local id = t.ok(project.call('code_actions', { path = path, line = 1 })).actions[1].id
    t.matches('%-alpha', project.call('code_actions', { apply = id, preview = true }).diff)
    project.write('other.txt', 'of the user\nalpha\nbeta\n')
    t.eq('stale', (select(2, project.call('code_actions', { apply = id })) or {}).code)
    t.eq({ 'of the user', 'alpha', 'beta' }, vim.fn.readfile(other))
    t.matches('%-of the user', project.call('code_actions', { apply = id, preview = true }).diff)
    t.ok(project.call('code_actions', { apply = id }))
    t.eq({ 'alpha', 'beta' }, vim.fn.readfile(other))
  end)

  for _, case in ipairs({
    { { 'one', 'two', 'three' }, double.range(2, 0, 0), 'three\n' },
    { { 'one' }, double.range(1, 0, 0, 2), '' },
    { { 'new' }, double.range(0, 0, 0, 9999), 'new\n' },
  }) do
    it(
      'at or after the end of the text leaves no empty line: ' .. table.concat(case[1], ' '),
      function() t.eq(case[1], after({ range = case[2], newText = case[3] })) end
    )
  end
end)

describe('an action', function()
  it('whose command fails after its edit reports the changes', function()
    ready({ codeActionProvider = true, hoverProvider = true, executeCommandProvider = { commands = { 'do' } } }, {
      ['textDocument/codeAction'] = {
        {
          title = 'Do',
          edit = changes_of({ range = double.range(0, 0, 3), newText = 'two' }),
          command = { title = 'Do', command = 'do' },
        },
      },
      ['workspace/executeCommand'] = double.fault('no luck'),
    })
    local id = t.ok(project.call('code_actions', { path = path, line = 1 })).actions[1].id
    local answer = t.ok(project.call('code_actions', { apply = id }))
    t.eq({ { 'two' }, 1, 'text.txt' }, { buffer_lines(), answer.places, answer.files[1].path })
    t.matches('no luck', answer.failed)
  end)

  it('can be applied at any place in a long list', function()
    local list = {}
    for i = 1, 400 do
      list[i] = { title = 'Do ' .. i, edit = changes_of({ range = double.range(0, 0, 3), newText = 'line ' .. i }) }
    end
    ready({ codeActionProvider = true, hoverProvider = true }, { ['textDocument/codeAction'] = list })
    local offered = t.ok(project.call('code_actions', { path = path, line = 1, limit = 1000 })).actions
    t.eq(400, #offered)
    t.ok(project.call('code_actions', { apply = offered[1].id }))
    t.eq({ 'line 1' }, buffer_lines())
  end)
end)

it('callers of a function come before their own callers', function()
  local uri = vim.uri_from_fname(path)
  local function item(name, line)
    local range = double.range(line, 0, 1)
    return { name = name, kind = 12, uri = uri, range = range, selectionRange = range }
  end
  ready({ callHierarchyProvider = true, hoverProvider = true }, {
    ['textDocument/prepareCallHierarchy'] = { item('main', 0) },
    ['callHierarchy/incomingCalls'] = function(params)
      local calls = {}
      local names = params.item.name == 'main' and { 'a', 'b', 'c' } or {}
      for i = 1, params.item.name == 'a' and 300 or 0 do
        names[i] = 'of_a' .. i
      end
      for i, name in ipairs(names) do
        calls[i] = { from = item(name, i), fromRanges = {} }
      end
      return calls
    end,
  })
  local answer = t.ok(project.call('symbol_callers', { path = path, line = 1, column = 1, depth = 2 }))
  local names = t.field('name', answer.items)
  t.eq({ { 'a', 'b', 'c' }, true }, { names, answer.truncated })
end)

it('a file without a server is awaited only once', function()
  vim.bo[vim.fn.bufadd(path)].filetype = 'plain'
  local begun
  for _ = 1, 6 do
    t.eq('not_found', select(2, project.call('symbol_info', { path = path, line = 1, column = 1 })).code)
    begun = begun or vim.uv.hrtime()
  end
  t.ok(vim.uv.hrtime() - begun < 10e9) -- five times
end)

it('concurrent commands of a server do not capture later edits', function()
  local capabilities =
    { codeActionProvider = true, hoverProvider = true, executeCommandProvider = { commands = { 'do' } } }
  local action = { title = 'Do', command = { title = 'Do', command = 'do' } }
  local s = ready(capabilities, { ['textDocument/codeAction'] = { action } })
  local id = t.ok(project.call('code_actions', { path = path, line = 1 })).actions[1].id
  local one = project.start('code_actions', { apply = id })
  local two = project.start('code_actions', { apply = id })
  result_of(one)
  result_of(two)
  local edit_of = changes_of({ range = double.range(0, 0, 3), newText = 'two' })
  s.dispatchers.server_request('workspace/applyEdit', { edit = edit_of })
  t.eq({ 'two' }, buffer_lines())
end)

describe('the preview of a change by a server', function()
  before_each(function()
    path = project.write('text.txt', 'one\ntwo one\n')
    bufnr = vim.fn.bufadd(path)
    vim.fn.bufload(bufnr)
    vim.bo[bufnr].buflisted = true
  end)

  local function edit(line, first, last, text) return { range = double.range(line, first, last), newText = text } end

  --- Starts a server that is ready and gives this answer.
  local function serve(capabilities, method, answer)
    local s = double.start(bufnr, project.root, capabilities, { [method] = answer })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    return s
  end

  --- The first text of a preview, and the complete one or its error.
  local function shown(preview, args)
    local at_first = t.ok(preview(args))
    local ended, fault = false, nil
    local text = preview(args, function(why)
      ended, fault = true, why
    end)
    t.eq(at_first, text) -- an early approval is for this text
    t.wait(function() return ended end, 10000, 'the dry run')
    return at_first, fault or (preview(args))
  end

  it('shows a code action that is named by its kind, and refuses an unknown one', function()
    local action = { title = 'Translate', kind = 'quickfix', edit = changes_of(edit(0, 0, 3, 'uno')) }
    serve(
      { codeActionProvider = true, hoverProvider = true },
      'textDocument/codeAction',
      function(params) return vim.deep_equal({ 'quickfix' }, params.context.only) and { action } or {} end
    )
    local actions = require('mcp-tools.tools.code.actions')
    local args = actions.prepare({ path = path, kinds = { 'quick fix' }, apply = 'translate', limit = 100 })
    t.matches('%-one\n%+uno\n', select(2, shown(actions.preview, args)))
    local _, err = shown(actions.preview, { path = path, apply = 'inline', limit = 100 })
    t.fails('not_found', 'no action matches', nil, err)
  end)

  describe('a rename', function()
    it('is shown as a diff, which is valid for the current text only', function()
      local change = changes_of(edit(0, 0, 3, 'uno'), edit(1, 4, 7, 'uno'))
      serve({ renameProvider = true }, 'textDocument/rename', change)
      local args = { path = path, line = 1, column = 1, new_name = 'uno', timeout_ms = 8000 }
      local at_first, then_ = shown(rename.preview, args)
      t.matches('^renames the symbol in line 1 of .* to uno in the whole project\n', at_first)
      t.matches('%-one\n%-two one\n%+uno\n%+two uno', then_)
      t.eq({ { 'one', 'two one' }, then_ }, { buffer_lines(), (rename.preview(args)) })
      args.new_name = 'other'
      t.matches('^renames', (rename.preview(args)))
      args.new_name = 'uno'
      vim.api.nvim_buf_set_lines(bufnr, 2, 2, false, { 'more' })
      t.matches('^renames', (rename.preview(args)))
    end)

    it('that the server refuses has its reason', function()
      serve({ renameProvider = true }, 'textDocument/rename', double.fault('no such name'))
      local _, err = shown(rename.preview, { path = path, line = 1, column = 1, new_name = 'uno', timeout_ms = 8000 })
      t.fails(nil, 'no such name', nil, err)
    end)
  end)

  it('formatting is shown as a diff, and is an error when nothing changes', function()
    local s = serve({ documentFormattingProvider = true }, 'textDocument/formatting', { edit(0, 0, 3, 'ONE') })
    local at_first, then_ = shown(format.preview, { path = path })
    t.matches('^formats .*text.txt, lines 1 to the last\n', at_first)
    t.matches('%-one\n%+ONE', then_)
    vim.api.nvim_buf_set_lines(bufnr, 2, 2, false, { 'more' })
    s.answers['textDocument/formatting'] = {}
    local ended
    format.preview({ path = path }, function() ended = true end)
    t.wait(function() return ended end)
    t.eq('tool_error', (select(2, format.preview({ path = path })) or {}).code)
  end)
end)
