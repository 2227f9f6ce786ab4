-- every Neovim
local t = require('helpers')
local text = require('mcp-tools.ui.approval.text')

local function page_of(args, more, width)
  local call = { name = 'x', host = 'mcp', client = {}, definition = { name = 'x', description = 'x' } }
  local question =
    { call = call, args = args, reason = 'it is marked as destructive', targets = {}, root = '/p', choices = {} }
  local page = { rows = {}, marks = {} }
  for i, row in ipairs(text.page(vim.tbl_deep_extend('force', question, more or {}), width or 76).list) do
    page.rows[i] = row.text
    for _, mark in ipairs(row.marks) do
      table.insert(page.marks, { text = row.text:sub(mark[1] + 1, mark[2]), name = mark[3] })
    end
  end
  return page
end

--- The page of a call with this text as preview.
local function previewed(change, args, definition, more)
  definition = vim.tbl_extend('force', { name = 'x', description = 'x' }, definition or {})
  definition.preview = function() return change end
  return page_of(args or {}, vim.tbl_extend('force', { call = { name = 'x', definition = definition } }, more or {}))
end

local function lines_of(args) return page_of(args).rows end

--- The first row with a text.
local function row_of(page, part)
  for row, line in ipairs(page.rows) do
    if line:find(part, 1, true) then
      return row
    end
  end
  error(('%q is not in %s'):format(part, table.concat(page.rows, '\n'):sub(1, 500)))
end

local function shown(args) return table.concat(lines_of(args), '\n') end

local function has(args, part)
  local all = shown(args)
  t.ok(all:find(part, 1, true), ('%q is not in %s'):format(part, all:sub(1, 500)))
end

describe('arguments in a question', function()
  it('show numbers to the last digit', function()
    for number, digits in pairs({
      [999999999999999] = '999999999999999',
      [100000000000000.5] = '100000000000000.5',
      [9007199254740991] = '9007199254740991',
      [-9007199254740992] = '-9007199254740992',
      [0.1] = '0.1',
      [0.1 + 0.2] = '0.30000000000000004',
      [1e300] = '1e+300',
      [3] = '3',
    }) do
      t.eq(number, tonumber(digits))
      has({ n = number }, 'n: ' .. digits)
      has({ list = { number, { deep = number } } }, '[1] ' .. digits)
    end
    has({ flag = true, none = vim.NIL }, 'flag: true')
    has({ flag = true, none = vim.NIL }, 'none: null')
  end)

  it('are all shown, however long the first ones are', function()
    for _, long in ipairs({ ('a'):rep(3e6), ('a\n'):rep(1e6), { ('a'):rep(1e5), ('b'):rep(1e5) } }) do
      has({ a = long, b = long, command = 'rm -r /' }, 'command: "rm -r /"')
      has({ a = long, b = long, command = 'rm -r /' }, 'arguments, CUT: 2 of 3 are too long to show completely')
    end
    t.ok(#shown({ a = ('a'):rep(3e6), b = ('b\n'):rep(1e6) }) < 2e5)
  end)

  it('are escaped as far as they are shown, and in whole characters', function()
    local sanitize, bytes = require('mcp-tools.util.sanitize'), 0
    local text_of, line_of = sanitize.text, sanitize.line
    for name, original in pairs({ text = text_of, line = line_of }) do
      sanitize[name] = function(piece)
        bytes = bytes + #piece
        return original(piece)
      end
    end
    local args = { one = ('\1'):rep(60000), two = 'x\n' .. ('\1'):rep(60000) }
    local count = #table.concat(lines_of(args), '\n')
    sanitize.text, sanitize.line = text_of, line_of
    t.ok(bytes < 30000 and count > 60000, ('%d bytes of %d'):format(bytes, count))
    for shift = 0, 3 do
      local value = ('x'):rep(4090 + shift) .. ('ü€😀'):rep(3)
      local rows = vim.tbl_map(vim.trim, lines_of({ text = value, lines = '\n' .. value }))
      t.eq(2, select(2, table.concat(rows):gsub('↪%s*', ''):gsub(vim.pesc(value), '')))
    end
  end)

  it('are marked as truncated at any position', function()
    for first = 1, 400, 7 do
      local value = ('a'):rep(first) .. '\n' .. ('b'):rep(70000) .. 'rm -r /'
      local marked = 'arguments, CUT: 1 of 1 are too long to show completely'
      t.eq({ first, marked }, { first, lines_of({ value = value })[5] })
    end
    t.eq('arguments', lines_of({ value = ('a\n'):rep(1000) })[5])
  end)

  it('are counted when there are too many', function()
    local args = {}
    for i = 1, 50000 do
      args[('key%05d'):format(i)] = i
    end
    local all = shown(args)
    t.ok(#all < 2e6 and all:find('arguments, CUT: %d+ of 50000 are too long') and all:find('… CUT: %d+ more'))
  end)

  it('are omitted where a bundled tool has the same default', function()
    local properties =
      { path = {}, dry_run = { default = true }, list = { default = { 1 } }, regex = { default = false } }
    local function rows(args, origin)
      local definition = { input_schema = { properties = properties }, source = { origin = origin, name = 'x' } }
      return table.concat(page_of(args, { call = { definition = definition } }).rows, '\n')
    end
    local all = rows({ path = 'a', dry_run = false, list = { 1 }, regex = false }, 'bundled')
    t.ok(all:find('dry_run: false', 1, true) and all:find('path: "a"', 1, true), all)
    t.eq(nil, all:find('regex', 1, true) or all:find('list', 1, true))
    t.matches('with the default arguments', rows({ dry_run = true }, 'bundled'))
    t.matches('regex: false', rows({ path = 'a', regex = false }, 'server'))
  end)

  it('have escaped quotes and backslashes', function()
    has({ a = [[x\", b: "y]] }, [[a: "x\\\", b: \"y"]])
    has({ [ [[a"\]] ] = 1 }, [["a\"\\": 1]])
  end)
end)

-- At 80 columns and 24 lines the window has 76 cells and 13 rows.
local FIRST_SCREEN = 13

describe('on the first screen', function()
  local long = ('a b'):rep(100000)
  local targets = t.list(20000, function(i) return { path = ('/p/%s/%d'):format(('x'):rep(300), i) } end)
  targets[10000] = { path = '/etc/' .. ('y'):rep(300) .. '/shadow' }
  local hostile = {
    reason = long,
    targets = targets,
    call = {
      name = long,
      client = { name = long, version = long },
      definition = { name = long, title = long, source = { origin = 'python', name = 'x', file = '/' .. long } },
    },
  }

  it('arguments begin, however long the text before them is', function()
    local page = page_of({ command = 'rm -rf /', text = long }, hostile)
    t.ok(row_of(page, 'command: "rm -rf /"') <= FIRST_SCREEN)
    for row = 1, FIRST_SCREEN do
      t.ok(vim.api.nvim_strwidth(page.rows[row]) <= 76, page.rows[row])
    end
  end)

  it('files outside the project come first, with their number', function()
    local page = page_of({}, hostile)
    t.matches('^file    /etc/yy.*…y+/shadow  OUTSIDE the project$', page.rows[row_of(page, 'OUTSIDE')])
    row_of(page, '… and 19998 more files; 1 in all OUTSIDE the project')
    local inside = vim.tbl_map(function(name) return { path = '/p/' .. name } end, { 'a', 'b', 'c' })
    t.matches('… and 1 more file$', (page_of({}, { targets = inside })).rows[7])
    t.ok(#page.rows < 2000, 'a bound for all of it')
  end)

  it('of any width the reasons against a call and the end of its file are shown', function()
    local files = { { path = '/etc/' .. ('y'):rep(40) }, { path = '/p/a' } }
    for width = 1, 40 do
      local page = page_of({ command = 'rm' }, { targets = files }, width)
      local all = table.concat(page.rows):gsub('↪ ', '')
      t.matches('OUTSIDE the project', all)
      t.matches({ ('/etc/' .. ('y'):rep(40)), 'command: "rm"' }, all)
    end
  end)

  it('the file of the argument path comes first', function()
    local files = { { path = '/p/new', given = 'new' }, { path = '/p/old', given = 'old' } }
    local page = page_of({ new_path = 'new', path = 'old' }, { targets = files })
    t.ok(row_of(page, 'file    /p/old') < row_of(page, 'file    /p/new'))
  end)

  it('the number of files in the diff is shown if more than the arguments name', function()
    local function diff_of(...)
      local parts = {}
      for _, name in ipairs({ ... }) do
        table.insert(parts, ('--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n--- x\n+++ y\n'):format(name, name))
      end
      return table.concat(parts)
    end
    local more = { targets = { { path = '/p/a', given = 'a' } } }
    row_of(previewed(diff_of('a', 'b', 'c'), {}, {}, more), 'the diff below changes 3 files')
    t.eq(false, (pcall(row_of, previewed(diff_of('a'), {}, {}, more), 'the diff below')))
  end)

  it('a name that is not a file is not shown as one outside', function()
    local page = page_of({}, { targets = { { path = 'fugitive:///p/.git//0/x', other = true } } })
    t.matches('^file    fugitive:///p/.git//0/x  NOT a regular FILE$', page.rows[row_of(page, 'fugitive')])
  end)

  it('short arguments come before long ones, those of the tool before others', function()
    local definition = { input_schema = { properties = { z = {}, a = {}, b = {} } } }
    local args = { a = long, b = 'x\ny', z = 1, unknown = true }
    local page = page_of(args, { call = { definition = definition } })
    local order = { 'z: 1', 'unknown: true', 'b: text of 2 lines', 'a: "a ba b' }
    for i = 2, #order do
      t.ok(row_of(page, order[i - 1]) < row_of(page, order[i]), order[i])
    end
  end)

  it('changes come before the arguments', function()
    local page = previewed('-old\n+new\n', { a = 1, body = long })
    t.ok(row_of(page, '+new') <= FIRST_SCREEN)
    t.ok(row_of(page, 'a: 1') > row_of(page, '+new') and row_of(page, 'body: "a b') > row_of(page, 'a: 1'))
  end)

  it('arguments that a complete diff shows are not repeated', function()
    local args = { path = 'lua/x.lua', changedtick = 7, edits = { { search = 'old', replace = 'new' } } }
    local function question_of(preview, origin)
      return previewed(preview, args, { source = { origin = origin or 'bundled' }, previewed = { 'edits' } })
    end
    local HEAD = '--- a/lua/x.lua\n+++ b/lua/x.lua\n@@ -1 +1 @@\n-old\n'
    local rows = table.concat(question_of(HEAD .. '+new\n').rows, '\n')
    t.ok(rows:find('path: "lua/x.lua"', 1, true) and rows:find('changedtick: 7', 1, true), rows)
    t.eq(nil, rows:find('edits', 1, true) or rows:find('search', 1, true))
    local other = { 'The diff cannot be shown', HEAD .. ('+new\n'):rep(20000), HEAD .. '+new\nFound by text.\n' }
    for _, preview in ipairs(other) do
      t.ok(row_of(question_of(preview), 'search: "old"'))
    end
    t.ok(row_of(question_of(HEAD .. '+new\n', 'lua'), 'search: "old"'))
  end)

  it('only bundled tools are called bundled', function()
    t.matches('^tool    x %(bundled%)  x$', previewed('', {}, { source = { origin = 'bundled' } }).rows[1])
    t.matches('^tool    "x %(bundled%)"  x$', page_of({}, { call = { name = 'x (bundled)' } }).rows[1])
    t.matches('^source  registered', page_of({}).rows[2])
  end)
end)

it('a truncated reason is shown in full at the end', function()
  local reason = ('because '):rep(100) .. 'of that'
  local page = page_of({ a = 1 }, { reason = reason, targets = { { path = '/etc/' .. ('z'):rep(200) .. '/end' } } })
  local all = table.concat(page.rows):gsub('↪ ', '')
  local first, second = all:find('of that', 1, true), all:find(('z'):rep(200) .. '/end  OUTSIDE', 1, true)
  t.ok(first and second and first > row_of(page, 'a: 1'))
  t.ok(all:find(('because '):rep(100) .. 'of that', 1, true))
end)

describe('highlights', function()
  local function coloured(page, name)
    local parts = {}
    for _, mark in ipairs(page.marks) do
      if mark.name == name then
        table.insert(parts, mark.text)
      end
    end
    return parts
  end

  it('mark labels, diffs and files outside', function()
    local targets = { { path = '/etc/hosts' } }
    local page = previewed('@@ -1 +1 @@\n-old\n+new\n same', { path = '/etc/hosts' }, nil, { targets = targets })
    t.eq({ { '-old' }, { '+new' } }, { coloured(page, 'Removed'), (coloured(page, 'Added')) })
    t.eq({ '@@ -1 +1 @@' }, coloured(page, 'Changed'))
    t.eq({ '  OUTSIDE the project' }, coloured(page, 'Warn'))
    t.eq({ 'tool', 'source', 'client', 'reason', 'file', '  path: ' }, coloured(page, 'Label'))
  end)

  it('continue in the next row', function()
    local long = ('+x'):rep(100)
    local page = previewed(long)
    t.eq(long, table.concat(coloured(page, 'Added')))
  end)
end)

it('a row is broken between wide characters', function()
  local value = ('漢é'):rep(200)
  local page = page_of({ value = value })
  local joined = {}
  for _, row in ipairs(page.rows) do
    t.ok(vim.api.nvim_strwidth(row) <= 76, row)
    table.insert(joined, (row:gsub('^↪ ', '')))
  end
  t.ok(table.concat(joined):find(value, 1, true))
end)

it('a text is counted up to ten thousand lines and shown in part', function()
  has({ text = ('a\n'):rep(9998) .. 'b' }, 'text of 9999 lines')
  has({ text = ('\n'):rep(500000) }, 'text of more than 10000 lines')
  t.ok(#lines_of({ text = ('\n'):rep(500000) }) < 2500)
end)
