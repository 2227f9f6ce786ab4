-- slow
-- A moved file and its imports, with real language servers.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('lsp_project')
local t = require('helpers')

describe('file_move', function()
  local function move(path, new_path)
    local call = project.start('file_move', { path = path, new_path = new_path })
    t.ended(call, 45000, 'file_move')
    return call.outcome.payload and call.outcome.payload.text, call.outcome.error
  end

  local function disk(name)
    local ok, lines = pcall(vim.fn.readfile, project.root .. '/' .. name, 'b')
    return ok and table.concat(lines, '\n') or nil
  end

  before_each(function()
    project.open('typescript')
    config.setup({
      tools = { 'file' },
      approval = { rule = t.returns('allow') },
    })
    core.get()
  end)
  after_each(project.close)

  it('has the language server change the imports, and buffers follow', function()
    vim.cmd.edit('shop/ledger.ts')
    local bufnr = vim.api.nvim_get_current_buf()
    vim.api.nvim_win_set_cursor(0, { 4, 2 })
    vim.cmd.edit('shop/user1.ts')
    local before, alternate = vim.api.nvim_get_current_buf(), vim.fn.bufnr('#')
    local text = move('shop/ledger.ts', 'shop/main/ledger.ts')
    t.matches('^shop/ledger.ts is now shop/main/ledger.ts\nchanged by ts_ls: 4 places in 4 files\n', text)
    t.matches('shop/user1.ts: 1 place, unsaved\nshop/user2.ts: 1 place\n', text)
    t.eq(nil, disk('shop/ledger.ts'))
    t.matches('export class Ledger', disk('shop/main/ledger.ts'))
    t.matches("from './main/ledger'", disk('shop/user4.ts'))
    t.matches("from './ledger'", disk('shop/user1.ts'))
    t.matches("from './main/ledger'", vim.api.nvim_buf_get_lines(0, 0, 1, false)[1])
    t.eq({ before, alternate }, { vim.api.nvim_get_current_buf(), vim.fn.bufnr('#') })
    t.eq(project.root .. '/shop/main/ledger.ts', vim.api.nvim_buf_get_name(bufnr))
    t.eq(false, vim.bo[bufnr].modified)
    vim.cmd.buffer(bufnr)
    vim.cmd('silent write')
    t.eq('', vim.fn.bufname('shop/ledger.ts$'))
  end)

  it('changes nothing elsewhere when it cannot be moved', function()
    vim.cmd.edit('shop/user1.ts')
    local _, err = move('shop/ledger.ts', 'shop/' .. ('x'):rep(256) .. '.ts')
    t.eq('tool_error', err.code)
    t.matches('^cannot move', err.message)
    t.ok(disk('shop/ledger.ts'))
    t.matches("from './ledger'", disk('shop/user4.ts'))
    t.matches("from './ledger'", vim.api.nvim_buf_get_lines(0, 0, 1, false)[1])
  end)

  it('overwrites nothing, and moves nothing that is not saved', function()
    vim.api.nvim_del_augroup_by_name('lsp_project') -- no server is needed for what is refused
    t.eq('tool_error', select(2, move('shop/ledger.ts', 'shop/user1.ts')).code)
    t.eq('tool_error', select(2, move('shop/ledger.ts', 'shop')).code)
    t.eq('not_found', select(2, move('shop/none.ts', 'shop/more.ts')).code)
    t.eq('validation_error', select(2, move('shop', 'shop/in/it')).code)
    t.eq('access_denied', select(2, move('shop/ledger.ts', '.env')).code)
    t.eq('validation_error', select(2, move('.', 'x')).code)
    vim.cmd.edit('shop/new.ts')
    t.eq('tool_error', select(2, move('shop/ledger.ts', 'shop/new.ts')).code)
    vim.cmd.edit('shop/ledger.ts')
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { '' })
    local _, err = move('shop', 'store')
    t.eq('tool_error', err.code)
    t.matches('unsaved changes', err.message)
    t.ok(disk('shop/ledger.ts'))
    vim.cmd('silent edit!')
    t.matches('^shop is now store\nno language server', (move('shop', 'store')))
    t.eq(project.root .. '/store/ledger.ts', vim.api.nvim_buf_get_name(0))
    t.ok(disk('store/user1.ts'))
    t.eq(nil, vim.uv.fs_stat(project.root .. '/shop'))
  end)
end)

describe('a Python module moved to another package', function()
  local function disk(name)
    return table.concat(vim.fn.readfile(project.root .. '/' .. name), '\n')
  end

  before_each(function()
    project.open('python')
    for _, package in ipairs({ 'kit', 'kit/util', 'kit/core' }) do
      project.write(package .. '/__init__.py', '')
    end
    config.setup({
      tools = { 'file' },
      approval = { rule = t.returns('allow') },
    })
    core.get()
  end)
  after_each(project.close)

  it('is imported from there, and imports that do not resolve are named', function()
    project.write('kit/util/parse.py', 'from . import other\n\n\ndef amount(x: str) -> int:\n    return other.ONE\n')
    project.write('kit/util/other.py', 'ONE = 1\n')
    project.write('kit/util/near.py', 'from .parse import amount\n\nprint(amount("1"))\n')
    project.write('kit/a.py', 'from kit.util.parse import amount\n\nprint(amount("1"))\n')
    project.write('kit/b.py', 'import kit.util.parse\n\nprint(kit.util.parse.amount("1"))\n')
    project.write('kit/c.py', 'from kit.util import parse\n\nprint(parse.amount("1"))\n')
    project.write('kit/d.py', 'from kit.util import other, parse\n\nprint(parse.amount("1"), other.ONE)\n')
    local call = project.start('file_move', { path = 'kit/util/parse.py', new_path = 'kit/core/parsing.py' })
    t.ended(call, 45000, 'file_move')
    t.eq(nil, call.outcome.error)
    t.eq('from kit.core.parsing import amount\n\nprint(amount("1"))', disk('kit/a.py'))
    t.eq('import kit.core.parsing\n\nprint(kit.core.parsing.amount("1"))', disk('kit/b.py'))
    t.eq('from kit.core import parsing\n\nprint(parsing.amount("1"))', disk('kit/c.py'))
    t.eq('from ..core.parsing import amount\n\nprint(amount("1"))', disk('kit/util/near.py'))
    local text = call.outcome.payload.text
    t.matches('kit/core/parsing.py:1:.*other', text)
    t.matches('kit/d.py:1:.*parsing', text)
    t.ok(not text:find('kit/[abc].py:%d+:'), text)
  end)
end)
