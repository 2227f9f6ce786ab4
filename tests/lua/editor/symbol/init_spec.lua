local edits = require('mcp-tools.editor.symbol.edits')
local file_type = require('mcp-tools.editor.file.filetype')
local from_lines = require('mcp-tools.editor.symbol.from_lines')
local in_text = require('mcp-tools.editor.symbol.in_text')
local name_path = require('mcp-tools.editor.symbol.name_path')
local nodes = require('mcp-tools.editor.symbol.nodes')
local outline = require('mcp-tools.editor.symbol.outline')
local symbol = require('mcp-tools.editor.symbol')
local t = require('helpers')
local text_edits = require('mcp-tools.editor.edit.text_edits')

local function split(text)
  return vim.split(text, '\n', { plain = true })
end

--- The outline of a text that is in no buffer.
local function outline_of(text, filetype)
  local lines, file = split(text), nil
  in_text.of_text(lines, filetype, function(found)
    file = found
  end)
  t.wait(function()
    return file
  end)
  local function lines_of(first, last)
    return vim.list_slice(lines, first, last)
  end
  return table.concat(outline.rows(file.tree, lines_of, { filetype = filetype }), '\n'), file
end

local PYTHON = table.concat({
  'import os',
  '',
  '@decorated',
  'class Ledger(Base):',
  '    def post(',
  '        self,',
  '        account: str = "a, (b",',
  '        *rest: int,',
  '        **more: dict[str, int],',
  '    ) -> int:',
  '        """Text."""',
  '        def inner(x): return x',
  '        return 1',
  '',
  '    async def post_all(self, *, key): pass',
  '',
  'def post(amount): return amount',
  '',
  'def post(amount, twice): return amount',
}, '\n')

describe('a name path', function()
  local top
  from_lines.ask(split(PYTHON), function(tree)
    top = nodes.prune(tree)
  end, true)

  local function one(text)
    local found, err = name_path.one(top, assert(name_path.parse(text, 'symbol')), 'symbol', 'a.py')
    return found and found.line, err
  end

  it('means what ends with it, from the top when it begins with a slash', function()
    t.eq(4, (one('Ledger')))
    t.eq(5, (one('Ledger/post')))
    t.eq(5, (one('/Ledger/post')))
    t.eq(12, (one('inner')))
    t.eq(12, (one('post/inner')))
    t.eq('not_found', select(2, one('/inner')).code)
    t.eq('not_found', select(2, one('Journal/post')).code)
  end)

  it('tells those of one name apart by their number', function()
    t.eq(17, (one('/post[1]')))
    t.eq(19, (one('/post[2]')))
    t.eq('not_found', select(2, one('/post[3]')).code)
    t.eq(5, (one('Ledger/post[1]')))
  end)

  it('of several symbols is refused with their names', function()
    local _, err = one('post')
    t.eq('validation_error', err.code)
    t.eq(
      'symbol: "post" means 3 symbols of a.py: Ledger/post (line 5), post[1] (line 17), post[2] (line 19);'
        .. ' give the whole path of one',
      err.message
    )
  end)

  it('of none is answered with what comes near', function()
    t.matches('there is Ledger/post_all %(line 15%)$', select(2, one('post_al')).message)
    t.matches('there is Ledger %(line 4%), post%[1%]', select(2, one('nothing')).message)
  end)

  it('is what a symbol is told by', function()
    local paths = {}
    nodes.each(top, function(node)
      table.insert(paths, name_path.of(node, top))
    end)
    t.eq({ 'Ledger', 'Ledger/post', 'Ledger/post/inner', 'Ledger/post_all', 'post[1]', 'post[2]' }, paths)
    for _, path in ipairs(paths) do
      t.eq(path, name_path.of(name_path.one(top, name_path.parse('/' .. path, 'symbol'), 'symbol', ''), top))
    end
  end)

  it('that is none is refused', function()
    for _, text in ipairs({ '', '/', 'a//b', 'a/', '[1]', 'a[0]', ('a'):rep(501) }) do
      local path, err = name_path.parse(text, 'symbol')
      t.eq(nil, path)
      t.eq('validation_error', err.code)
    end
    t.ok(name_path.parse(('a'):rep(500), 'symbol'))
  end)
end)

describe('symbols of a text', function()
  it('are seen in its lines where no parser is installed', function()
    local rows, file = outline_of(PYTHON, 'python')
    t.eq('lines', file.by)
    t.eq(
      table.concat({
        'Ledger [class] 4-15',
        '  post(account, *rest, **more) 5-13',
        '    inner(x) 12',
        '  post_all(*, key) 15',
        'post(amount) 17',
        'post(amount, twice) 19',
      }, '\n'),
      rows
    )
  end)

  it('in braces are seen by their indent', function()
    local rows = outline_of(
      table.concat({
        'export class Ledger',
        '{',
        '  constructor() {}',
        '}',
        'export async function use(a: Ledger, { b }: Options = {}, ...rest: string[]) {',
        '  if (a) {',
        '  }',
        '}',
        'fn last<T: Fn(u8)>(mut x: T) -> u8 {',
        '}',
      }, '\n'),
      'nothing'
    )
    t.eq('Ledger [class] 1-4\nuse(a, {…}, ...rest) 5\nlast(x) 9', rows)
  end)

  it('are taken from the syntax of Lua', function()
    local rows, file = outline_of(
      table.concat({
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
      }, '\n'),
      'lua'
    )
    t.eq('treesitter', file.by)
    t.eq('M.open(path, cb) 3-6\n  inner(...) 4\nM:close() 7\nM.late(a) 8\nrun(ctx, args) 10', rows)
  end)

  it('are taken from the syntax of C, Vim script, Markdown and help', function()
    local c = table.concat({
      'struct point { int x; };',
      'typedef struct point point_t;',
      'static struct point *make(int x, const char *name, void (*cb)(int)) {',
      '  struct point *p = 0;',
      '  return p;',
      '}',
      '#define TWICE(x) ((x) * 2)',
    }, '\n')
    t.eq('point [struct] 1\npoint_t [type] 2\nmake(x, name, cb) 3\nTWICE [macro] 7', (outline_of(c, 'c')))
    local vimscript = 'function! s:Open(path) abort\n  return 1\nendfunction\n'
    t.eq('s:Open(path) 1', (outline_of(vimscript, 'vim')))
    local markdown = '# One\n\ntext\n\n## Two / three\n\n```\n# none\n```\n\n# Last'
    t.eq('One [section] 1-10\n  Two   three [section] 5-10\nLast [section] 11', (outline_of(markdown, 'markdown')))
    local line = ('='):rep(78)
    local help = ('*a.txt*\n\n%s\n1. FIRST *a-first*\n\ntext\n\n%s\nSECOND *a-second*\n'):format(line, line)
    t.matches('^1%. FIRST %[section%] %d%-%d\nSECOND %[section%] %d%-%d+$', (outline_of(help, 'help')))
  end)

  it('are found in a text without any', function()
    for _, filetype in ipairs({ 'lua', 'python', 'markdown', 'query', '' }) do
      t.eq('', (outline_of('', filetype)))
      t.eq('', (outline_of('\n\nsome text\n', filetype)))
    end
  end)

  it('of a buffer are kept until it changes', function()
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'function one() end' })
    vim.bo[bufnr].filetype = 'lua'
    local function line_of(name)
      local found, err, done
      symbol.find(bufnr, name, function(...)
        found, err = ...
        done = true
      end)
      t.wait(function()
        return done
      end)
      return found and found.line, err
    end
    t.eq(nil, symbol.now(bufnr))
    t.eq(1, (line_of('one')))
    t.ok(symbol.now(bufnr))
    vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { '' })
    t.eq(nil, symbol.now(bufnr))
    t.eq(2, (line_of('one')))
    t.eq('not_found', select(2, line_of('two')).code)
    t.eq('validation_error', select(2, line_of('/')).code)
    vim.api.nvim_buf_delete(bufnr, { force = true })
  end)

  it('of 50 000 lines are found in turns', function()
    local lines = {}
    for i = 1, 12500 do
      vim.list_extend(lines, { ('function f%d(a, b)'):format(i), '  return a + b', 'end', '' })
    end
    local file, turns = nil, 0
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
    vim.bo[bufnr].filetype = 'lua'
    local ticks = vim.uv.new_timer()
    ticks:start(0, 1, function()
      turns = turns + 1
    end)
    symbol.of_buffer(bufnr, function(found)
      file = found
    end)
    t.wait(function()
      return file
    end, 20000)
    ticks:close()
    t.eq('treesitter', file.by)
    t.eq(12500, #file.tree)
    t.ok(turns > 10)
    vim.api.nvim_buf_delete(bufnr, { force = true })
  end)
end)

describe('an edit of a symbol', function()
  local function changed(text, filetype, name, make)
    local lines, file = split(text), nil
    in_text.of_text(lines, filetype, function(found)
      file = found
    end)
    t.wait(function()
      return file
    end)
    local node = assert(name_path.one(file.tree, name_path.parse(name, 'symbol'), 'symbol', ''))
    local row, col, end_row, end_col = unpack(node.range)
    local at = { row = row, col = col, end_row = end_row, end_col = math.min(end_col, #lines[end_row + 1]) }
    local list = assert(text_edits.ordered(make(lines, at), #lines, function(each)
      return lines[each + 1]
    end))
    return table.concat(text_edits.applied(lines, list), '\n')
  end

  local CLASS =
    'class A:\n    def one(self):\n        return 1\n\n    @late\n    # Two.\n    def two(self): pass\n\n\nx = 1'

  it('replaces it whole, with an indent that fits', function()
    local wanted =
      CLASS:gsub('def one%(self%):\n        return 1', 'def one(self, a):\n        if a:\n            return 2')
    for _, body in ipairs({
      'def one(self, a):\n    if a:\n        return 2',
      '    def one(self, a):\n        if a:\n            return 2\n',
      'def one(self, a):\n        if a:\n            return 2',
      '\n  def one(self, a):\n      if a:\n          return 2\n\n',
    }) do
      t.eq(
        wanted,
        changed(CLASS, 'python', 'A/one', function(lines, at)
          return edits.replace(lines, at, body)
        end)
      )
    end
    t.eq(
      'local x = 1\nlocal M = {\n  f = function(a)\n    return a\n  end,\n}\n',
      changed('local x = 1\nlocal M = {\n  f = function() end,\n}\n', 'lua', 'f', function(lines, at)
        return edits.replace(lines, at, 'f = function(a)\n  return a\nend')
      end)
    )
  end)

  it('writes before what belongs to it, and after it', function()
    local function inserted(name, where, text)
      return changed(CLASS, 'python', name, function(lines, at)
        return edits.insert(lines, at, text, where, 'python')
      end)
    end
    t.eq(
      (CLASS:gsub('    @late', '    def new(self):\n        pass\n\n    @late')),
      inserted('A/two', 'before', 'def new(self):\n    pass')
    )
    t.eq(
      (CLASS:gsub('pass\n\n\nx', 'pass\n\n    def new(self): pass\n\n\nx')),
      inserted('A/two', 'after', 'def new(self): pass\n')
    )
    local alone = 'class A:\n    def one(self):\n        pass\n\n\nx = 1'
    t.eq(
      (alone:gsub('pass', 'pass\n\n    def new(self): pass')),
      changed(alone, 'python', 'A/one', function(lines, at)
        return edits.insert(lines, at, 'def new(self): pass', 'after', 'python')
      end)
    )
    t.eq('def new(): pass\n\n\n' .. CLASS, inserted('A', 'before', 'def new(): pass\n'))
    local rows = 'class A:\n    a = lambda: 1\n\ndef f(): pass\ndef g(): pass'
    t.eq(
      'class A:\n    a = lambda: 1\n\ndef f(): pass\ndef new(): pass\ndef g(): pass',
      changed(rows, 'python', 'f', function(lines, at)
        return edits.insert(lines, at, 'def new(): pass', 'after', 'python')
      end)
    )
  end)

  it('takes it out with what belongs to it', function()
    local function deleted(text, filetype, name)
      return changed(text, filetype, name, function(lines, at)
        return (edits.delete(lines, at, filetype))
      end)
    end
    t.eq('class A:\n    def one(self):\n        return 1\n\n\nx = 1', deleted(CLASS, 'python', 'A/two'))
    t.eq((CLASS:gsub('    def one.-\n\n', '')), deleted(CLASS, 'python', 'A/one'))
    t.eq('x = 1', deleted(CLASS, 'python', 'A'))
    t.eq('local a = 1', deleted('local a = 1\n\n--- Text.\nlocal function f() end', 'lua', 'f'))
    t.eq(
      '#include "a.h"\nint b(void) { return 0; }',
      deleted('#include "a.h"\nint a(void) { return 0; }\nint b(void) { return 0; }', 'c', 'a')
    )
  end)
end)

describe('texts one after the other', function()
  it('have parsers looked for once by filetype', function()
    local function all()
      local of, left = in_text.of_texts(), 20
      for i = 1, 20 do
        of({ 'text ' .. i }, 'nosuchlanguage', function()
          left = left - 1
        end)
      end
      t.wait(function()
        return left == 0
      end)
    end
    all() -- known from now on
    t.eq(1, t.calls(vim.treesitter.language, 'add', all))
  end)

  it('have their names matched with patterns once', function()
    local matched = t.calls(vim.filetype, 'match', function()
      for _ = 1, 3 do
        t.eq('lua', file_type.of('/somewhere/that/nobody/asked/for.lua'))
      end
    end)
    t.eq(1, matched)
  end)
end)
