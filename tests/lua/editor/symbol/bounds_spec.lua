-- every Neovim
-- Symbols in difficult cases: long lines, deleted buffers, generated texts.

local background = require('mcp-tools.editor.background')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local symbol = require('mcp-tools.editor.symbol')
local symbol_edits = require('mcp-tools.editor.symbol.edits')
local t = require('helpers')

--- Runs `fn` in a coroutine and waits for its result.
local function run(fn)
  local results
  background.run(function(ctx) return vim.F.pack_len(fn(ctx)) end, function(found) results = found end)
  t.wait(function() return results end, 20000)
  return vim.F.unpack_len(results)
end

local function of_text(lines, filetype)
  return run(function(ctx) return symbol.of_text(ctx, lines, filetype) end)
end

--- A language server within this editor; a test calls its `answers`.
local function server(bufnr)
  local answers = {}
  local id = vim.lsp.start({
    name = 'late',
    cmd = function()
      local closing = false
      return {
        request = function(method, _, callback)
          if method == 'initialize' then
            callback(nil, { capabilities = { documentSymbolProvider = true } })
          elseif method == 'shutdown' then
            callback(nil, vim.NIL)
          else
            table.insert(answers, callback)
          end
          return true, #answers
        end,
        notify = t.returns(true),
        is_closing = function() return closing end,
        terminate = function() closing = true end,
      }
    end,
  }, { bufnr = bufnr })
  t.wait(function() return vim.lsp.get_client_by_id(id).server_capabilities end)
  return answers
end

describe('symbols of a text with syntax errors', function()
  it('are not searched in a tree that is too wide', function()
    for filetype, text in pairs({ lua = ('('):rep(100000), c = ('#if 1\n'):rep(40000) .. 'int f(void) {}\n' }) do
      local check_turns = t.watch_turns()
      local file = of_text(vim.split(text, '\n'), filetype)
      check_turns()
      t.eq({ 'nothing', {} }, { file.by, file.tree })
      t.matches('too wide', file.why)
    end
  end)

  it('are not searched in a text with a line that blocks the parser', function()
    local lines = { 'local x', 'return { ' .. ('1, '):rep(300000) .. '}' }
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
    vim.bo[bufnr].filetype = 'lua'
    local files = {}
    local steps = t.calls(vim.treesitter, 'get_parser', function()
      files[1] = of_text(lines, 'lua')
      files[2] = run(function(ctx) return symbol.await(ctx, bufnr) end)
    end)
    for _, file in ipairs(files) do
      t.eq('nothing', file.by)
      t.matches('one of its lines is longer than 100 KB', file.why)
    end
    t.eq(0, steps)
    vim.api.nvim_buf_delete(bufnr, { force = true })
  end)

  it('are not searched in a text that is too large to parse in short steps', function()
    local file = of_text(t.list(600, function() return 'local x = [' .. ('='):rep(2000) .. '[' end), 'lua')
    t.eq('nothing', file.by)
    t.matches('larger than 1024 KB', file.why)
  end)

  it('are an error if their buffer is deleted while it is parsed', function()
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, t.list(20000, function() return 'local x = { 1, 2, 3 }' end))
    vim.schedule(function() vim.api.nvim_buf_delete(bufnr, { force = true }) end)
    local treesitter = require('mcp-tools.editor.treesitter')
    local root, why = run(function(ctx) return treesitter.parse(ctx, bufnr, 'lua') end)
    t.eq(nil, root)
    t.matches('closed', why)
  end)

  it('are not searched in Markdown whose nested blocks abort the parser', function()
    local nested = {}
    for i = 0, 299 do
      table.insert(nested, ('  '):rep(i) .. '- x')
    end
    for _, lines in ipairs({ { ('> '):rep(300) }, { ('>'):rep(300) }, { ('- '):rep(300) .. 'x' }, nested }) do
      local file = of_text(lines, 'markdown')
      t.eq('nothing', file.by)
      t.matches('nested', file.why)
      t.eq({}, require('mcp-tools.ui.window.diff').groups(lines, 'markdown'))
    end
    local fine = { '# Title', ('-'):rep(500), ('> '):rep(20) .. 'text' }
    t.eq('Title', of_text(fine, 'markdown').tree[1].name)
  end)

  it('are found if the errors are few', function()
    local file = of_text({ 'function a() end', ')', 'function b() end' }, 'lua')
    t.eq('treesitter', file.by)
    t.ok(#file.tree > 0)
  end)
end)

it('symbols are found with pauses', function()
  local list = t.list(
    20000,
    function(i) return { name = 'some_name_' .. i, kind = 'function', line = i, end_line = i, children = {} } end
  )
  for name, count in pairs({ some_name_20000 = 1, some_name_0 = 0, ['a.b'] = 0 }) do
    local pauses, path = 0, assert(symbol_tree.parse(name, 'symbol'))
    t.eq(count, #symbol_tree.all(list, path, false, function() pauses = pauses + 1 end))
    t.ok(pauses >= 100, ('%d pauses'):format(pauses))
  end
end)

it('the place of a symbol among others with the same name is found soon', function()
  local list = t.list(
    20000,
    function(i) return { name = 'same', kind = 'function', line = i, end_line = i, children = {} } end
  )
  local path, pauses, begun = assert(symbol_tree.parse('same[5]', 'symbol')), 0, os.clock()
  local found = assert(symbol_tree.one(list, path, 'symbol', 'x', function() pauses = pauses + 1 end))
  t.ok(os.clock() - begun < 0.5)
  t.ok(pauses >= 100)
  t.eq(5, found.line)
end)

it('very many comments above a symbol are not part of it and take little time', function()
  local lines = t.list(20000, function() return '// c' end)
  table.insert(lines, 'int foo() { return 1; }')
  local root = vim.treesitter.get_string_parser(table.concat(lines, '\n') .. '\n', 'c'):parse()[1]:root()
  local at, begun = { row = 20000, col = 0, end_row = 20000, end_col = 23 }, os.clock()
  local place = symbol_edits.extent(lines, at, { root = root, filetype = 'c', name_row = 20000, ends = {} })
  t.ok(os.clock() - begun < 2)
  t.eq(20000, place.top)
end)

it('an unknown name gets a similar name soon, however many symbols there are', function()
  local list = {}
  for i = 1, 20000 do
    table.insert(list, { name = 'some_name_' .. i, kind = 'function', line = i, end_line = i, children = {} })
  end
  t.eq('some_name_7 (line 7)', symbol_tree.near(list, assert(symbol_tree.parse('sone_name_7', 'symbol'))))
end)

it('symbols of a buffer are an error when it is deleted before the language server answers', function()
  local bufnr = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'function x()' })
  local answers = server(bufnr)
  local got
  background.run(function(ctx) return { symbol.await(ctx, bufnr) } end, function(results) got = results[2] end)
  t.wait(function() return #answers > 0 end)
  vim.api.nvim_buf_delete(bufnr, { force = true })
  answers[1](nil, {})
  t.wait(function() return got end, 4000)
  t.eq('not_found', got.code)
end)

it('a new body of a Python function needs no syntax tree', function()
  local lines = {
    'class A:',
    '    @property',
    '    def f(self, x: dict[str, int] = {"a": 1},  # the first',
    '          y=2) -> int:  # done',
    '        """Adds."""',
    '        return x + y',
    '',
    '    def g(self): pass',
  }
  local function replaced(row, end_row, text)
    local at = { row = row, col = 4, end_row = end_row, end_col = #lines[end_row + 1] }
    local place = symbol_edits.extent(lines, at, { filetype = 'python', name_row = row, ends = {} })
    return symbol_edits.replace_body(lines, place, text)
  end
  local edits = t.ok(replaced(2, 5, 'if x:\n    return y\nreturn 0\n'))
  t.eq({ 4, 5 }, { edits[1].start_line, edits[1].end_line })
  t.eq('        if x:\n            return y\n        return 0', edits[1].text)
  t.matches('body was not found', select(2, replaced(7, 7, 'return 1')))
end)

it('the code of a Python function begins below its docstring and comments', function()
  local bodies = {
    [2] = { '    x = 1' },
    [3] = { '    # why', '    x = 1' },
    [5] = { '    """One.', '', '    More."""', '    x = 1' },
    [4] = { "    r'''One.'''", '', '    x = 1' },
    [6] = { '    """One', '    """', '', '    # why', '    """text""".split()' },
  }
  for expected, body in pairs(bodies) do
    local lines = vim.list_extend({ 'def f():' }, body)
    local at = { row = 0, col = 0, end_row = #body, end_col = #lines[#lines] }
    local place = symbol_edits.extent(lines, at, { filetype = 'python', name_row = 0, ends = {} })
    t.eq(expected, symbol_edits.code_line(lines, place, 'python'))
  end
end)
