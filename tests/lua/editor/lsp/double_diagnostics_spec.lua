-- slow, every Neovim
-- Whether diagnostics of a scripted server are for the current text.

local clients = require('mcp-tools.editor.lsp.clients')
local double = require('lsp_double')
local double_project = require('double_project')
local project = require('lsp_project')
local t = require('helpers')

local path, bufnr
local start, result_of = double_project.start, double_project.result_of

local server, ready = double_project.starters(function(number) bufnr = number end)

local function edit(lines) vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines) end

--- Publishes for the current text when the server has received it.
local function publish(s, messages)
  local version = vim.lsp.util.buf_versions[bufnr]
  t.wait(function()
    local heard = s:heard('textDocument/didChange')
    return heard and heard.textDocument.version == version
  end)
  s:publish(bufnr, version, messages)
end

before_each(function()
  path = double_project.open()
  require('mcp-tools.editor.lsp.server_state').ensure_listening()
end)
after_each(project.close)

describe('diagnostics', function()
  it('of an older version are not current, those of the current one are', function()
    local s = ready({ hoverProvider = true })
    t.eq('yes', project.call('diagnostics_list', { path = path }).checked)
    local old = vim.lsp.util.buf_versions[bufnr]
    edit({ 'two' })
    local call = start('diagnostics_list', { path = path })
    s:publish(bufnr, old, {})
    vim.wait(400)
    t.ok(not call:ended())
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'wrong' })
    local result = result_of(call)
    t.eq({ true, 1, '1:1 error: wrong' }, { result.checked == 'yes', #result.new, result.new[1] })
  end)

  it('are shown with their source line, without repeated details and hints', function()
    local s = ready({ hoverProvider = true })
    edit({ '  count = "none"' })
    local call = start('diagnostics_list', { path = path })
    publish(s, {
      { message = 'Type "str" is not assignable to "int"\n  "str" is not "int"\n  "bool" is' },
      { message = 'unused', severity = 4 },
    })
    local result = result_of(call)
    t.eq({ '1:1 error: Type "str" is not assignable to "int" / "bool" is' }, result.diagnostics)
    local text = require('mcp-tools.editor.diagnostics.list').text
    local row = result.diagnostics[1]
    t.eq(
      ('1 error in text.txt; 1 new, 1 fixed\n%s (new)\n  count = "none"\nfixed: 1:1 error: wrong'):format(row),
      text(result, {})
    )
    result.fixed = {}
    t.eq(('1 error in text.txt; all new\n%s\n  count = "none"'):format(row), text(result, {}))
    t.eq(2, project.call('diagnostics_list', { path = path, min_severity = 'hint' }).total)
    t.eq(1, project.call('diagnostics_list', { path = path, severity = 'hint' }).total)
  end)

  it('of a file that is reloaded are for the new text', function()
    local s = server({ hoverProvider = true })
    local version = vim.lsp.util.buf_versions[bufnr]
    s:publish(bufnr, version, {})
    t.eq('yes', project.call('diagnostics_list', { path = path }).checked)
    s.opens = function()
      s:publish(bufnr, version, { 'for the old text' })
      s:publish(bufnr, nil, {}) -- about the file that was closed
      vim.defer_fn(function() s:publish(bufnr, version, { 'wrong' }) end, 300)
    end
    project.write('text.txt', 'another text\n')
    local result = project.call('diagnostics_list', { path = path })
    t.eq({ true, { '1:1 error: wrong' } }, { result.checked == 'yes', result.new })
  end)

  it('of the current version are incomplete while the server is still checking', function()
    local s = ready({ hoverProvider = true })
    t.eq('yes', project.call('diagnostics_list', { path = path }).checked)
    edit({ 'two' })
    local call = start('diagnostics_list', { path = path })
    -- As basedpyright does when it runs out of time between two files.
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    s:progress('begin', { title = 'checking' })
    vim.wait(300)
    t.ok(not call:ended())
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'wrong' })
    s:progress('end')
    local result = result_of(call)
    t.eq({ true, { '1:1 error: wrong' } }, { result.checked == 'yes', result.new })
    edit({ 'three' })
    call = start('diagnostics_list', { path = path, timeout_ms = 700 })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    s:progress('begin', { title = 'checking' })
    result = result_of(call)
    t.eq(false, result.checked == 'yes')
    t.matches('double is still indexing %(checking%)', result.why)
  end)

  it('that never come are not reported as clean', function()
    ready({ hoverProvider = true })
    edit({ 'two' })
    local result = project.call('diagnostics_list', { path = path, timeout_ms = 700 })
    t.eq('stale', result.checked)
    t.matches('double has not', result.why)
    local list = project.call('diagnostics_list', { path = path, wait_ms = 0 })
    t.ok(list.checked ~= 'yes')
  end)

  it('of a server without versions are those after the change, once it is quiet', function()
    local s = server({ hoverProvider = true })
    s.opens = function() s:publish(bufnr, nil, {}) end -- as servers do for a file that is opened
    s.opens()
    t.eq('yes', project.call('diagnostics_list', { path = path }).checked)
    s.opens = nil
    edit({ 'two' })
    local call = start('diagnostics_list', { path = path })
    s:publish(bufnr, nil, {}) -- for the old text
    vim.wait(150)
    s:publish(bufnr, nil, { 'wrong' })
    local result = result_of(call)
    t.eq({ true, { '1:1 error: wrong' } }, { result.checked == 'yes', result.new })
  end)

  it('of a silent server are assumed, without reopening the file', function()
    local s = server({ hoverProvider = true })
    s:publish(bufnr, nil, { 'old' })
    t.eq('yes', project.call('diagnostics_list', { path = path }).checked)
    edit({ 'two' })
    local before = #s.told
    local result = project.call('diagnostics_list', { path = path })
    t.eq(false, result.checked == 'yes')
    t.matches('^assumed', result.checked)
    t.matches('double', result.why)
    local list = project.call('diagnostics_list', { path = path, wait_ms = 8000 })
    t.eq({ 'assumed', 1 }, { list.checked, list.total })
    for i = before + 1, #s.told do
      t.ok(not s.told[i].method:find('didOpen') and not s.told[i].method:find('didClose'), s.told[i].method)
    end
  end)

  it('are not awaited from a client that never publishes, or only for other files', function()
    for _, publishes in ipairs({ false, true }) do
      local other_client = server({ hoverProvider = true })
      local s = double.start(bufnr, project.root, { hoverProvider = true }, {})
      if publishes then
        local other = vim.fn.bufadd(project.write('other.txt', 'one\n'))
        vim.fn.bufload(other)
        other_client:publish(other, nil, {})
      end
      project.call('editor_servers')
      for i = 1, 3 do
        edit({ 'text ' .. i })
        local call = start('diagnostics_list', { path = path, timeout_ms = 15000 })
        publish(s, { 'wrong ' .. i })
        local result = result_of(call, 10000)
        t.eq({ 'yes', { ('1:1 error: wrong %d'):format(i) } }, { result.checked, result.new })
      end
      t.eq('yes', project.call('diagnostics_list', { path = path, wait_ms = 0 }).checked)
      clients.stop(other_client.client, true)
      clients.stop(s.client, true)
    end
  end)

  it('of clients that never publish are unknown without a wait', function()
    server({ hoverProvider = true })
    project.call('diagnostics_list', { path = path })
    edit({ 'two' })
    project.call('diagnostics_list', { path = path })
    local call = project.start('diagnostics_list', { path = path })
    t.eq('unknown', result_of(call, 10000).checked)
  end)

  it('of a server without versions are incomplete while it computes', function()
    local s
    local computes = false
    s = server({ hoverProvider = true }, {
      ['textDocument/hover'] = function()
        if computes then -- a server with one thread publishes what it has found, then answers
          computes = false
          s:publish(bufnr, nil, { 'late' })
        end
      end,
    })
    s:publish(bufnr, nil, {})
    t.eq('yes', project.call('diagnostics_list', { path = path }).checked)
    edit({ 'two' })
    local call = start('diagnostics_list', { path = path })
    computes = true
    s:publish(bufnr, nil, {})
    t.eq({ '1:1 error: late' }, result_of(call).new)
  end)

  it('that a severity filters are not reported as fixed', function()
    local s = server({ hoverProvider = true })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'an error' })
    local ns = vim.api.nvim_create_namespace('spec')
    vim.diagnostic.set(ns, bufnr, { { lnum = 0, col = 0, message = 'a warning', severity = 2 } })
    local result = project.call('diagnostics_list', { path = path })
    t.eq(2, result.total)
    result = project.call('diagnostics_list', { path = path, min_severity = 'error' })
    t.eq({ {}, {}, { '1:1 error: an error' } }, { result.new, result.fixed, result.diagnostics })
  end)

  it('that are fixed disappear for the user as well, if the server has an identifier', function()
    local items = { { range = double.range(0, 0, 1), message = 'pulled', severity = 2 } }
    server({
      diagnosticProvider = { identifier = 'own', interFileDependencies = false, workspaceDiagnostics = false },
    }, {
      ['textDocument/diagnostic'] = function(params)
        -- Neovim 0.10 and 0.11 leave the identifier out.
        t.ok(params.identifier == 'own' or vim.fn.has('nvim-0.12') == 0)
        return { kind = 'full', items = items }
      end,
    })
    vim.api.nvim_win_set_buf(0, bufnr) -- Neovim asks for what is visible
    t.eq({ 1, 1 }, { project.call('diagnostics_list', { path = path }).total, (#vim.diagnostic.get(bufnr)) })
    items = {}
    edit({ 'two' })
    t.wait(function() return #vim.diagnostic.get(bufnr) == 0 end)
  end)

  it('are pulled from a server that supports that', function()
    local items = { { range = double.range(0, 0, 1), message = 'pulled', severity = 2 } }
    server({ diagnosticProvider = { interFileDependencies = false, workspaceDiagnostics = false } }, {
      ['textDocument/diagnostic'] = function() return { kind = 'full', items = items } end,
    })
    local result = project.call('diagnostics_list', { path = path })
    t.eq(true, result.checked == 'yes')
    local list = project.call('diagnostics_list', { path = path })
    t.eq({ 'yes', { '1:1 warning: pulled' } }, { list.checked, list.diagnostics })
    items = {}
    edit({ 'two' })
    result = project.call('diagnostics_list', { path = path })
    t.eq({ true, {}, 1 }, { result.checked == 'yes', result.new, #result.fixed })
  end)

  it('that were pulled for an older text are pulled again', function()
    local asked = 0
    local item = { range = double.range(0, 0, 1), message = 'wrong', severity = 1 }
    server({ diagnosticProvider = { interFileDependencies = false, workspaceDiagnostics = false } }, {
      ['textDocument/diagnostic'] = function()
        asked = asked + 1
        if asked == 1 then
          edit({ 'two' })
          return { kind = 'full', items = {} }
        end
        return { kind = 'full', items = { item } }
      end,
    })
    local result = project.call('diagnostics_list', { path = path })
    t.eq({ true, { '1:1 error: wrong' } }, { result.checked == 'yes', result.new })
  end)

  it('whose request was cancelled by someone else are pulled again', function()
    local asked, s = 0, nil
    local item = { range = double.range(0, 0, 1), message = 'wrong', severity = 1 }
    s = server({ diagnosticProvider = { interFileDependencies = false, workspaceDiagnostics = false } }, {
      ['textDocument/diagnostic'] = function()
        asked = asked + 1
        for id, request in pairs(asked <= 2 and s.client.requests or {}) do
          if request.method == 'textDocument/diagnostic' then
            clients.cancel(s.client, id)
          end
        end
        if asked == 1 then
          return double.SILENT -- Neovim ignores an answer that says that it was cancelled
        end
        return { kind = 'full', items = asked > 2 and { item } or {} } -- as basedpyright answers a cancelled one
      end,
    })
    local result = project.call('diagnostics_list', { path = path })
    t.eq({ true, { '1:1 error: wrong' } }, { result.checked == 'yes', result.new })
  end)

  it('of a file that is closed during the wait are an error', function()
    ready({ hoverProvider = true })
    t.eq('yes', project.call('diagnostics_list', { path = path }).checked)
    edit({ 'two' })
    local call = start('diagnostics_list', { path = path })
    vim.wait(200)
    vim.cmd(('bwipeout! %d'):format(bufnr))
    t.ended(call)
    t.eq('not_found', call.outcome.error.code)
  end)
end)

describe('diagnostics after edits', function()
  --- Changes the text, and waits until the server has been notified.
  local function change(of, lines)
    local before = of.changed_at
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
    t.wait(function() return of.changed_at > before end)
  end

  ---@param s LspDouble
  ---@param method string
  ---@return integer
  local function count_asked(s, method)
    return #vim.tbl_filter(function(each) return each.method == method end, s.asked)
  end

  describe('progress of a server', function()
    local REFERENCES = { referencesProvider = true, textDocumentSync = 1 }

    -- As after a while: no file was opened recently.
    local function settled()
      local s = server(REFERENCES, { ['textDocument/references'] = {} })
      project.call('editor_servers')
      s:publish(bufnr, 0, {})
      project.call('symbol_references', { path = path, line = 1, column = 1 })
      local of = require('mcp-tools.editor.lsp.server_state').of(s.client)
      of.opened_at = of.opened_at - 1e9
      return s, of
    end

    it('after a change of text is not awaited', function()
      local s, of = settled()
      change(of, { 'two' })
      s:progress('begin', { title = '', message = '1 file to analyze' })
      t.eq(0, project.call('symbol_references', { path = path, line = 1, column = 1 }).total)
      t.eq('ready', project.call('editor_servers').servers[1].state)
    end)

    it('is awaited when a file was just opened, or nothing was changed', function()
      local s, of = settled()
      s:progress('begin', { title = 'Indexing' })
      local call = double_project.start('symbol_references', { path = path, line = 1, column = 1 })
      s:progress('end')
      t.eq(0, double_project.result_of(call).total)
      of.opened_at = vim.uv.hrtime()
      change(of, { 'two' })
      s:progress('begin', { title = 'Indexing' })
      call = double_project.start('symbol_references', { path = path, line = 1, column = 1 })
      s:progress('end')
      t.eq(0, double_project.result_of(call).total)
    end)
  end)

  describe('diagnostics in the result of an edit', function()
    it('are not reported as clean while the server has only published for an older text', function()
      local s = server({ hoverProvider = true }, { ['textDocument/hover'] = { contents = 'text' } })
      project.call('editor_servers')
      s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'old' })
      local edits = { { search = 'one', replace = 'two' } }
      local one = t.ok(project.call('file_edit', { path = path, edits = edits })).diagnostics[1]
      t.eq({ { 'two' }, 'assumed' }, { vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), one.checked })
      t.eq(nil, one.rows)
      t.matches('^double has published nothing', one.why)
      vim.bo[bufnr].modified = false
    end)
  end)

  it('an edit reports the errors that it causes in other open files', function()
    local s = server({ hoverProvider = true }, { ['textDocument/hover'] = { contents = 'text' } })
    local other = vim.fn.bufadd(project.write('other.txt', 'one\n'))
    vim.fn.bufload(other)
    vim.lsp.buf_attach_client(other, s.client.id)
    local late = vim.fn.bufadd(project.write('late.txt', 'one\n'))
    vim.fn.bufload(late)
    vim.lsp.buf_attach_client(late, s.client.id)
    project.call('editor_servers')
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    s:publish(other, vim.lsp.util.buf_versions[other], { 'old' })
    local edits = { { search = 'one', replace = 'two' } }
    local call = double_project.start('file_edit', { path = path, edits = edits })
    t.wait(function() return s:heard('textDocument/didChange') end)
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    vim.defer_fn(function()
      s:publish(late, vim.lsp.util.buf_versions[late], { 'as old as the file' })
      s:publish(other, vim.lsp.util.buf_versions[other], { 'old', 'broken' })
    end, 100)
    local answer = double_project.result_of(call)
    t.eq({ 'yes', 0 }, { answer.diagnostics[1].checked, answer.diagnostics[1].total })
    t.eq({ total = 1, files = 1, rows = { 'other.txt:1:1 error: broken' } }, answer.elsewhere)
    local text = require('mcp-tools.tools.file.edit').render(answer, {})
    t.matches('; no errors or warnings\nelsewhere: 1 new error in 1 file\n', text)
    local list = project.call('diagnostics_list', {})
    t.eq(3, list.open)
    t.matches('closed files were not checked', list.note)
    vim.bo[bufnr].modified = false
  end)

  it('an edit that is cancelled while it waits for diagnostics reports that its changes remain', function()
    server({ hoverProvider = true }, { ['textDocument/hover'] = { contents = 'text' } })
    project.call('editor_servers')
    local edits = { { search = 'one', replace = 'two' } }
    local call = double_project.start('file_edit', { path = path, edits = edits })
    t.wait(function() return vim.bo[bufnr].modified end)
    t.ok(not call:ended())
    call:cancel('client')
    t.matches('; the changes that it had made remain$', call.outcome.error.message)
    t.eq({ 'two' }, vim.api.nvim_buf_get_lines(bufnr, 0, -1, false))
    vim.bo[bufnr].modified = false
  end)

  it('an edit that moves an error does not report it as new', function()
    local s = server({ hoverProvider = true }, { ['textDocument/hover'] = { contents = 'text' } })
    project.call('editor_servers')
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'old' })
    local args = { path = path, edits = { { search = 'one', replace = 'two\none' } } }
    local fresh = { kind = 'tool', host = 'mcp', client = { name = 'has not asked before' } }
    local call = require('mcp-tools.core').get().executor:execute('file_edit', args, fresh)
    t.wait(function() return s:heard('textDocument/didChange') end)
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'old' })
    local one = double_project.result_of(call).diagnostics[1]
    t.eq({ 'yes', 1, false }, { one.checked, one.total, one.only_new })
    vim.bo[bufnr].modified = false
  end)

  it('semantic tokens of a hidden buffer are requested when the user sees it', function()
    local TOKENS = 'textDocument/semanticTokens/full'
    local capabilities = {
      semanticTokensProvider = { full = true, legend = { tokenTypes = {}, tokenModifiers = {} } },
      hoverProvider = true,
    }

    local s = server(capabilities, { [TOKENS] = double.SILENT, ['textDocument/hover'] = { contents = 'text' } })
    local client = s.client
    t.wait(function() return count_asked(s, TOKENS) == 1 end)
    project.call('editor_servers')
    s:publish(bufnr, 0, {})
    t.ok(project.call('symbol_info', { path = path }))
    local unseen = vim.fn.bufadd(project.write('other.txt', 'text\n'))
    vim.fn.bufload(unseen)
    vim.lsp.buf_attach_client(unseen, client.id)
    vim.wait(20)
    vim.api.nvim_buf_set_lines(unseen, 0, -1, false, { 'more' })
    vim.wait(400) -- Neovim waits 200 ms after a change
    t.eq(1, count_asked(s, TOKENS))
    vim.bo[unseen].modified = false
    vim.cmd('sbuffer ' .. unseen)
    t.wait(function() return count_asked(s, TOKENS) == 2 end)
    vim.cmd('close')
  end)
end)
