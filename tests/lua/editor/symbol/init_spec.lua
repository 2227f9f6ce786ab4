-- every Neovim
-- Outlines and symbols of texts in many languages.

local background = require('mcp-tools.editor.background')
local by_syntax = require('mcp-tools.editor.symbol.by_syntax')
local double = require('syntax_double')
local edits = require('mcp-tools.editor.symbol.edits')
local file_type = require('mcp-tools.files.filetype')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local overview = require('mcp-tools.editor.symbol.overview')
local symbol = require('mcp-tools.editor.symbol')
local t = require('helpers')
local text_edits = require('mcp-tools.editor.text.edits')

local syntax = double.node

local function split(text) return vim.split(text, '\n', { plain = true }) end

--- Runs `fn` in a coroutine and waits for its result.
local function run(fn)
  local result
  background.run(fn, function(found) result = found end)
  t.wait(function() return result end, 20000)
  return result
end

local function of_text(lines, filetype)
  return run(function(ctx) return symbol.of_text(ctx, lines, filetype) end)
end

--- The outline of a text without a buffer.
local function outline_of(text, filetype)
  local file = of_text(split(text), filetype)
  return table.concat(overview.rows(file.tree, {}), '\n'), file
end

--- Symbols as a server returns them: { name, kind, line, end_line, children }.
local served
function served(list)
  return vim.tbl_map(function(each)
    local name, kind, line, end_line, children = unpack(each)
    local node = { name = name, kind = kind, line = line, end_line = end_line, units = 'utf-8', at = { line - 1, 0 } }
    node.range, node.children = { line - 1, 0, end_line - 1, math.huge }, served(children or {})
    return node
  end, list)
end

describe('a name path', function()
  local post = { 'post', 'method', 5, 13, { { 'inner', 'function', 12, 12 } } }
  local top = symbol_tree.prune(served({
    { 'Ledger', 'class', 4, 15, { post, { 'post_all', 'method', 15, 15 } } },
    { 'post', 'function', 17, 17 },
    { 'post', 'function', 19, 19 },
  }))

  local function one(text)
    local found, err = symbol_tree.one(top, assert(symbol_tree.parse(text, 'symbol')), 'symbol', 'a.py')
    return found and found.line, err
  end

  it('matches what ends with it, or the whole path when it begins with a slash', function()
    t.eq({ 4, 5, 5 }, { (one('Ledger')), (one('Ledger/post')), (one('/Ledger/post')) })
    t.eq({ 12, 12, 'not_found' }, { (one('inner')), (one('post/inner')), select(2, one('/inner')).code })
    t.eq('not_found', select(2, one('Journal/post')).code)
  end)

  it('distinguishes symbols of one name by their number', function()
    t.eq({ 17, 19 }, { (one('/post[1]')), (one('/post[2]')) })
    t.eq({ 'not_found', 5 }, { select(2, one('/post[3]')).code, (one('Ledger/post[1]')) })
  end)

  it('of several symbols is refused with their names', function()
    local _, err = one('post')
    t.eq('validation_error', err.code)
    local names = 'Ledger/post (line 5), post[1] (line 17), post[2] (line 19)'
    t.matches(vim.pesc('"post" matches 3 symbols of a.py: ' .. names), err.message)
  end)

  it('without a match gets similar names', function()
    t.matches('there is Ledger/post_all %(line 15%)$', select(2, one('post_al')).message)
    t.matches('there is Ledger %(line 4%), post%[1%]', select(2, one('nothing')).message)
  end)

  it('identifies a symbol', function()
    local paths = {}
    symbol_tree.each(top, function(node) table.insert(paths, symbol_tree.of(node, top)) end)
    t.eq({ 'Ledger', 'Ledger/post', 'Ledger/post/inner', 'Ledger/post_all', 'post[1]', 'post[2]' }, paths)
    for _, path in ipairs(paths) do
      t.eq(path, symbol_tree.of(symbol_tree.one(top, symbol_tree.parse('/' .. path, 'symbol'), 'symbol', ''), top))
    end
  end)

  it('that is malformed is refused', function()
    for _, text in ipairs({ '', '/', 'a//b', 'a/', '[1]', 'a[0]', ('a'):rep(501) }) do
      t.fails('validation_error', nil, symbol_tree.parse(text, 'symbol'))
    end
    t.ok(symbol_tree.parse(('a'):rep(500), 'symbol'))
  end)
end)

describe('symbols of a text', function()
  it('are unknown without a parser', function()
    local rows, file = outline_of('def post(amount): return amount\n', 'python')
    t.eq({ '', 'nothing' }, { rows, file.by })
    t.matches('parser', file.why)
  end)

  it('are found in the syntax of Lua', function()
    local lua = {
      'local M = {}',
      '--- function no()',
      'function M.open(path, cb) -- (more)',
      '  local function inner(...) end',
      '  return inner',
      'end',
      'function M:close() end',
      'M.late = function(a) end',
      'return {',
      '  run = function(ctx, args)',
      '  end,',
      "  text = 'function none() end',",
      '}',
    }
    local expected = {
      'M.open [function] 3-6',
      '  inner 4 [function]',
      'M:close 7, M.late 8, run 10 [function]',
    }
    local rows, file = outline_of(table.concat(lua, '\n'), 'lua')
    t.eq('treesitter', file.by)
    t.eq(table.concat(expected, '\n'), rows)
  end)

  it('are found in the syntax of C, Vim script, Markdown and help', function()
    local c = table.concat({
      'struct point { int x; };',
      'typedef struct point point_t;',
      'static struct point *make(int x, const char *name, void (*cb)(int)) {',
      '  struct point *p = 0;',
      '  return p;',
      '}',
      '#define TWICE(x) ((x) * 2)',
    }, '\n')
    t.eq('point [struct] 1\npoint_t [type] 2\nmake 3 [function]\nTWICE [macro] 7', (outline_of(c, 'c')))
    local vimscript = 'function! s:Open(path) abort\n  return 1\nendfunction\n'
    t.eq('s:Open 1 [function]', (outline_of(vimscript, 'vim')))
    local markdown = '# One\n\ntext\n\n## Two / three\n\n```\n# none\n```\n\n# Last'
    t.eq('One [section] 1-10\n  Two   three [section] 5-10\nLast [section] 11', (outline_of(markdown, 'markdown')))
    local line = ('='):rep(78)
    local help = ('*a.txt*\n\n%s\n1. FIRST *a-first*\n\ntext\n\n%s\nSECOND *a-second*\n'):format(line, line)
    t.matches('^1%. FIRST %[section%] %d%-%d\nSECOND %[section%] %d%-%d+$', (outline_of(help, 'help')))
  end)

  it('have the source of their signature, from all of its lines', function()
    local code = 'int f(\n    int a,\n    char *b)\n{\n}'
    local _, file = outline_of(code, 'c')
    local function line_of(number) return split(code)[number] end
    t.eq('int f(int a, char *b)', overview.signature(file.tree[1], line_of))
  end)

  it('share rows of limited length with those of their kind', function()
    local list = {}
    for i = 1, 20 do
      list[i] = { ('a_long_name_%d'):format(i), i % 2 == 0 and 'method' or 'field', i, i }
    end
    local rows = overview.rows(symbol_tree.prune(served({ { 'Ledger', 'class', 1, 20, list } })), {})
    t.eq({ 'Ledger [class] 1-20', '  a_long_name_1 1, ', '  a_long_name_19 1' }, {
      rows[1],
      rows[2]:sub(1, 19),
      rows[3]:sub(1, 18),
    })
    t.eq(5, #rows)
    t.matches('%[field%]$', rows[3])
    t.matches('%[method%]$', rows[5])
  end)

  it('are an empty list in a text without symbols', function()
    for _, filetype in ipairs({ 'lua', 'python', 'markdown', 'query', '' }) do
      t.eq({ '', '' }, { (outline_of('', filetype)), (outline_of('\n\nsome text\n', filetype)) })
    end
  end)

  it('of a buffer are cached until it changes', function()
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'function one() end' })
    vim.bo[bufnr].filetype = 'lua'
    local function line_of(name)
      local file = run(function(ctx) return symbol.await(ctx, bufnr) end)
      local node, err = symbol.one(file, symbol_tree.parse(name, 'symbol'), 'symbol', '')
      return node and node.line, err
    end
    local function asked()
      return t.calls(by_syntax, 'ask', function() t.ok(line_of('one')) end)
    end
    t.eq({ 1, 0 }, { (line_of('one')), (asked()) })
    vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { '' })
    t.eq({ 1, 2, 'not_found' }, { asked(), (line_of('one')), select(2, line_of('two')).code })
    vim.api.nvim_buf_delete(bufnr, { force = true })
  end)

  it('of 50 000 lines are found in slices, with or without a buffer, and leave no buffer', function()
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.bo[bufnr].filetype = 'lua'
    local buffers, turns, texts = #vim.api.nvim_list_bufs(), 0, { lua = {}, c = {} }
    for i = 1, 12500 do
      vim.list_extend(texts.c, { ('int f%d(int a)'):format(i), '{', '  return a;', '}' })
      vim.list_extend(texts.lua, { ('function f%d(a, b)'):format(i), '  return a + b', 'end', '' })
    end
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, texts.lua)
    local ticks = vim.uv.new_timer()
    ticks:start(0, 1, function() turns = turns + 1 end)
    for _, find in ipairs({
      function(ctx) return symbol.of_text(ctx, texts.c, 'c') end,
      function(ctx) return symbol.await(ctx, bufnr) end,
    }) do
      turns = 0
      local file = run(find)
      t.eq({ 'treesitter', 12500, buffers }, { file.by, #file.tree, #vim.api.nvim_list_bufs() })
      t.ok(turns > 10)
    end
    ticks:close()
    vim.api.nvim_buf_delete(bufnr, { force = true })
  end)
end)

describe('an edit of a symbol', function()
  --- Changes a text. Symbols and tree come from Neovim's parsers, or from `given`.
  local function changed(text, filetype, name, make, given)
    local lines, root = split(text), given and given.root
    local file
    if given then
      file = { tree = symbol_tree.prune(served(given.symbols)) }
    else
      file = of_text(lines, filetype)
      root = vim.treesitter.get_string_parser(text .. '\n', filetype):parse()[1]:root()
    end
    local node = assert(symbol_tree.one(file.tree, symbol_tree.parse(name, 'symbol'), 'symbol', ''))
    local row, col, end_row, end_col = unpack(node.range)
    local at = { row = row, col = col, end_row = end_row, end_col = math.min(end_col, #lines[end_row + 1]) }
    local ends = {}
    for _, each in ipairs(node.parent and node.parent.children or file.tree) do
      ends[each.end_line - 1] = true
    end
    local name_row = given and given.name_row or node.at[1]
    local place = edits.extent(lines, at, { root = root, filetype = filetype, name_row = name_row, ends = ends })
    local list, why = make(lines, place)
    if not list then
      return nil, why
    end
    local ordered = assert(text_edits.ordered(list, #lines, function(each) return lines[each + 1] end))
    return table.concat(text_edits.applied(lines, ordered), '\n')
  end

  local function replace(body)
    return function(lines, place) return edits.replace(lines, place, body) end
  end
  local function insert(text, where)
    return function(lines, place) return edits.insert(lines, place, text, where) end
  end

  local CLASS = 'class A:\n    def one(self):\n        return 1\n\n    # Two.\n    def two(self): pass\n\n\nx = 1'
  local SERVED = {
    symbols = {
      { 'A', 'class', 1, 6, { { 'one', 'method', 2, 3 }, { 'two', 'method', 6, 6 } } },
      { 'x', 'variable', 9, 9 },
    },
  }

  it('replaces the whole symbol, with a suitable indent', function()
    local new_text = 'def one(self, a):\n        if a:\n            return 2'
    local wanted = CLASS:gsub('def one%(self%):\n        return 1', new_text)
    for _, body in ipairs({
      'def one(self, a):\n    if a:\n        return 2',
      '    def one(self, a):\n        if a:\n            return 2\n',
      'def one(self, a):\n        if a:\n            return 2',
      '\n  def one(self, a):\n      if a:\n          return 2\n\n',
    }) do
      t.eq(wanted, changed(CLASS, 'python', 'A/one', replace(body), SERVED))
    end
    local function lua_with(f) return 'local x = 1\nlocal M = {\n  f = ' .. f .. ',\n}\n' end
    local new = replace('f = function(a)\n  return a\nend')
    t.eq(lua_with('function(a)\n    return a\n  end'), changed(lua_with('function() end'), 'lua', 'f', new))
  end)

  it('inserts before its comments and after it', function()
    local function inserted(name, where, text) return changed(CLASS, 'python', name, insert(text, where), SERVED) end
    local before = inserted('A/two', 'before', 'def new(self):\n    pass')
    t.eq((CLASS:gsub('    # Two', '    def new(self):\n        pass\n\n    # Two')), before)
    local after = inserted('A/two', 'after', 'def new(self): pass\n')
    t.eq((CLASS:gsub('pass\n\n\nx', 'pass\n\n    def new(self): pass\n\n\nx')), after)
    t.eq('def new(): pass\n\n\n' .. CLASS, inserted('A', 'before', 'def new(): pass\n'))
    local rows = 'local a = 1\n\nlocal function f() end\nlocal function g() end'
    local expected = 'local a = 1\n\nlocal function f() end\nlocal function new() end\nlocal function g() end'
    t.eq(expected, changed(rows, 'lua', 'f', insert('local function new() end', 'after')))
  end)

  it('deletes the symbol with its comments', function()
    local without_two = 'class A:\n    def one(self):\n        return 1\n\n\nx = 1'
    t.eq(without_two, changed(CLASS, 'python', 'A/two', edits.delete, SERVED))
    t.eq((CLASS:gsub('    def one.-\n\n', '')), changed(CLASS, 'python', 'A/one', edits.delete, SERVED))
    t.eq('x = 1', changed(CLASS, 'python', 'A', edits.delete, SERVED))
    t.eq('local a = 1', changed('local a = 1\n\n--- Text.\nlocal function f() end', 'lua', 'f', edits.delete))
    local c = '#include "a.h"\nint a(void) { return 0; }\nint b(void) { return 0; }'
    t.eq('#include "a.h"\nint b(void) { return 0; }', changed(c, 'c', 'a', edits.delete))
  end)

  it('includes a whole block comment', function()
    local text =
      '/* Head. */\n\n/* Doubles.\n   Not used any more.\n*/\nint twice(int x) { return 2 * x; }\n\nint b; // b'
    t.eq('/* Head. */\n\nint b; // b', changed(text, 'c', 'twice', edits.delete))
    local new = changed(text, 'c', 'twice', insert('int once(int x);', 'before'))
    t.matches('^/%* Head%. %*/\n\nint once%(int x%);\n\n/%* Doubles', new)
  end)

  it('keeps a comment after other code, a shebang and a license', function()
    t.eq('int b; // trailing', changed('int b; // trailing\nint f(void) {}', 'c', 'f', edits.delete))
    local license = '/* Copyright: nobody. */\nint f(void) {}\nint b;'
    t.eq('/* Copyright: nobody. */\nint b;', changed(license, 'c', 'f', edits.delete))
    local script = '#!/usr/bin/env lua\n-- Text.\nlocal function f() end\nreturn 1'
    t.eq('#!/usr/bin/env lua\nreturn 1', changed(script, 'lua', 'f', edits.delete))
  end)

  it('is refused if its decorators are unknown', function()
    local text = '@app.route(\n  "/x",\n)\ndef handler():\n    pass\n\n\ndef other():\n    pass'
    local given = { symbols = { { 'handler', 'function', 4, 5 }, { 'other', 'function', 8, 9 } } }
    local new, why = changed(text, 'python', 'handler', edits.delete, given)
    t.eq(nil, new)
    t.matches('line 3', why)
    t.eq(nil, (changed(text, 'python', 'handler', insert('def new(): pass', 'before'), given)))
    local after = changed(text, 'python', 'handler', insert('def new(): pass', 'after'), given)
    t.matches('pass\n\n\ndef new%(%): pass\n', after)
    t.eq(nil, (changed('return { f = function() end, g = 1 }', 'lua', 'f', edits.delete)))
  end)

  it('recognizes block comments without a syntax tree', function()
    local function deleted(head)
      local text = head .. '\nfunction f() {}\n\ng()'
      local line = #vim.split(head, '\n') + 1
      return (changed(text, 'javascript', 'f', edits.delete, { symbols = { { 'f', 'function', line, line } } }))
    end
    t.eq({ 'g()', 'g()' }, { deleted('/** One. */'), (deleted('/*\n  Some\n\n  text.\n*/\n// more')) })
    t.eq('/* a */\n\ng()', deleted('/* a */\n\n/* b\n*/'))
    t.eq({ nil, nil }, { deleted('/* open\n\n/* and closed */'), (deleted('x() /* of x */')) })
    t.eq(nil, deleted('@late'))
  end)

  it('includes decorators from the syntax tree', function()
    local text = 'x = 1\n\n@app.route(\n  "/x",\n)\ndef handler():\n    pass\n\ny = 2'
    local given = {
      symbols = { { 'handler', 'function', 6, 7 } },
      root = double.tree(syntax('module', '0 0 8 5', {
        syntax('expression_statement', '0 0 0 5'),
        syntax('decorated_definition', '2 0 6 8', {
          syntax('decorator', '2 0 4 1'),
          syntax('function_definition', '5 0 6 8', nil, 'definition'),
        }),
        syntax('expression_statement', '8 0 8 5'),
      })),
    }
    t.eq('x = 1\n\ny = 2', changed(text, 'python', 'handler', edits.delete, given))
    t.matches('^x = 1\n\nz = 3\n\n@app', changed(text, 'python', 'handler', insert('z = 3', 'before'), given))
    local body = changed(text, 'python', 'handler', replace('def handler():\n    return 1'), given)
    t.eq((text:gsub('pass', 'return 1')), body)
    local whole = changed(text, 'python', 'handler', replace('@other\ndef handler(): pass'), given)
    t.eq('x = 1\n\n@other\ndef handler(): pass\n\ny = 2', whole)
  end)

  it('keeps export and const unless the new text has its own', function()
    local text = 'export const f = () => {\n  return 1\n}\nf()'
    local given = {
      symbols = { { 'f', 'function', 1, 3 } },
      root = double.tree(syntax('program', '0 0 3 3', {
        syntax('export_statement', '0 0 2 1', {
          syntax('lexical_declaration', '0 7 2 1', {
            syntax('variable_declarator', '0 13 2 1', { syntax('identifier', '0 13 0 14') }),
          }, 'declaration'),
        }),
        syntax('expression_statement', '3 0 3 3'),
      })),
    }
    for _, body in ipairs({ 'f = () => 2', 'const f = () => 2', 'export const f = () => 2' }) do
      t.eq('export const f = () => 2\nf()', changed(text, 'javascript', 'f', replace(body), given))
    end
    t.eq('export let f = () => 2\nf()', changed(text, 'javascript', 'f', replace('let f = () => 2'), given))
    t.eq('f()', changed(text, 'javascript', 'f', edits.delete, given))
  end)
end)

describe('repeated requests', function()
  it('look for a parser once per filetype', function()
    local function all()
      for i = 1, 20 do
        of_text({ 'text ' .. i }, 'nosuchlanguage')
      end
    end
    t.eq(1, t.calls(vim.treesitter.language, 'add', all))
  end)

  it('match patterns of filetypes once per file', function()
    local matched = t.calls(vim.filetype, 'match', function()
      for _ = 1, 3 do
        t.eq('lua', file_type.of('/somewhere/that/nobody/asked/for.lua'))
      end
    end)
    t.eq(1, matched)
  end)
end)

describe('symbols of a file', function()
  it('are sorted in slices', function()
    local list, pauses = {}, 0
    for i = 1, 1000 do
      local line = (i * 7919) % 1009
      list[i] = { name = 'f' .. line, kind = 'function', range = { line, 0, line, 5 }, children = {} }
    end
    local expected = vim.tbl_map(function(node) return node.range[1] end, list)
    table.sort(expected)
    local found = symbol_tree.prune(list, function() pauses = pauses + 1 end)
    t.eq(expected, vim.tbl_map(function(node) return node.range[1] end, found))
    t.eq(true, pauses >= 1000)
  end)

  it('are nested by their ranges', function()
    local function node(name, from, to)
      return { name = name, kind = 'class', range = { from, 0, to, 0 }, children = {} }
    end
    local top = symbol_tree.nest({ node('inner', 2, 3), node('other', 9, 9), node('outer', 1, 5) })
    t.eq({ 'outer', 'other', 'inner' }, { top[1].name, top[2].name, top[1].children[1].name })
  end)
end)
