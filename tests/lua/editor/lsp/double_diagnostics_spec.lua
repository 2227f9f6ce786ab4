-- slow, every Neovim
-- Diagnostics by a server that does what a test says: whether they are of the text that the buffer has now.

local double = require('lsp_double')
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
  require('mcp-tools.editor.lsp.server_state').ensure_listening()
end)
after_each(project.close)

describe('diagnostics', function()
  it('of an older version are not fresh, and those of the present one are', function()
    local s = server({ hoverProvider = true })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    t.eq(true, project.call('diagnostics_wait', { path = path }).settled)
    local old = vim.lsp.util.buf_versions[bufnr]
    edit({ 'two' })
    local call = start('diagnostics_wait', { path = path })
    s:publish(bufnr, old, {})
    vim.wait(400)
    t.ok(not call:ended(), 'clean by what was said of an older text')
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'wrong' })
    local result = result_of(call)
    t.eq({ true, 1 }, { result.settled, #result.new })
    t.eq('1:1 error: wrong', result.new[1])
  end)

  it('of a file that is read again are of the text that was read', function()
    local s = server({ hoverProvider = true })
    local version = vim.lsp.util.buf_versions[bufnr]
    s:publish(bufnr, version, {})
    t.eq(true, project.call('diagnostics_wait', { path = path }).settled)
    s.opens = function()
      s:publish(bufnr, version, { 'of the text before' })
      s:publish(bufnr, nil, {}) -- about the file that was closed
      vim.defer_fn(function()
        s:publish(bufnr, version, { 'wrong' })
      end, 300)
    end
    project.write('text.txt', 'another text\n')
    local result = project.call('diagnostics_wait', { path = path })
    t.eq({ true, { '1:1 error: wrong' } }, { result.settled, result.new })
  end)

  it('of the present version are not all while the server works on what it has just been told', function()
    local s = server({ hoverProvider = true })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    t.eq(true, project.call('diagnostics_wait', { path = path }).settled)
    edit({ 'two' })
    local call = start('diagnostics_wait', { path = path })
    -- What basedpyright does when it has no time left between two files.
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    s:progress('begin', { title = 'checking' })
    vim.wait(300)
    t.ok(not call:ended(), 'clean by what was said of a part')
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'wrong' })
    s:progress('end')
    local result = result_of(call)
    t.eq({ true, { '1:1 error: wrong' } }, { result.settled, result.new })
    edit({ 'three' })
    call = start('diagnostics_wait', { path = path, timeout_ms = 700 })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    s:progress('begin', { title = 'checking' })
    result = result_of(call)
    t.eq(false, result.settled)
    t.matches('double is still indexing %(checking%)', result.why)
  end)

  it('that never come are never called clean', function()
    local s = server({ hoverProvider = true })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    edit({ 'two' })
    local result = project.call('diagnostics_wait', { path = path, timeout_ms = 700 })
    t.eq(false, result.settled)
    t.matches('double has not', result.why)
    t.matches('^no', result.checked)
    local list = project.call('diagnostics_list', { path = path, wait_ms = 0 })
    t.ok(list.checked ~= 'yes')
  end)

  it('of a server without versions are those after the change, when it has gone quiet', function()
    local s = server({ hoverProvider = true })
    s.opens = function() -- as each server speaks of a file that is opened
      s:publish(bufnr, nil, {})
    end
    s.opens()
    t.eq(true, project.call('diagnostics_wait', { path = path }).settled)
    s.opens = nil
    edit({ 'two' })
    local call = start('diagnostics_wait', { path = path })
    s:publish(bufnr, nil, {}) -- what it thought of the text before
    vim.wait(150)
    s:publish(bufnr, nil, { 'wrong' })
    local result = result_of(call)
    t.eq({ true, { '1:1 error: wrong' } }, { result.settled, result.new })
  end)

  it('of a server that stays silent are assumed, without reopening the file behind the editor', function()
    local s = server({ hoverProvider = true })
    s:publish(bufnr, nil, { 'old' })
    t.eq(true, project.call('diagnostics_wait', { path = path }).settled)
    edit({ 'two' })
    local before = #s.told
    local result = project.call('diagnostics_wait', { path = path })
    t.eq(false, result.settled)
    t.matches('^assumed', result.checked)
    t.matches('double', result.why)
    local list = project.call('diagnostics_list', { path = path, wait_ms = 8000 })
    t.eq({ 'assumed', 1 }, { list.checked, list.total })
    for i = before + 1, #s.told do
      t.ok(not s.told[i].method:find('didOpen') and not s.told[i].method:find('didClose'), s.told[i].method)
    end
  end)

  it('are not waited for from a client that never publishes', function()
    local silent = server({ hoverProvider = true })
    local s = double.start(bufnr, project.root, { hoverProvider = true }, {})
    project.call('lsp_status')
    for i = 1, 3 do
      edit({ 'text ' .. i })
      local version = vim.lsp.util.buf_versions[bufnr]
      local begun, call = vim.uv.hrtime(), start('diagnostics_wait', { path = path, timeout_ms = 15000 })
      s:publish(bufnr, version, { 'wrong ' .. i })
      local result = result_of(call, 12000)
      t.eq({ true, { ('1:1 error: wrong %d'):format(i) } }, { result.settled, result.new })
      t.ok(i == 1 or vim.uv.hrtime() - begun < 1.5e9, 'it was waited for again')
    end
    t.eq('yes', project.call('diagnostics_list', { path = path, wait_ms = 0 }).checked)
    t.ok(silent)
  end)

  it('are not waited for from a client that publishes about other files only', function()
    local other = vim.fn.bufadd(project.write('other.txt', 'one\n'))
    vim.fn.bufload(other)
    local s = server({ hoverProvider = true })
    local elsewhere = double.start(bufnr, project.root, { hoverProvider = true }, {})
    elsewhere:publish(other, nil, {})
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
    for i = 1, 2 do
      edit({ 'text ' .. i })
      local version = vim.lsp.util.buf_versions[bufnr]
      local begun, call = vim.uv.hrtime(), start('diagnostics_wait', { path = path })
      s:publish(bufnr, version, {})
      t.eq(true, result_of(call, 12000).settled)
      t.ok(i == 1 or vim.uv.hrtime() - begun < 1.2e9, 'it was waited for again')
    end
  end)

  it('of clients that never publish are unknown, which is known at once', function()
    server({ hoverProvider = true })
    project.call('diagnostics_wait', { path = path })
    edit({ 'two' })
    project.call('diagnostics_wait', { path = path })
    local begun = vim.uv.hrtime()
    local result = project.call('diagnostics_wait', { path = path })
    t.ok(vim.uv.hrtime() - begun < 1.5e9)
    t.eq(false, result.settled)
    t.matches('^no', result.checked)
    t.eq('unknown', project.call('diagnostics_list', { path = path }).checked)
  end)

  it('of a server without versions are not settled while it computes', function()
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
    t.eq(true, project.call('diagnostics_wait', { path = path }).settled)
    edit({ 'two' })
    local call = start('diagnostics_wait', { path = path })
    computes = true
    s:publish(bufnr, nil, {})
    t.eq({ '1:1 error: late' }, result_of(call).new)
  end)

  it('that a severity leaves out are not called fixed', function()
    local s = server({ hoverProvider = true })
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'an error' })
    local ns = vim.api.nvim_create_namespace('spec')
    vim.diagnostic.set(ns, bufnr, { { lnum = 0, col = 0, message = 'a warning', severity = 2 } })
    local result = project.call('diagnostics_wait', { path = path })
    t.eq(2, result.total)
    result = project.call('diagnostics_wait', { path = path, min_severity = 'error' })
    t.eq({ {}, {}, { '1:1 error: an error' } }, { result.new, result.fixed, result.remaining })
  end)

  it('that are fixed go away for the user as well, where the server has an identifier', function()
    local items = { { range = { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 1 } } } }
    items[1].message, items[1].severity = 'pulled', 2
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
    t.eq(1, project.call('diagnostics_wait', { path = path }).total)
    t.eq(1, #vim.diagnostic.get(bufnr))
    items = {}
    edit({ 'two' })
    t.wait(function()
      return #vim.diagnostic.get(bufnr) == 0
    end)
  end)

  it('are asked for where the server can be asked', function()
    local items = { { range = { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 1 } } } }
    items[1].message, items[1].severity = 'pulled', 2
    local s = server({ diagnosticProvider = { interFileDependencies = false, workspaceDiagnostics = false } }, {
      ['textDocument/diagnostic'] = function()
        return { kind = 'full', items = items }
      end,
    })
    local result = project.call('diagnostics_wait', { path = path })
    t.eq(true, result.settled)
    local list = project.call('diagnostics_list', { path = path })
    t.eq({ 'yes', { '1:1 warning: pulled' } }, { list.checked, list.diagnostics })
    items = {}
    edit({ 'two' })
    result = project.call('diagnostics_wait', { path = path })
    t.eq({ true, {}, 1 }, { result.settled, result.new, #result.fixed })
    t.ok(s)
  end)
end)
