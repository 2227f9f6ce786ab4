-- slow, every Neovim
local double = require('lsp_double')
local double_project = require('double_project')
local project = require('lsp_project')
local t = require('helpers')

local path, bufnr

local function server(capabilities, answers)
  local s
  s, bufnr = double_project.server(capabilities, answers)
  return s
end

--- Changes the text, and waits until the server is known to have been told.
local function edit(of, lines)
  local before = of.changed_at
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  t.wait(function()
    return of.changed_at > before
  end)
end

---@param s LspDouble
---@param method string
---@return integer
local function count_asked(s, method)
  return #vim.tbl_filter(function(each)
    return each.method == method
  end, s.asked)
end

before_each(function()
  path = double_project.open()
end)
after_each(project.close)

describe('work of a server', function()
  local REFERENCES = { referencesProvider = true, textDocumentSync = 1 }

  -- As after a while: no file was opened lately.
  local function settled()
    local s = server(REFERENCES, { ['textDocument/references'] = {} })
    project.call('lsp_status')
    s:publish(bufnr, 0, {})
    project.call('lsp_references', { path = path, line = 1, column = 1 })
    local of = require('mcp-tools.editor.lsp.server_state').of(s.client)
    of.opened_at = of.opened_at - 1e9
    return s, of
  end

  it('that a changed text has set off is not waited for', function()
    local s, of = settled()
    edit(of, { 'two' })
    s:progress('begin', { title = '', message = '1 file to analyze' })
    t.eq(0, project.call('lsp_references', { path = path, line = 1, column = 1 }).total)
    t.eq('ready', project.call('lsp_status').servers[1].state)
  end)

  it('is waited for when a file has just been opened, or nothing was changed', function()
    local s, of = settled()
    s:progress('begin', { title = 'Indexing' })
    local call = double_project.start('lsp_references', { path = path, line = 1, column = 1 })
    s:progress('end')
    t.eq(0, double_project.result_of(call).total)
    of.opened_at = vim.uv.hrtime()
    edit(of, { 'two' })
    s:progress('begin', { title = 'Indexing' })
    call = double_project.start('lsp_references', { path = path, line = 1, column = 1 })
    s:progress('end')
    t.eq(0, double_project.result_of(call).total)
  end)
end)

describe('diagnostics in the answer of an edit', function()
  it('are not called clean as long as the server has published for an older text only', function()
    local s = server({ hoverProvider = true }, { ['textDocument/hover'] = { contents = 'text' } })
    project.call('lsp_status')
    s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], { 'of before' })
    local edits = { { search = 'one', replace = 'two' } }
    local answer = t.ok(project.call('buffer_edit', { path = path, edits = edits, diagnostics = true }))
    t.eq({ { 'two' }, 'assumed' }, { vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), answer.diagnostics.checked })
    t.eq(nil, answer.diagnostics.rows)
    t.matches('^double has published nothing', answer.diagnostics.why)
    vim.bo[bufnr].modified = false
  end)
end)

it('an edit reports the errors that it makes in other open files', function()
  local s = server({ hoverProvider = true }, { ['textDocument/hover'] = { contents = 'text' } })
  local other = vim.fn.bufadd(project.write('other.txt', 'one\n'))
  vim.fn.bufload(other)
  vim.lsp.buf_attach_client(other, s.client.id)
  project.call('lsp_status')
  s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
  s:publish(other, vim.lsp.util.buf_versions[other], { 'old' })
  local edits = { { search = 'one', replace = 'two' } }
  local call = double_project.start('buffer_edit', { path = path, edits = edits, diagnostics = true })
  t.wait(function()
    return s:heard('textDocument/didChange')
  end)
  s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
  vim.defer_fn(function()
    s:publish(other, vim.lsp.util.buf_versions[other], { 'old', 'broken' })
  end, 100)
  local answer = double_project.result_of(call).diagnostics
  t.eq({ 'yes', 0, { 'other.txt:1:1 error: broken' } }, { answer.checked, answer.total, answer.elsewhere })
  t.matches('1 other open file', answer.of)
  local list = project.call('diagnostics_list', { project = true })
  t.matches('2 open files only; closed files were not checked', list.checked)
  vim.bo[bufnr].modified = false
end)

describe('semantic tokens', function()
  local TOKENS = 'textDocument/semanticTokens/full'
  local capabilities = {
    semanticTokensProvider = { full = true, legend = { tokenTypes = {}, tokenModifiers = {} } },
    hoverProvider = true,
  }

  it('of a hidden buffer are requested when the user sees it', function()
    local s = server(capabilities, { [TOKENS] = double.SILENT, ['textDocument/hover'] = { contents = 'text' } })
    local client = s.client
    t.wait(function()
      return count_asked(s, TOKENS) == 1
    end)
    project.call('lsp_status')
    s:publish(bufnr, 0, {})
    t.ok(project.call('lsp_hover', { path = path }))
    local unseen = vim.fn.bufadd(project.write('other.txt', 'text\n'))
    vim.fn.bufload(unseen)
    vim.lsp.buf_attach_client(unseen, client.id)
    vim.wait(20)
    vim.api.nvim_buf_set_lines(unseen, 0, -1, false, { 'more' })
    vim.wait(400) -- Neovim waits 200 ms after a change
    t.eq(1, count_asked(s, TOKENS))
    vim.bo[unseen].modified = false
    vim.cmd('sbuffer ' .. unseen)
    t.wait(function()
      return count_asked(s, TOKENS) == 2
    end)
    vim.cmd('close')
  end)
end)
