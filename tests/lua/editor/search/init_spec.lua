local files = require('mcp-tools.editor.search.files')
local result = require('mcp-tools.editor.result')
local matcher = require('mcp-tools.editor.search.matcher')
local t = require('helpers')

--- Texts that a query matches, in order.
local function plain(query, text, opts)
  local made = matcher.new(vim.tbl_extend('force', { query = query }, opts or {}))
  local found, lines = {}, vim.split(text, '\n', { plain = true })
  made:each(text, function(match)
    local first = lines[match.row + 1]:sub(match.col + 1)
    if match.end_row == match.row then
      table.insert(found, (first:sub(1, match.end_col - match.col)))
    else
      table.insert(found, first .. '⏎' .. lines[match.end_row + 1]:sub(1, match.end_col))
    end
  end)
  return found
end

describe('plain text', function()
  it('is found as it stands, over several lines too', function()
    t.eq({ 'a.b', 'a.b' }, plain('a.b', 'axb a.b\na.b'))
    t.eq({ 'x⏎y', 'x⏎y' }, plain('x\ny', 'x\ny\nax\nyb'))
    t.eq({ 'aa' }, plain('aa', 'aaa'))
    t.eq({}, plain('b\n\nc', 'b\nc'))
  end)

  it('takes time that grows with the length of a text, however long its lines are', function()
    local count, begun = 0, vim.uv.hrtime()
    matcher.new({ query = 'a' }):each(('a'):rep(100000) .. ('b'):rep(3e6), function()
      count = count + 1
    end)
    t.eq(100000, count)
    t.ok((vim.uv.hrtime() - begun) / 1e9 < 2)
  end)

  it('is found in any case, and as a word', function()
    t.eq({ 'Ab', 'aB' }, plain('ab', 'Ab aB', { ignore_case = true }))
    t.eq({ 'Ä', 'ä' }, plain('ä', 'Ä ä', { ignore_case = true }))
    t.eq({ '^Ä.$\\' }, plain('^ä.$\\', '^Ä.$\\ äx$\\', { ignore_case = true }))
    t.eq(
      { 'xÄx', 'XäX' },
      plain('xäx', ('y'):rep(16380) .. 'xÄx' .. ('\0'):rep(40000) .. 'XäX', { ignore_case = true })
    )
    t.eq({ 'post' }, plain('post', 'posts repost post_x äpost post', { word = true }))
    t.eq({ '.post', '.post' }, plain('.post', 'a.post .post', { word = true }))
  end)
end)

describe('globs', function()
  it('are of names, or of paths when they have a slash; ! leaves out', function()
    local function taken(globs)
      local takes = assert(files.matcher(globs))
      return vim.tbl_filter(takes, { 'a.py', 'b.lua', 'src/a.py', 'src/deep/c.py', 'test/a.py' })
    end
    t.eq(5, #taken(nil))
    t.eq({ 'a.py', 'src/a.py', 'src/deep/c.py', 'test/a.py' }, taken({ '*.py' }))
    t.eq({ 'src/a.py' }, taken({ 'src/*.py' }))
    t.eq({ 'src/a.py', 'src/deep/c.py' }, taken({ './src/**' }))
    t.eq({ 'src/a.py', 'src/deep/c.py' }, taken({ 'src/' }))
    t.eq({ 'a.py', 'b.lua', 'test/a.py' }, taken({ '!src/**' }))
    t.eq({ 'b.lua', 'src/deep/c.py' }, taken({ '*.{py,lua}', '!a.py' }))
    local many = {}
    for i = 1, 51 do
      many[i] = 'a'
    end
    t.eq('validation_error', select(2, files.matcher(many)).code)
  end)
end)

describe('an answer', function()
  it('takes the longest way that there is room for', function()
    local function variant(length, without)
      return {
        without = without,
        text = function()
          return ('x'):rep(length)
        end,
      }
    end
    local variants = { variant(100), variant(50, 'context'), variant(20, 'lines'), variant(10, 'all') }
    t.eq(100, #result.longest(variants, 'narrow', 100))
    t.matches('^x+\n%(too much for context; narrow%)$', result.longest(variants, 'narrow', 99))
    t.matches('^x+\n%(too much for lines; narrow%)$', result.longest(variants, 'narrow', 20))
    t.matches('^…\n%(too much for all; narrow%)$', result.longest(variants, 'narrow', 5))
  end)
end)
