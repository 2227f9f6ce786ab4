-- What the tools of diagnostics answer, for any kind of server.

local project = require('lsp_project')
local t = require('helpers')

local KINDS = {
  python = {
    file = 'shop/new.py',
    broken = 'shop/broken.py',
    clean = 'value: int = 1\n',
    wrong = 'value: int = "é"\n',
    comment = '# a comment\n',
    code = 'reportAssignmentType',
    source = 'basedpyright',
    unchanged = '^yes',
  },
  typescript = {
    file = 'shop/new.ts',
    broken = 'shop/broken.ts',
    clean = 'export const value: number = 1;\n',
    wrong = 'export const value: number = "é";\n',
    comment = '// a comment\n',
    code = '2322',
    source = 'typescript',
    unchanged = '^assumed',
  },
}

local function ok(name, args) return t.ok(project.call(name, args)) end

return function(kind)
  local here = KINDS[kind]
  describe('diagnostics of a server of ' .. kind, function()
    local path = project.root .. '/' .. here.file

    local is_begun = false

    before_each(function()
      if not is_begun then
        is_begun = true
        project.close() -- files of other cases may have errors
      end
      project.share(kind)
    end)

    it('are unknown, not empty, before a check', function()
      project.write(here.file, here.clean)
      local result = ok('diagnostics_list', { path = path, wait_ms = 0 })
      t.eq({ false, 0 }, { result.checked == 'yes', result.total }) -- the server may have begun to speak
      local notes = project.write('notes.txt', 'text\n')
      result = ok('diagnostics_list', { path = notes })
      t.eq('unknown', result.checked)
      t.matches('no language server', result.why)
      result = ok('diagnostics_list', { bufnr = vim.fn.bufnr(notes) })
      t.eq('unknown', result.checked)
    end)

    it('are in the result of an edit, for the new text', function()
      local file = here.file:gsub('new%.', 'edited.')
      ok('diagnostics_list', { path = here.broken, timeout_ms = 30000 }) -- the server has started by then
      local function checked(answer)
        local one = answer.diagnostics[1]
        return { one.checked, one.total, #one.rows }
      end
      t.eq({ 'yes', 0, 0 }, checked(ok('file_write', { path = file, text = here.clean })))
      local answer
      local function edit(text, total)
        ok('file_read', { path = file })
        answer = ok('file_edit', { path = file, start_line = 1, new_text = (text:gsub('\n$', '')) })
        t.eq({ 'yes', total, total }, checked(answer))
      end
      edit(here.wrong, 1)
      edit(here.clean, 0)
      edit(here.wrong, 1)
      t.matches('^1:%d+ error .*', answer.diagnostics[1].rows[1])
      t.eq({ 'yes', 1, 1 }, checked(ok('symbol_insert', { path = file, symbol = 'value', text = here.comment })))
      local insert = { path = file, symbol = 'value', text = here.comment, diagnostics = false }
      t.eq(nil, ok('symbol_insert', insert).diagnostics)
      edit(here.clean, 0)
      t.eq(nil, ok('file_write', { path = 'edited.txt', text = 'text' }).diagnostics)
    end)

    it('of a closed file are complete once it was checked', function()
      local result = ok('diagnostics_list', { path = project.root .. '/' .. here.broken, wait_ms = 30000 })
      t.eq({ 'yes', 1 }, { result.checked, result.total })
      t.matches('^%d:%d+ error .*' .. '', result.diagnostics[1])
      local bufnr = vim.fn.bufnr(project.root .. '/' .. here.broken)
      for _, case in ipairs({
        { 1, {} },
        { 0, { severity = 'HINT' } },
        { 1, { severity = 'error', source = here.source } },
        { 0, { source = 'somebody else' } },
        { 1, { min_severity = 'warning' } },
      }) do
        result = ok('diagnostics_list', vim.tbl_extend('error', { bufnr = bufnr }, case[2]))
        t.eq({ 'yes', case[1], case[1] }, { result.checked, result.total, #result.diagnostics })
      end
      result = ok('diagnostics_list', { bufnr = bufnr, offset = 100 })
      t.matches('offset: 100 is beyond the end %(total %d+%)', result.why)
      result = ok('diagnostics_list', { offset = 1000 })
      t.matches('offset: 1000 is beyond', result.why)
      t.fails('validation_error', nil, project.call('diagnostics_list', { bufnr = bufnr, severity = 'bad' }))
      result = ok('diagnostics_list', {})
      t.eq({ 1, here.broken }, { result.total, result.files[1].path })
    end)

    it('are current after each of ten edits on disk', function()
      local first = ok('diagnostics_list', { path = path })
      t.eq({ 'yes', 0, {}, {} }, { first.checked, first.total, first.new, first.fixed })
      for i = 1, 5 do
        project.write(here.file, here.wrong:rep(1))
        local broken = ok('diagnostics_list', { path = path })
        t.eq({ 'yes', 1, 0, i, 1 }, { broken.checked, #broken.new, #broken.fixed, i, broken.total })
        t.matches(here.code, broken.new[1])
        project.write(here.file, here.clean)
        local fixed = ok('diagnostics_list', { path = path })
        t.eq({ 'yes', 0, 1, i, 0 }, { fixed.checked, #fixed.new, #fixed.fixed, i, fixed.total })
        t.eq(broken.new[1], fixed.fixed[1])
      end
    end)

    it('are current after edits in the buffer, also without a new result', function()
      local bufnr = vim.fn.bufnr(path)
      vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { vim.trim(here.comment) })
      local result = ok('diagnostics_list', { bufnr = bufnr })
      -- typescript-language-server does not publish an empty list again.
      t.matches(here.unchanged, result.checked)
      t.eq({ 0, 0, 0 }, { #result.new, #result.fixed, result.total - #result.new })
      vim.api.nvim_buf_set_lines(bufnr, 1, 2, false, { vim.trim(here.wrong) })
      result = ok('diagnostics_list', { bufnr = bufnr })
      t.eq({ true, 1 }, { result.checked == 'yes', #result.new })
      t.matches('^2:', result.new[1])
      -- It has moved, and is not new.
      vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { vim.trim(here.comment), '' })
      result = ok('diagnostics_list', { bufnr = bufnr })
      t.eq({ true, 0, 0, 1 }, { result.checked == 'yes', #result.new, #result.fixed, result.total - #result.new })
      t.matches('^4:', result.diagnostics[1])
    end)

    it('of all open files are compared with the last request', function()
      ok('diagnostics_list', {})
      project.write(here.broken, here.clean)
      local bufnr = vim.fn.bufnr(path)
      vim.api.nvim_buf_set_lines(bufnr, -1, -1, false, { (vim.trim(here.wrong):gsub('value', 'other')) })
      local result = ok('diagnostics_list', {})
      t.eq({ 1, 1, 2 }, { result.new, result.fixed, result.total })
      t.eq({ here.file, here.broken }, { result.files[1].path, result.files[2].path })
      result = ok('diagnostics_list', {})
      t.eq({ 0, 0, 2 }, { result.new, result.fixed, result.total })
    end)

    it('are not reported as current after a timeout', function()
      local bufnr = vim.fn.bufnr(path)
      vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { vim.trim(here.clean) })
      local client = vim.lsp.get_clients({ bufnr = bufnr })[1]
      local result = ok('diagnostics_list', { bufnr = bufnr, timeout_ms = 100 })
      if result.checked ~= 'yes' then
        t.matches(client.name, result.why)
        t.ok(vim.list_contains({ 'stale', 'unknown' }, result.checked))
      end
    end)
  end)
end
