-- slow, every Neovim
local double_project = require('double_project')
local project = require('lsp_project')
local t = require('helpers')

local path, bufnr
local start, result_of = double_project.start, double_project.result_of

local function server(capabilities, answers)
  local s
  s, bufnr = double_project.server(capabilities, answers)
  return s
end

local function edit(lines)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
end

before_each(function()
  path = double_project.open()
end)
after_each(project.close)

describe('a server at work', function()
  it('is told of with its percentage, and what it cannot know yet is no empty answer', function()
    local s = server({ referencesProvider = true, renameProvider = true }, { ['textDocument/references'] = {} })
    project.call('lsp_status') -- from now on somebody listens
    s:publish(bufnr, 0, {})
    local args = { path = path, line = 1, column = 1, limit = 5 }
    s:progress('begin', { title = 'Indexing', percentage = 40, message = '4/10' })
    local status = t.ok(project.call('lsp_status'))
    t.eq({ 'indexing', 40, 'Indexing: 4/10', false }, {
      status.servers[1].state,
      status.servers[1].percentage,
      status.servers[1].doing,
      status.ready,
    })
    local _, err = project.call('lsp_rename', { path = path, line = 1, column = 1, new_name = 'x', wait_ms = 100 })
    t.eq('busy', err.code)
    t.matches('double is still indexing, 40 %% %(Indexing: 4/10%)', err.message)
    local call = start('lsp_references', args)
    s:progress('report', { percentage = 90 })
    vim.wait(50)
    t.ok(not call:ended())
    s:progress('end')
    t.eq(0, result_of(call).total)
    status = project.call('lsp_status', { wait_ms = 2000 })
    t.eq({ 'ready', true }, { status.servers[1].state, status.ready })
  end)

  it('is waited for no longer than the call has time', function()
    local s = server({ referencesProvider = true }, { ['textDocument/references'] = {} })
    project.call('lsp_status')
    s:publish(bufnr, 0, {})
    s:progress('begin', { title = 'Indexing' })
    local result, err
    require('mcp-tools').call('lsp_references', { path = path, line = 1, column = 1 }, { timeout = 1500 }, function(...)
      result, err = ...
    end)
    t.wait(function()
      return result or err
    end, 8000)
    t.eq('busy', err.code)
    t.matches('still indexing', err.message)
  end)

  it('is not waited for when its progress is that of our own question', function()
    local s
    s = server({ hoverProvider = true }, {
      ['textDocument/hover'] = function(params)
        s:say('$/progress', { token = params.workDoneToken, value = { kind = 'begin', title = 'Hovering' } })
        return { contents = 'text' }
      end,
    })
    s:publish(bufnr, 0, {})
    t.eq('text', project.call('lsp_hover', { path = path }).hover)
    t.eq('ready', project.call('lsp_status', { wait_ms = 1000 }).servers[1].state)
  end)
end)

describe('a rename', function()
  local function range(line, first, last)
    return { start = { line = line, character = first }, ['end'] = { line = line, character = last } }
  end

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
    local s = server(
      { renameProvider = true, definitionProvider = true, referencesProvider = true, hoverProvider = true },
      vim.tbl_extend('force', answers(edited), change or {})
    )
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    return s
  end

  it('that would leave a place out is refused', function()
    renamer({ 0 })
    local result, err = project.call('lsp_rename', { path = path, line = 1, column = 1, new_name = 'new' })
    t.eq(nil, result)
    t.eq('busy', err.code)
    t.matches('would leave out text.txt:2', err.message)
    t.eq({ 'one', 'one' }, vim.api.nvim_buf_get_lines(bufnr, 0, -1, false))
  end)

  it('onto a name that is taken is refused by the symbols of the file, and changes nothing', function()
    local function symbol(name, line, children)
      return {
        name = name,
        kind = 6,
        range = range(line, 0, 3),
        selectionRange = range(line, 0, 3),
        children = children,
      }
    end
    local box = symbol('Box', 0, { symbol('one', 0), symbol('new', 2) })
    box.range, box.selectionRange =
      { start = { line = 0, character = 0 }, ['end'] = { line = 3, character = 0 } }, range(3, 0, 3)
    local s = renamer({ 0, 1 }, { ['textDocument/documentSymbol'] = { box, symbol('other', 4) } })
    s.client.server_capabilities.documentSymbolProvider = true
    edit({ 'one', 'one', 'new', 'Box', 'other' })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    for _, dry_run in ipairs({ true, false }) do
      local args = { path = path, line = 1, column = 1, new_name = 'new', dry_run = dry_run }
      local _, err = project.call('lsp_rename', args)
      t.eq(
        { 'validation_error', true },
        { err.code, err.message:find('Box already defines new (line 3)', 1, true) ~= nil }
      )
    end
    t.eq('one', vim.api.nvim_buf_get_lines(bufnr, 0, 1, false)[1])
    -- A name of another scope is no conflict.
    t.ok(project.call('lsp_rename', { path = path, line = 1, column = 1, new_name = 'other', dry_run = true }))
  end)

  it('of many places answers a dry run of a bounded size', function()
    local lines = {}
    local s = renamer({}, {
      ['textDocument/rename'] = function(params)
        local edits = {}
        for i = 1, #lines do
          edits[i] = { range = range(i - 1, 0, 3), newText = params.newName }
        end
        return { changes = { [vim.uri_from_fname(path)] = edits } }
      end,
    })
    for i = 1, 3000 do
      lines[i] = 'one' .. (' '):rep(60) .. i
    end
    edit(lines)
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    local args = { path = path, line = 1, column = 1, new_name = 'new', dry_run = true }
    local answer = t.ok(project.call('lsp_rename', args))
    t.eq(3000, answer.places)
    t.ok(#vim.json.encode(answer) < 24000)
    t.matches('more lines', answer.diff)
  end)

  it('is asked for with its diff, as long as that is what would happen', function()
    renamer({ 0, 1 })
    local preview = require('mcp-tools.editor.lsp.rename').preview
    local args = { line = 1, column = 1, new_name = 'new' }
    vim.api.nvim_win_set_buf(0, bufnr)
    t.ok(project.call('lsp_rename', vim.tbl_extend('force', { dry_run = true }, args)))
    t.matches('%+new', preview(args))
    vim.cmd('enew')
    t.matches('no language server is attached', select(2, preview(args)).message)
    vim.api.nvim_win_set_buf(0, bufnr)
    t.matches('%+new', preview(args))
    edit({ 'one', 'one', 'three' })
    t.matches('^renames "one" at', preview(args))
    edit({ 'x.größe()' })
    t.matches('^renames "größe" at', preview({ line = 1, column = 5, new_name = 'new' }))
    t.matches('^renames the symbol in', preview({ line = 1, column = 10, new_name = 'new' }))
    t.matches('line: 7 is beyond', select(2, preview({ line = 7, column = 5, new_name = 'new' })).message)
    t.matches('column: 99 is beyond', select(2, preview({ line = 1, column = 99, new_name = 'new' })).message)
  end)

  it('that wants to rename files as well is refused', function()
    renamer({ 0, 1 }, {
      ['textDocument/rename'] = {
        documentChanges = { { kind = 'rename', oldUri = 'file:///a', newUri = 'file:///b' } },
      },
    })
    local _, err = project.call('lsp_rename', { path = path, line = 1, column = 1, new_name = 'new' })
    t.matches('wants to rename a file', err.message)
  end)
end)
