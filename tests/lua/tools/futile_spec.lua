-- A call that is certain to fail returns its error without a question.

local double = require('lsp_double')
local project = require('editor_project')
local t = require('helpers')

local root = project.root

--- A call that needs approval, in an editor without a user: a question would end with `access_denied`.
---@param code string
---@param message string pattern
---@param name string
---@param args table
local function answered(code, message, name, args)
  local err = project.run('tool', name, args).error or { code = 'none', message = 'it ran' }
  t.eq({ code, message }, { err.code, err.message:match(message) and message or err.message })
end

project.each(nil, function()
  require('mcp-tools.config').setup({ tools = 'all' })
  project.write('a.lua', 'local one = 1\nlocal two = 2\nreturn one + two\n')
end)

describe('no question is asked for', function()
  it('an edit of text that does not exist, and the nearest is reported', function()
    local edits = { { old_text = 'local won = 1', new_text = 'x' } }
    answered('not_found', 'most similar are\nlines 1%-1', 'file_edit', { path = 'a.lua', edits = edits })
    edits[1].old_text = 'local one = 1'
    answered('access_denied', 'needs approval', 'file_edit', { path = 'a.lua', edits = edits })
  end)

  it('an edit of a missing file, of a text that has changed, or by unread line numbers', function()
    local edits = { { old_text = 'one = 1', new_text = 'x' } }
    answered('not_found', 'there is no file b.lua', 'file_edit', { path = 'b.lua', edits = edits })
    answered('not_found', 'no buffer 999', 'file_edit', { bufnr = 999, edits = edits })
    vim.cmd.edit('a.lua')
    edits = { { old_text = 'one = 1', new_text = 'one = 1' } }
    answered('tool_error', 'nothing would change', 'file_edit', { path = 'a.lua', edits = edits })
  end)

  it('writing a file over another one, or over a directory', function()
    answered('tool_error', 'is a directory', 'file_write', { path = '.', text = 'x' })
    answered('access_denied', 'needs approval', 'file_write', { path = 'b.lua', text = 'x' })
  end)

  it('a replacement', function()
    local args = { query = 'one', replacement = 'x', expected_count = 2 }
    answered('access_denied', 'needs approval', 'file_replace', args)
  end)

  it('moving a missing file, or over another one', function()
    answered('not_found', 'path: there is no ', 'file_move', { path = 'b.lua', new_path = 'c.lua' })
    project.write('c.lua', 'x')
    answered('tool_error', 'c.lua', 'file_move', { path = 'a.lua', new_path = 'c.lua' })
    answered('access_denied', 'needs approval', 'file_move', { path = 'a.lua', new_path = 'd.lua' })
  end)

  it('an action that is not available any more, or a symbol of a missing file', function()
    answered('not_found', 'list the actions again', 'code_actions', { apply = 'none' })
    answered(
      'not_found',
      'there is no file b.lua',
      'symbol_replace',
      { symbol = 'x', path = 'b.lua', definition = 'x' }
    )
    answered('not_found', 'not open', 'change_revert', { path = 'a.lua', minutes = 1 })
    answered('validation_error', 'command', 'shell_run', {})
  end)

  it('calls that need a debug session, or a breakpoint, without one', function()
    local none = 'no active debug session'
    for _, how in ipairs({ 'continue', 'detach', 'pause', 'restart', 'to_line', 'into', 'out', 'over', 'stop' }) do
      answered('not_found', none, 'debug_step', { how = how, line = 1 })
    end
    answered('not_found', none, 'debug_inspect', { expressions = { 'x' } })
    vim.opt.runtimepath:prepend(vim.fs.dirname(debug.getinfo(t.eq, 'S').source:sub(2)) .. '/support/dap_client')
    answered('not_found', none, 'debug_step', { how = 'pause' })
    answered('not_found', 'no debug session 7', 'debug_step', { how = 'pause', session_id = 7 })
    answered('not_found', 'no breakpoint in line 1', 'debug_breakpoints', { remove = { { path = 'a.lua', line = 1 } } })
    answered('not_found', 'no such file: b.lua', 'debug_breakpoints', { set = { { path = 'b.lua', line = 1 } } })
    vim.cmd.edit('a.lua')
    answered('validation_error', 'line 9 is beyond', 'debug_breakpoints', { set = { { path = 'a.lua', line = 9 } } })
    answered('access_denied', 'needs approval', 'debug_breakpoints', { set = { { path = 'a.lua', line = 1 } } })
    answered('not_found', "no adapter 'none'", 'debug_run', { options = { type = 'none' } })
    project.write('test_a.py', 'def test_a(): pass\n')
    answered('not_found', "no adapter 'python'", 'debug_run', { test = 'test_a.py::test_a' })
  end)

  it('calls that need a language server without one, or an invalid position', function()
    vim.cmd.edit('a.lua')
    local rename = { path = 'a.lua', line = 1, column = 7, new_name = 'x' }
    answered('not_found', 'no language server is attached', 'symbol_rename', rename)
    answered('not_found', 'no language server is attached', 'code_format', { path = 'a.lua' })
    answered('not_found', 'there is no file b.lua', 'code_format', { path = 'b.lua' })
    answered('not_found', 'no buffer 999', 'symbol_rename', { bufnr = 999, new_name = 'x' })
    answered('not_found', 'no language server .x.', 'editor_servers', { restart = 'x' })
    answered('not_found', 'no language server is running', 'editor_servers', { restart = 'all' })
    local server = double.start(0, root, { renameProvider = true }, {})
    t.wait(function() return server.client.initialized end)
    answered('access_denied', 'needs approval', 'symbol_rename', rename)
    rename.line = 9
    answered('validation_error', 'line: 9 is beyond', 'symbol_rename', rename)
    rename.line, rename.column, rename.symbol = nil, nil, 'three'
    answered('not_found', 'symbol: "three" is not in', 'symbol_rename', rename)
    answered('not_found', 'double cannot answer textDocument/formatting', 'code_format', { path = 'a.lua' })
    answered('access_denied', 'needs approval', 'editor_servers', { restart = 'all' })
  end)

  it('a buffer that cannot be closed, written, edited or reverted', function()
    vim.cmd.edit('a.lua')
    vim.cmd.normal({ 'Ox', bang = true })
    answered('busy', 'shown in a window', 'buffer_close', { path = 'a.lua', discard = true })
    answered('not_found', 'no buffer 999', 'buffer_close', { bufnr = 999, discard = true })
    answered('not_found', 'no such edit', 'change_revert', { change = '9999' })
    answered('access_denied', 'needs approval', 'file_save', { paths = { 'a.lua' } })
    vim.bo.readonly = true
    answered('tool_error', 'read%-only', 'file_save', { paths = { 'a.lua' } })
    vim.cmd.enew({ bang = true })
    answered('access_denied', 'needs approval', 'buffer_close', { path = 'a.lua', discard = true })
  end)

  it('a list, register, function, chunk or executable that does not exist', function()
    local set = { action = 'replace', places = { 'a.lua' } }
    answered('validation_error', 'path:line: text', 'editor_quickfix', set)
    set.places = { { text = 'x' } }
    answered('access_denied', 'needs approval', 'editor_quickfix', set)
    require('mcp-tools.config').setup({ tools = { 'all', 'plugin_call', 'editor_eval_lua' } })
    answered('not_found', 'no plugin on the runtimepath', 'plugin_call', { module = 'none', ['function'] = 'x' })
    vim.opt.runtimepath:prepend(root)
    project.write('lua/shop.lua', 'return { sell = function() end, stock = { count = function() end } }')
    project.write(
      'lua/lazy.lua',
      '_G.looked = 0 return setmetatable({}, { __index = function() looked = looked + 1 end })'
    )
    require('shop')
    require('lazy')
    answered('not_found', 'shop has no function buy', 'plugin_call', { module = 'shop', ['function'] = 'buy' })
    answered('not_found', 'no function stock.x', 'plugin_call', { module = 'shop', ['function'] = 'stock.x' })
    answered('not_found', 'no function none.x', 'plugin_call', { module = 'shop', ['function'] = 'none.x' })
    answered('access_denied', 'is private', 'plugin_call', { module = 'shop', ['function'] = '_x' })
    answered('access_denied', 'needs approval', 'plugin_call', { module = 'shop', ['function'] = 'stock.count' })
    answered('access_denied', 'needs approval', 'plugin_call', { module = 'lazy', ['function'] = 'x' })
    t.eq(0, rawget(_G, 'looked')) -- nothing of it runs before
    answered('validation_error', 'wrong mode', 'editor_eval_lua', { code = string.dump(function() end) })
    answered('validation_error', 'code: ', 'editor_eval_lua', { code = 'return +' })
    answered('access_denied', 'needs approval', 'editor_eval_lua', { code = 'return 1' })
    answered('not_found', 'no executable none%-such', 'shell_run', { argv = { 'none-such' } })
    answered('not_found', 'no executable ./a.lua', 'shell_jobs', { action = 'start', argv = { './a.lua' } })
    answered('validation_error', 'env: "A=B"', 'shell_run', { argv = { 'true' }, env = { ['A=B'] = 'x' } })
    answered('validation_error', 'argv: .*NUL', 'shell_run', { argv = { 'true', 'a\0b' } })
    answered('access_denied', 'needs approval', 'shell_run', { argv = { 'true' } })
  end)
end)

it('the user is asked first when the reason would reveal a file outside the project', function()
  local path = project.write(project.base .. '/outside.txt', 'a line of it\n')
  local edits = { { old_text = 'a lime of it', new_text = 'x' } }
  local err = project.run('tool', 'file_edit', { path = path, edits = edits }).error
  t.eq({ 'access_denied', nil }, { err.code, (err.message:find('line of it', 1, true)) })
  -- Also when something else needs the question.
  require('mcp-tools.config').setup({ tools = 'all', approval = { tools = { file_edit = 'ask' } } })
  err = project.run('tool', 'file_edit', { path = path, edits = edits }).error
  t.eq('access_denied', err.code)
  vim.uv.fs_symlink(path, root .. '/link.txt')
  t.eq('access_denied', project.run('tool', 'file_edit', { path = 'link.txt', edits = edits }).error.code)
end)
