-- slow, every Neovim
-- Renames, quotes and symbols without a line, with scripted servers.

local clients = require('mcp-tools.editor.lsp.clients')
local double = require('lsp_double')
local double_project = require('double_project')
local project = require('lsp_project')
local t = require('helpers')

local path, bufnr
local start, result_of = double_project.start, double_project.result_of

local server, ready = double_project.starters(function(number) bufnr = number end)

local function edit(lines) vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines) end

--- Calls a tool at the first character of the file.
local function ask(tool, args)
  return project.call(tool, vim.tbl_extend('force', { path = path, line = 1, column = 1 }, args or {}))
end

before_each(function() path = double_project.open() end)
after_each(project.close)

describe('a server that is indexing', function()
  it('is reported with its percentage; without a full answer the call waits or is busy', function()
    local s = server({ referencesProvider = true, renameProvider = true }, { ['textDocument/references'] = {} })
    project.call('editor_servers') -- starts to listen to the server
    s:publish(bufnr, 0, {})
    local args = { path = path, line = 1, column = 1, limit = 5 }
    s:progress('begin', { title = 'Indexing', percentage = 40, message = '4/10' })
    local status = t.ok(project.call('editor_servers'))
    t.has({ state = 'indexing', percentage = 40, doing = 'Indexing: 4/10' }, status.servers[1])
    t.eq(false, status.ready)
    local value, err = ask('symbol_rename', { new_name = 'x', timeout_ms = 100 })
    t.fails('busy', 'double is still indexing, 40 %% %(Indexing: 4/10%)', value, err)
    local call = start('symbol_references', args)
    s:progress('report', { percentage = 90 })
    vim.wait(50)
    t.ok(not call:ended())
    s:progress('end')
    t.eq(0, result_of(call).total)
    status = project.call('editor_servers', { wait_ms = 2000 })
    t.eq({ 'ready', true }, { status.servers[1].state, status.ready })
  end)

  it('is awaited only as long as the call has time', function()
    local s = server({ referencesProvider = true }, { ['textDocument/references'] = {} })
    project.call('editor_servers')
    s:publish(bufnr, 0, {})
    s:progress('begin', { title = 'Indexing' })
    local result, err
    local function done(...)
      result, err = ...
    end
    require('mcp-tools').call('symbol_references', { path = path, line = 1, column = 1 }, { timeout = 1500 }, done)
    t.wait(function() return result or err end, 8000)
    t.fails('busy', 'still indexing', nil, err)
  end)

  it('is not awaited when its progress belongs to our own request', function()
    local s
    s = server({ hoverProvider = true }, {
      ['textDocument/hover'] = function(params)
        s:say('$/progress', { token = params.workDoneToken, value = { kind = 'begin', title = 'Hovering' } })
        return { contents = 'text' }
      end,
    })
    s:publish(bufnr, 0, {})
    t.eq('text', project.call('symbol_info', { path = path }).info)
    t.eq('ready', project.call('editor_servers', { wait_ms = 1000 }).servers[1].state)
  end)
end)

-- Like typescript-language-server, which answers from single files until it loads the project.
describe('a server that does not report what it has indexed', function()
  local capabilities = { documentSymbolProvider = true }
  for _, name in ipairs({ 'callHierarchy', 'definition', 'implementation', 'references', 'rename', 'workspaceSymbol' }) do
    capabilities[name .. 'Provider'] = true
  end
  local at = double.range(0, 0, 3)
  local item = { name = 'one', kind = 12, range = at, selectionRange = at }

  --- Starts a server that seems to be this old.
  local function old(seconds, answers)
    local s = server(capabilities, answers)
    local state = require('mcp-tools.editor.lsp.server_state').of(s.client)
    state.since = vim.uv.hrtime() - seconds * 1e9
    return s
  end

  before_each(function() require('mcp-tools.editor.lsp.server_state').ensure_listening() end)

  it('is asked again when it loads the project after its answer', function()
    local location = { uri = vim.uri_from_fname(path), range = at }
    local called = vim.tbl_extend('error', { uri = location.uri }, item)
    for tool, case in pairs({
      symbol_references = { method = 'textDocument/references', answer = { location } },
      symbol_implementations = {
        method = 'textDocument/implementation',
        answer = { { uri = location.uri, range = double.range(1, 0, 3) } },
      },
      symbol_callers = { method = 'textDocument/prepareCallHierarchy', answer = { called } },
    }) do
      local s, asked = nil, 0
      s = old(16, {
        ['callHierarchy/incomingCalls'] = { { from = called, fromRanges = {} } },
        [case.method] = function()
          if s.has_read then
            return case.answer
          end
          asked = asked + 1
          s:progress('begin', { title = 'Loading' })
          vim.defer_fn(function()
            s.has_read = true
            s:progress('end')
            s:publish(bufnr, nil, {})
          end, 100)
          return {}
        end,
      })
      local answer = t.ok(ask(tool))
      t.eq({ 1, 1, nil }, { asked, answer.total, answer.incomplete })
      clients.stop(s.client, true)
    end
  end)

  it('may be incomplete while it is young, and is complete later', function()
    local s = old(16, { ['textDocument/references'] = {}, ['textDocument/documentSymbol'] = {} })
    t.fails('busy', 'double may still be indexing', ask('symbol_references'))
    t.fails('busy', 'nothing was changed', ask('symbol_rename', { new_name = 'new' }))
    s.answers['textDocument/references'] = { { uri = vim.uri_from_fname(path), range = at } }
    t.matches('double may still be indexing', ask('symbol_references').incomplete)

    -- Symbols that it does not know yet are not cached as none.
    local symbols = require('mcp-tools.editor.symbol')
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'one', 'two' })
    local function file()
      return project.run(function(ctx) return symbols.await(ctx, bufnr) end)
    end
    t.eq('nothing', file().by)
    t.matches('double may still be indexing', file().why)
    s.answers['textDocument/documentSymbol'] = { item }
    t.eq({ 'server', 1 }, { file().by, #file().tree })
    vim.bo[bufnr].modified = false

    s.answers['textDocument/references'] = {}
    local state = require('mcp-tools.editor.lsp.server_state').of(s.client)
    state.since = vim.uv.hrtime() - 31e9
    local answer = t.ok(ask('symbol_references'))
    t.eq({ 0, nil }, { answer.total, answer.incomplete })
  end)
end)

describe('a rename', function()
  local range = double.range

  local function answers(edited)
    local uri = vim.uri_from_fname(path)
    return {
      ['textDocument/rename'] = function(params)
        local edits = {}
        for i, line in ipairs(edited) do
          edits[i] = { range = range(line, 0, 3), newText = params.newName }
        end
        return { changes = { [uri] = edits } }
      end,
      ['textDocument/definition'] = { uri = uri, range = range(0, 0, 3) },
      ['textDocument/references'] = { { uri = uri, range = range(0, 0, 3) }, { uri = uri, range = range(1, 0, 3) } },
    }
  end

  local function renamer(edited, change)
    path = project.write('text.txt', 'one\none\n')
    local capabilities =
      { renameProvider = true, definitionProvider = true, referencesProvider = true, hoverProvider = true }
    return ready(capabilities, vim.tbl_extend('force', answers(edited), change or {}))
  end

  it('that would omit a reference is refused', function()
    renamer({ 0 })
    t.fails('busy', 'would miss the reference at text.txt:2', ask('symbol_rename', { new_name = 'new' }))
    t.eq({ 'one', 'one' }, vim.api.nvim_buf_get_lines(bufnr, 0, -1, false))
  end)

  it('is asked for again when the server begins to read files meanwhile', function()
    local s, asked = nil, 0
    local edit_of = answers({ 0, 1 })['textDocument/rename']
    s = renamer({ 0, 1 }, {
      ['textDocument/rename'] = function(params)
        asked = asked + 1
        if asked == 1 then
          s:progress('begin', { title = 'checking' })
          vim.defer_fn(function() s:progress('end') end, 400)
        end
        return edit_of(params)
      end,
    })
    local result = t.ok(ask('symbol_rename', { new_name = 'new', preview = true }))
    t.eq({ 2, 2 }, { asked, result.places })
  end)

  it('to a name that the same scope already has is refused, and changes nothing', function()
    local function symbol(name, line, children)
      local at = range(line, 0, 3)
      return { name = name, kind = 6, range = at, selectionRange = at, children = children }
    end
    local box = symbol('Box', 0, { symbol('one', 0), symbol('new', 2) })
    box.range, box.selectionRange = range(0, 0, 0, 3), range(3, 0, 3)
    local s = renamer({ 0, 1 }, { ['textDocument/documentSymbol'] = { box, symbol('other', 4) } })
    s.client.server_capabilities.documentSymbolProvider = true
    edit({ 'one', 'one', 'new', 'Box', 'other' })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    for _, dry_run in ipairs({ true, false }) do
      local value, err = ask('symbol_rename', { new_name = 'new', preview = dry_run })
      t.fails('validation_error', 'Box already defines new %(line 3%)', value, err)
    end
    t.eq('one', vim.api.nvim_buf_get_lines(bufnr, 0, 1, false)[1])
    -- A name in another scope is no conflict.
    t.ok(ask('symbol_rename', { new_name = 'other', preview = true }))
  end)

  it('to a name in another container of a flat list is no conflict', function()
    local uri = vim.uri_from_fname(path)
    local function symbol(name, line, container)
      return { name = name, kind = 6, location = { uri = uri, range = range(line, 0, 3) }, containerName = container }
    end
    local s = renamer({ 1, 2 }, {
      ['textDocument/definition'] = { uri = uri, range = range(1, 0, 3) },
      ['textDocument/documentSymbol'] = {
        symbol('Box', 0, ''),
        symbol('one', 1, 'Box'),
        symbol('old', 3, 'Box'),
        symbol('Bag', 4),
        symbol('new', 5, 'Bag'),
      },
    })
    s.client.server_capabilities.documentSymbolProvider = true
    edit({ 'Box', 'one', 'one', 'old', 'Bag', 'new' })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    local function dry_run(name) return ask('symbol_rename', { line = 2, new_name = name, preview = true }) end
    t.ok(dry_run('new'))
    t.fails(nil, 'Box already defines old %(line 4%)', dry_run('old'))
  end)

  it('is compared with its siblings when ranges of the server begin with a keyword', function()
    local uri = vim.uri_from_fname(path)
    local function symbol(name, first, last, container)
      local at = range(first, 0, 8, last)
      return { name = name, kind = 12, location = { uri = uri, range = at }, containerName = container }
    end
    local s = renamer({}, {
      ['textDocument/rename'] = { changes = { [uri] = { { range = range(0, 4, 7), newText = 'new' } } } },
      ['textDocument/definition'] = { uri = uri, range = range(0, 4, 7) },
      ['textDocument/documentSymbol'] = { symbol('one', 0, 1), symbol('inner', 1, 1, 'one'), symbol('other', 2, 2) },
    })
    s.client.server_capabilities.documentSymbolProvider = true
    edit({ 'def one:', '  inner', 'def other:' })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    local function dry_run(name) return ask('symbol_rename', { column = 5, new_name = name, preview = true }) end
    t.ok(dry_run('inner'))
    t.fails(nil, 'text.txt already defines other %(line 3%)', dry_run('other'))
  end)

  it('of many places has a preview of limited size', function()
    local lines = {}
    local s = renamer({}, {
      ['textDocument/rename'] = function(params)
        local edits = t.list(#lines, function(i) return { range = range(i - 1, 0, 3), newText = params.newName } end)
        return { changes = { [vim.uri_from_fname(path)] = edits } }
      end,
    })
    for i = 1, 3000 do
      lines[i] = 'one' .. (' '):rep(60) .. i
    end
    edit(lines)
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    local answer = t.ok(ask('symbol_rename', { new_name = 'new', preview = true }))
    t.eq(3000, answer.places)
    t.ok(#vim.json.encode(answer) < 24000)
    t.matches('more lines', answer.diff)
  end)

  it('asks with its diff, as long as the text does not change', function()
    renamer({ 0, 1 })
    local preview = require('mcp-tools.editor.lsp.rename').preview
    local args = { line = 1, column = 1, new_name = 'new' }
    vim.api.nvim_win_set_buf(0, bufnr)
    t.ok(project.call('symbol_rename', vim.tbl_extend('force', { preview = true }, args)))
    t.matches('%+new', preview(args))
    vim.cmd('enew')
    t.matches('no language server is attached', select(2, preview(args)).message)
    vim.api.nvim_win_set_buf(0, bufnr)
    t.matches('%+new', preview(args))
    edit({ 'one', 'one', 'three' })
    t.matches('^renames the symbol in line 1 ', preview(args))
    edit({ 'x.größe()' })
    t.matches('^renames "größe" in line 1', preview({ line = 1, symbol = 'größe', new_name = 'new' }))
    t.matches('line: 7 is beyond', select(2, preview({ line = 7, column = 5, new_name = 'new' })).message)
    t.matches('column: 99 is beyond', select(2, preview({ line = 1, column = 99, new_name = 'new' })).message)
  end)

  it('that also renames files is refused', function()
    local change = { kind = 'rename', oldUri = 'file:///a', newUri = 'file:///b' }
    renamer({ 0, 1 }, { ['textDocument/rename'] = { documentChanges = { change } } })
    t.fails(nil, 'wants to rename a file', ask('symbol_rename', { new_name = 'new' }))
  end)
end)

describe('an invalid answer of a server', function()
  local function uri() return vim.uri_from_fname(path) end

  it('is left out of locations, symbols and hierarchies', function()
    local fine = { uri = uri(), range = double.range(0, 0, 3) }
    local invalid = { { uri = 5, range = double.range(0, 0) }, vim.NIL, 'x', { uri = uri(), range = { start = {} } } }
    local item = { name = 'one', kind = 12, uri = uri(), range = fine.range, selectionRange = fine.range }
    ready({
      referencesProvider = true,
      documentSymbolProvider = true,
      callHierarchyProvider = true,
      hoverProvider = true,
    }, {
      ['textDocument/references'] = vim.list_extend({ fine }, invalid),
      ['textDocument/documentSymbol'] = vim.list_extend({ item, { name = 'two', kind = 12, range = {} } }, invalid),
      ['textDocument/prepareCallHierarchy'] = { item },
      ['callHierarchy/incomingCalls'] = {
        { from = item, fromRanges = { fine.range, {}, vim.NIL } },
        { from = vim.NIL, fromRanges = {} },
        vim.NIL,
      },
    })
    t.eq(1, t.ok(ask('symbol_references')).total)
    t.matches('one', vim.inspect(t.ok(project.call('symbol_overview', { path = path }))))
    t.eq(1, t.ok(ask('symbol_callers')).total)
  end)

  it('changes nothing if it is an edit', function()
    local edit_of = { range = double.range(0, 0, 3), newText = 'two' }
    for _, change in ipairs({
      { documentChanges = { { textDocument = vim.NIL, edits = { edit_of } } } },
      { documentChanges = { vim.NIL } },
      { documentChanges = { { kind = 'create' } } },
      { changes = { [uri()] = { { range = double.range(0, 0.5, 3), newText = 'two' } } } },
      { changes = { [uri()] = { edit_of, { range = edit_of.range } } } },
      { changes = { [uri()] = { edit_of, { range = { start = {} }, newText = '' } } } },
    }) do
      ready({ renameProvider = true, hoverProvider = true }, { ['textDocument/rename'] = change })
      local _, err = ask('symbol_rename', { new_name = 'two' })
      t.has({ code = 'tool_error', message = 'the server returned an invalid edit; nothing was changed' }, err)
      t.eq({ 'one' }, vim.api.nvim_buf_get_lines(bufnr, 0, -1, false))
      project.stop_servers()
    end
  end)

  it('edits a file whose URI is spelled in two ways', function()
    local function edits(from, to) return { { range = double.range(0, from, to), newText = 'x' } } end
    local other = uri():gsub('(%w)$', function(last) return ('%%%02X'):format(last:byte()) end)
    local change = {
      documentChanges = {
        { textDocument = { uri = uri() }, edits = edits(0, 1) },
        { textDocument = { uri = other }, edits = edits(1, 3) },
      },
    }
    ready({ renameProvider = true, hoverProvider = true }, { ['textDocument/rename'] = change })
    t.ok(ask('symbol_rename', { new_name = 'xx' }))
    t.eq({ 'xx' }, vim.api.nvim_buf_get_lines(bufnr, 0, -1, false))
  end)
end)

describe('text from a server', function()
  local TOKEN = 'ghp_' .. ('a1B2'):rep(9)

  --- Asserts that an answer has the token redacted.
  local function without_token(name, args)
    local result, err = project.call(name, vim.tbl_extend('force', { path = path }, args or {}))
    local text = vim.inspect({ result, err })
    t.ok(not text:find(TOKEN, 1, true), text)
    t.matches('%[secret%]', text)
  end

  describe('hover', function()
    it('without contents is empty', function()
      local s = ready({ hoverProvider = true })
      for _, contents in ipairs({ vim.NIL, {}, { kind = 'markdown', value = vim.NIL }, { { language = 'lua' } } }) do
        s.answers['textDocument/hover'] = { contents = contents }
        local result, err = ask('symbol_info')
        t.eq('', result and result.info or err)
      end
      s.answers['textDocument/hover'] = vim.empty_dict()
      t.eq('', ask('symbol_info').info)
    end)

    it('and the definition are requested at the same time', function()
      local s, asked
      s = ready({ hoverProvider = true, definitionProvider = true }, {
        ['textDocument/hover'] = function()
          asked = s.asked[#s.asked].method
          return { contents = 'text' }
        end,
        ['textDocument/definition'] = function()
          return { uri = vim.uri_from_fname(path), range = double.range(1, 0, 3) }
        end,
      })
      edit({ 'one', 'two' })
      s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
      local result = t.ok(ask('symbol_info'))
      t.eq({ 'text', 'text.txt:2', 'two' }, { result.info, result.defined, result.source })
      t.eq('textDocument/definition', asked)
    end)
  end)

  it('an LSP event that is triggered manually causes no error', function()
    ready({ hoverProvider = true })
    t.ok(project.call('editor_servers'))
    for _, event in ipairs({ 'LspAttach', 'LspDetach', 'LspNotify' }) do
      t.eq({ true }, { pcall(vim.api.nvim_exec_autocmds, event, { group = 'mcp-tools.lsp', data = nil }) })
      t.eq({ true }, { pcall(vim.api.nvim_exec_autocmds, event, { group = 'mcp-tools.lsp', data = 'mine' }) })
    end
  end)

  it('secrets in titles, errors and progress of a server are redacted', function()
    local s = ready({ codeActionProvider = true, hoverProvider = true }, {
      ['textDocument/codeAction'] = { { title = 'fix', disabled = { reason = 'no: ' .. TOKEN } } },
      ['textDocument/hover'] = double.fault('cannot read ' .. TOKEN),
    })
    without_token('code_actions', { line = 1, column = 1 })
    without_token('symbol_info', { line = 1, column = 1 })
    s:progress('begin', { title = 'Indexing', message = TOKEN })
    without_token('editor_servers')
  end)
end)

describe('a symbol without a line', function()
  local TEXT = {
    '-- post_entry and close are explained here',
    'class Ledger',
    '  def post_entry()',
    '  def close()',
    'class Journal',
    '  def close()',
    '-- total',
    'total = Ledger()',
  }

  local s

  local function symbol(name, line, from, children)
    local at = double.range(line, from, from + #name)
    return { name = name, kind = 5, range = at, selectionRange = at, children = children }
  end

  --- The position that the server was asked for, and the answer.
  local function references(args)
    local result, err = project.call('symbol_references', vim.tbl_extend('force', { path = path }, args))
    local asked
    for _, each in ipairs(s.asked) do
      if each.method == 'textDocument/references' then
        asked = { each.params.position.line, each.params.position.character }
      end
    end
    return asked, err, result
  end

  local function serve(capabilities, symbols)
    local answers = {
      ['textDocument/documentSymbol'] = symbols or {
        symbol('Ledger', 1, 6, { symbol('post_entry', 2, 6), symbol('close', 3, 6) }),
        symbol('Journal', 4, 6, { symbol('close', 5, 6) }),
      },
      ['textDocument/documentHighlight'] = function(params)
        return params.position.line == 7 and { { range = double.range(7, 0, 5) } } or nil
      end,
      ['textDocument/references'] = { { uri = vim.uri_from_fname(path), range = double.range(7, 8, 14) } },
    }
    s = ready(vim.tbl_extend('error', { referencesProvider = true }, capabilities), answers)
  end

  before_each(function() project.write('text.txt', table.concat(TEXT, '\n') .. '\n') end)

  it('is at its definition, not in the first comment', function()
    serve({ documentSymbolProvider = true, documentHighlightProvider = true })
    t.eq({ 2, 6 }, (references({ symbol = 'post_entry' })))
    t.eq({ 5, 6 }, (references({ symbol = 'Journal/close' })))
    t.eq({ 3, 6 }, (references({ symbol = 'Ledger.close' })))
    t.eq({ 4, 6 }, (references({ symbol = '/Journal' })))
  end)

  it('is found by its container in a flat list', function()
    local function flat(name, line, container)
      local location = { uri = vim.uri_from_fname(path), range = double.range(line, 6, 6 + #name) }
      return { name = name, kind = 6, location = location, containerName = container }
    end
    serve({ documentSymbolProvider = true }, {
      flat('Ledger', 1),
      flat('post_entry', 2, 'Ledger'),
      flat('close', 3, 'shop.Ledger'),
      flat('Journal', 4),
      flat('close', 5, 'Journal'),
    })
    t.eq({ 5, 6 }, (references({ symbol = 'Journal/close' })))
    t.eq({ 3, 6 }, (references({ symbol = 'Ledger/close' })))
    t.eq({ 4, 6 }, (references({ symbol = '/Journal' })))
  end)

  it('is at a use that the server knows, when it is not defined', function()
    serve({ documentSymbolProvider = true, documentHighlightProvider = true })
    t.eq({ 7, 0 }, (references({ symbol = 'total' })))
  end)

  it('is refused with the definitions, when it is ambiguous or only in comments', function()
    serve({ documentSymbolProvider = true, documentHighlightProvider = true })
    local asked, err = references({ symbol = 'close' })
    t.eq({ nil, 'validation_error' }, { asked, err.code })
    t.matches('Ledger/close %(line 4%), Journal/close %(line 6%)', err.message)
    for _, name in ipairs({ 'explained', 'nothing', '/close' }) do
      t.fails('not_found', nil, references({ symbol = name }))
    end
    t.matches('Ledger/close', err.message)
  end)

  it('with a line is on that line', function()
    serve({ documentSymbolProvider = true, documentHighlightProvider = true })
    t.eq({ 5, 6 }, (references({ symbol = 'close', line = 6 })))
  end)

  it('is the first matching text without a server that knows', function()
    serve({})
    t.eq({ 0, 3 }, (references({ symbol = 'post_entry' })))
  end)
end)

it('base classes that no server can find are an error that says what to use instead', function()
  server({ implementationProvider = true })
  local args = { path = path, line = 1, column = 1, direction = 'up' }
  local _, err = project.call('symbol_implementations', args)
  t.eq('not_found', err.code)
  t.matches('symbol_info shows', err.message)
end)
