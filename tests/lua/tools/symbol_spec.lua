-- slow, every Neovim
local project = require('editor_project')
local t = require('helpers')

local call = project.text

local function disk(name) return table.concat(vim.fn.readfile(project.root .. '/' .. name, 'b'), '\n') end

local LUA = table.concat({
  'local M = {}',
  '',
  '--- Opens.',
  'function M.open(path)',
  '  return path -- close',
  'end',
  '',
  'function M.close(path)',
  "  return M.open(path), 'open'",
  'end',
  '',
  'return M',
  '',
}, '\n')

project.each({ 'symbol' }, function()
  vim.cmd('filetype on')
  project.write('lua/m.lua', LUA)
  project.write('b.py', 'class Door:\n    def open(self, wide=1):\n        return wide\n\n    def close(self): pass\n')
  project.write('door.c', 'struct door { int wide; };\n\nint open(struct door *it)\n{\n  return it->wide;\n}\n')
  project.write('.env.lua', 'function secret() end\n')
  project.write('.env', 'open=1\n')
end)

describe('symbol_overview', function()
  it('outlines the current file, a file, several files and a directory', function()
    local m = 'M.open 4, M.close 8 [function]'
    t.eq('lua/m.lua, 12 lines (by treesitter)\n' .. m, (call('symbol_overview', { path = 'lua/m.lua' })))
    t.eq(0, #vim.tbl_filter(function(info) return info.listed == 1 and info.name ~= '' end, vim.fn.getbufinfo()))
    vim.cmd.edit('lua/m.lua')
    t.eq('lua/m.lua, 12 lines (by treesitter)\n' .. m, (call('symbol_overview', {})))
    local door = '1 files (by treesitter)\ndoor.c\n  door [struct] 1\n  open 3 [function]'
    t.eq(door, (call('symbol_overview', { paths = { 'door.c' } })))
    local text = call('symbol_overview', { path = '.' })
    t.matches({ '^3 files; 1 of them have neither .*parser %(python%); withheld: ', '\ndoor.c\n' }, text)
    t.matches('\nlua/m.lua\n  M.open', text)
    t.ok(not text:find('secret'))
    t.matches('^files 2%-3 of 3', (call('symbol_overview', { path = '.', offset = 1 })))
    t.matches('^1 files .-\nlua/m.lua', (call('symbol_overview', { path = '.', globs = { '*.lua', '!.*' } })))
  end)

  it('is truncated when it is long', function()
    local lines = t.lines(1000, 'local function function_of_file_%d(argument) end')
    project.write('many.lua', table.concat(lines, '\n'))
    local text = call('symbol_overview', { path = 'many.lua' })
    t.ok(#text < 25000)
    t.matches({ 'too large to show', 'symbol_find' }, text)
  end)

  it('refuses files that are sensitive or do not exist', function()
    t.eq('access_denied', select(2, call('symbol_overview', { path = '.env' })).code)
    t.eq('not_found', select(2, call('symbol_overview', { path = 'none.lua' })).code)
    t.eq('not_found', select(2, call('symbol_overview', { bufnr = 9999 })).code)
    t.eq('validation_error', select(2, call('symbol_overview', { path = 'b.py', bufnr = 1 })).code)
  end)
end)

describe('symbol_find', function()
  it('searches the project, with text and kinds', function()
    local text = call('symbol_find', { symbol = 'open', body = true })
    t.matches('^2 symbols %(by treesitter%)\ndoor.c\n  open %[function%] 3%-6\nint open', text)
    t.matches('\nlua/m.lua\n  M.open %[function%] 4%-6\nfunction M.open%(path%)\n', text)
    local functions = { symbol = 'OPE', substring = true, kinds = { 'Functions' }, path = 'lua' }
    t.matches('^1 symbol .*M.open', (call('symbol_find', functions)))
    local second = call('symbol_find', { symbol = 'open', offset = 1 })
    t.matches('^2 symbols %(by treesitter%); 2%-2 shown\nlua/m.lua', second)
    t.matches('^0 symbols; searched 0 files', (call('symbol_find', { symbol = 'Window/open' })))
    t.matches('^0 symbols; searched 0 files', (call('symbol_find', { symbol = 'secret' })))
    t.matches(
      '^0 symbols; searched 2 files with the word "return" %(by treesitter%); 1 more have .* %(python%)',
      (call('symbol_find', { symbol = 'return', path = '.' }))
    )
    t.eq('validation_error', select(2, call('symbol_find', { symbol = '/' })).code)
    t.eq(1, #vim.api.nvim_list_bufs())
  end)

  it('includes unsaved text', function()
    vim.cmd.edit('lua/m.lua')
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'function fresh() end' })
    t.matches('fresh %[function%] 1: function fresh%(%) end$', (call('symbol_find', { symbol = 'fresh' })))
    local open = call('symbol_find', { symbol = 'open', bufnr = 0 })
    t.matches('M.open %[function%] 5%-7: function M.open%(path%)$', open)
  end)

  it('refuses an unknown kind, and a file whose symbols are unknown', function()
    local value, err = call('symbol_find', { symbol = 'open', kinds = { 'gadget' } })
    t.fails('validation_error', 'gadget.*class, constant', value, err)
    value, err = call('symbol_find', { symbol = 'Door', path = 'b.py' })
    t.fails('not_found', 'the symbols of b.py are not known: .* parser for python', value, err)
  end)
end)

describe('symbol_references', function()
  it('refuses a name that is not one symbol', function()
    t.fails(nil, '2 symbols: open in door.c:3, M.open in lua/m.lua:4', call('symbol_references', { symbol = 'open' }))
    t.eq('not_found', select(2, call('symbol_references', { symbol = 'none' })).code)
    t.eq('not_found', select(2, call('symbol_references', { symbol = 'Door/none', path = 'b.py' })).code)
    local value, err = call('symbol_references', { symbol = 'Door', path = 'b.py' })
    t.fails(nil, 'the symbols of b.py are not known: no language server .* parser for python', value, err)
    t.matches('^4 references', (call('symbol_references', { symbol = 'open', path = 'lua' })))
  end)

  it('searches the word without a server, and reports that', function()
    local text = call('symbol_references', { symbol = 'open', path = 'lua/m.lua' })
    t.matches('^4 references to M.open in 3 files %(by text search%); without a language server', text)
    t.matches('\nb.py\n  2: def open', text)
    t.matches("\nlua/m.lua\n  9 M.close: return M.open%(path%), 'open'$", text)
    t.ok(not text:find('.env', 1, true))
  end)
end)

describe('a change of a symbol', function()
  it('is written if the file is not open', function()
    local text = call('symbol_replace', { symbol = 'open', path = 'lua/m.lua', definition = 'function M.open() end' })
    t.eq('lua/m.lua:4 −3 +1, saved', text)
    t.eq((LUA:gsub('function M.open%(path%).-end', 'function M.open() end')), disk('lua/m.lua'))
    call('symbol_insert', { symbol = 'open', path = 'lua/m.lua', text = 'local x = 1', position = 'before' })
    t.matches('\n\nlocal x = 1\n\n%-%-%- Opens%.\n', disk('lua/m.lua'))
  end)

  it('takes no longer for a text with many blanks', function()
    local begun = vim.uv.hrtime()
    local text = 'local x = 1' .. (' '):rep(200000) .. '--'
    call('symbol_insert', { symbol = 'open', path = 'lua/m.lua', text = text })
    t.ok((vim.uv.hrtime() - begun) / 1e9 < 5 and disk('lua/m.lua'):find(text, 1, true))
  end)

  it('is one undo block in an open file, and moves no cursor', function()
    vim.cmd.edit('lua/m.lua')
    vim.api.nvim_win_set_cursor(0, { 9, 4 })
    local text = call('symbol_insert', { symbol = 'open', bufnr = 0, text = 'function M.new()\n  return 1\nend' })
    t.matches(', unsaved %(open in the editor%)', text)
    t.eq({ { 13, 4 }, LUA }, { vim.api.nvim_win_get_cursor(0), (disk('lua/m.lua')) })
    t.matches('M.new', (call('symbol_find', { symbol = 'M.new' })))
    vim.cmd('silent undo')
    t.eq(LUA, table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') .. '\n')
  end)

  it('can replace only the body, and keeps the signature', function()
    call('symbol_replace', { symbol = 'M.close', path = 'lua/m.lua', body = "local all = true\nreturn all or 'open'" })
    t.matches("\nfunction M.close%(path%)\n  local all = true\n  return all or 'open'\nend\n", disk('lua/m.lua'))
    t.fails(nil, '^definition: give', call('symbol_replace', { symbol = 'M.close', path = 'lua/m.lua' }))
    project.write('twice.c', 'int twice(int x) { return 2 * x; }\n\nint one(void) {\n\treturn 1;\n}\n')
    call('symbol_replace', { symbol = 'twice', path = 'twice.c', body = 'int y = x;\nreturn y + y;' })
    call('symbol_replace', { symbol = 'one', path = 'twice.c', body = '{\n  return 2;\n}' })
    local value, err = call('symbol_replace', { symbol = 'one', path = 'twice.c', body = (' '):rep(100000) })
    t.fails(nil, '`body` is blank', value, err)
    project.write('f.c', 'int f(void) {\n  return 1;\n}\n')
    call('symbol_replace', { symbol = 'f', path = 'f.c', body = 'int f2 = 3;\nreturn f2;' })
    t.eq('int f(void) {\n  int f2 = 3;\n  return f2;\n}\n', disk('f.c'))
    call('symbol_replace', { symbol = 'f', path = 'f.c', body = '{ a(); } { b(); }' })
    t.eq('int f(void) {\n  { a(); } { b(); }\n}\n', disk('f.c'))
    local expected = 'int twice(int x) {\n    int y = x;\n    return y + y;\n}\n\nint one(void) {\n\treturn 2;\n}\n'
    t.eq(expected, disk('twice.c'))
  end)

  it('finds the file of a unique symbol', function()
    call('symbol_replace', { symbol = 'M.close', body = 'function M.close() end' }) -- a whole definition as body
    t.matches('\nfunction M.close%(%) end\n', disk('lua/m.lua'))
  end)

  it('is refused when the new text does not define the symbol', function()
    for _, body in ipairs({ '  self.closed = false', 'return M.open()', 'M.open = 1', 'function M.other() end' }) do
      local _, err = call('symbol_replace', { symbol = 'M.open', path = 'lua/m.lua', definition = body })
      t.eq('validation_error', err and err.code, body)
      t.matches('^definition: does not define M.open', err.message)
    end
    t.eq(LUA, disk('lua/m.lua'))
  end)

  it('requires one symbol', function()
    t.matches('2 symbols', select(2, call('symbol_replace', { symbol = 'open', body = 'x' })).message)
    t.eq('not_found', select(2, call('symbol_replace', { symbol = 'no', path = 'b.py', body = 'x' })).code)
    t.eq('access_denied', select(2, call('symbol_replace', { symbol = 'no', path = '.env', body = 'x' })).code)
  end)

  it('that deletes is refused while the symbol is used', function()
    local value, err = call('symbol_delete', { symbol = 'M.open', path = 'lua/m.lua' })
    t.fails('tool_error', '^M.open was not deleted: 4 references.*lua/m.lua\n  9 M.close', value, err)
    t.eq(LUA, disk('lua/m.lua'))
    project.write('alone.lua', '--- Text.\nlocal function alone_(x)\n  return x and alone_(x)\nend\n\nreturn 1\n')
    t.eq(nil, select(2, call('symbol_delete', { symbol = 'alone_', path = 'alone.lua' })))
    t.eq('return 1\n', disk('alone.lua'))
  end)

  it('that was shown is applied, as long as the text is the same', function()
    local definition = require('mcp-tools.tools.symbol.replace')
    local args = { symbol = 'M.close', path = 'lua/m.lua', definition = 'function M.close() end' }
    t.matches('%-function M.close%(path%)', project.previewed(definition, args))
    vim.cmd.edit('lua/m.lua')
    local by_syntax = require('mcp-tools.editor.symbol.by_syntax')
    local ask = by_syntax.ask
    by_syntax.ask = function(ctx, source, filetype) -- the symbol has another range now
      local tree, lang = ask(ctx, source, filetype)
      tree[2].range[3] = 11
      return tree, lang
    end
    local _, err = call('symbol_replace', args)
    by_syntax.ask = ask
    t.eq(nil, err)
    local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
    t.matches('\nfunction M.close%(%) end\n\nreturn M$', text)
  end)

  it('without a path is shown once its file was found', function()
    local definition = require('mcp-tools.tools.symbol.replace')
    local args, again = { symbol = 'M.close', definition = 'function M.close() end' }, 0
    local text = definition.preview(args, function(err)
      t.eq(nil, err)
      again = again + 1
    end)
    t.matches('when the symbol has been found', text)
    t.wait(function() return again > 0 end, 8000)
    t.matches('%-function M.close%(path%)', project.previewed(definition, args))
  end)

  it('has a preview', function()
    local definition = require('mcp-tools.tools.symbol.replace')
    local args = { symbol = 'open', path = project.root .. '/lua/m.lua', body = 'function M.open() end' }
    local diff = '^%-%-%- a/lua/m.lua\n%+%+%+ b/lua/m.lua\n@@ .-\n%-function M.open%(path%)\n'
    t.matches(diff, project.previewed(definition, args))
    vim.cmd.edit('lua/m.lua')
    call('symbol_overview', {})
    t.matches('^%-%-%- a/lua/m.lua\n', project.previewed(definition, args))
    args.symbol = 'none'
    t.matches('^symbol: there is no "none"', select(2, project.previewed(definition, args)).message)
    local insert = require('mcp-tools.tools.symbol.insert')
    local args_of_insert = { symbol = 'open', bufnr = 0, text = 'local x', where = 'after' }
    t.matches('%+local x\n', project.previewed(insert, args_of_insert))
    local delete = require('mcp-tools.tools.symbol.delete')
    t.matches('%-%-%-%- Opens%.\n', project.previewed(delete, { symbol = 'open', bufnr = 0 }))
  end)
end)
