-- every Neovim
local diff = require('mcp-tools.ui.window.diff')
local t = require('helpers')

---The parts of rows with their groups: `row:text:group`.
local function parts(lines, spans)
  local list = {}
  for row, each in pairs(spans) do
    for _, span in ipairs(each) do
      table.insert(list, ('%d:%s:%s'):format(row, lines[row]:sub(span[1], span[2]), span[3]))
    end
  end
  table.sort(list)
  return list
end

local function has(list, ...)
  for _, part in ipairs({ ... }) do
    t.ok(vim.list_contains(list, part), part .. ' is not among ' .. vim.inspect(list))
  end
end

describe('a difference', function()
  it('distinguishes removed lines from the header of a file', function()
    local lines = { '--- a/x', '+++ b/x', '@@ -1,2 +1,2 @@', '--- a', '-x', '+++ b', '+y', '--- a/z', '+++ b/z', ' z' }
    t.eq({
      '1:--- a/x:Heading',
      '2:+++ b/x:Heading',
      '3:@@ -1,2 +1,2 @@:Changed',
      '4:--- a:Removed',
      '5:-x:Removed',
      '6:+++ b:Added',
      '7:+y:Added',
      '8:--- a/z:Heading',
      '9:+++ b/z:Heading',
    }, parts(lines, diff.spans(lines)))
  end)

  it('highlights the language of each file in added and unchanged lines, also after a margin', function()
    local lines = { '--- a/x.lua', '+++ b/x.lua', '@@ -1,2 +1,2 @@', ' local a = 1', '-local b', '+local c' }
    vim.list_extend(lines, { '--- a/y.c', '+++ b/y.c', '@@ -0,0 +1 @@', '+return 0;' })
    local list = parts(lines, diff.spans(lines))
    has(list, '4:local:@keyword.lua', '6:local:@keyword.lua', '10:return:@keyword.return.c', '5:-local b:Removed')
    t.eq(nil, vim.iter(list):find('5:local:@keyword.lua'))
    local spans = diff.spans({ '+++ b/x.lua', '@@ -0,0 +1 @@', '+local c' }, 4)
    t.eq({ { 5, 12, 'Added' }, { 6, 10, '@keyword.lua' } }, vim.list_slice(spans[3], 1, 2))
  end)

  it('highlights only + and - in other text, and in very much text', function()
    t.eq({ '1:+x:Added', '3:-y:Removed' }, parts({ '+x', 'z', '-y' }, diff.spans({ '+x', 'z', '-y' })))
    local many = { '+++ b/x.lua', '@@ -0,0 +1,500 @@' }
    for i = 3, 502 do
      many[i] = '+local x = 1'
    end
    local spans = diff.spans(many)
    t.eq({ 502, 1 }, { #spans, #spans[502] })
    local files = {}
    for i = 1, 4 do
      local name = ('+++ b/%d.lua'):format(i)
      vim.list_extend(files, { '--- /dev/null', name, '@@ -0,0 +1 @@', '+local x = "' .. ('y'):rep(7000) .. '"' })
    end
    spans = diff.spans(files)
    t.eq({ true, true, 1, 1 }, { #spans[4] > 1, #spans[8] > 1, #spans[12], #spans[16] })
  end)
end)

local function groups(lines)
  local found = {}
  for _, row in ipairs(diff.lines(lines, 0, 'Added', 80)) do
    for _, chunk in ipairs(row) do
      for _, group in ipairs(type(chunk[2]) == 'table' and chunk[2] or { chunk[2] }) do
        found[group] = true
      end
    end
  end
  return found
end

it('a proposed line has the highlights of its language, unless there is too much text', function()
  vim.bo.filetype = 'lua'
  t.ok(groups({ 'local x = 1' })['@keyword.lua'])
  t.eq(nil, groups({ 'local x = { ' .. ('1, '):rep(20000) .. '}' })['@keyword.lua'])
  local many = t.list(300, function() return ('local x = { %s }'):format(('1, '):rep(100)) end)
  t.eq(nil, groups(many)['@keyword.lua'])
end)

it('the changed part of a line is between equal beginnings and ends, in whole words', function()
  local function part(old, new)
    local found = diff.part(old, new)
    return found and { old:sub(found[1], found[2]), new:sub(found[1], found[3]) }
  end
  t.eq({ 'one', 'three' }, part('local x = one', 'local x = three'))
  t.eq({ { '', 'b, ' }, { 'ä', 'ö' } }, { part('f(a, c)', 'f(a, b, c)'), (part('<ä>', '<ö>')) })
  t.eq({ nil, nil, nil }, { part('same', 'same'), part('  a', '  b'), part('', 'x') })
  vim.cmd('enew')
  local row = diff.lines({ 'local x = 2' }, 0, 'Added', 80, { 'local x = 1' })[1]
  t.eq({ { '2', 'McpToolsPart' } }, vim.tbl_filter(function(chunk) return chunk[2] == 'McpToolsPart' end, row))
end)

it('the colors of deeply nested or broken text do not block Neovim', function()
  vim.bo.filetype = 'lua'
  local nested = ('{'):rep(7900) .. ('}'):rep(7900)
  local texts = { { nested }, { 'local x = a' .. (':b()'):rep(3900) }, { ('['):rep(16000) }, { (';'):rep(16000) } }
  table.insert(texts, vim.split(('{{{{{{{{{{{{{{{{{{{{\n'):rep(390), '\n'))
  table.insert(texts, vim.split(('[[[[[[[[[[[[[[[[[[[[\n'):rep(390) .. nested:sub(-400), '\n'))
  local begun = os.clock()
  for _, lines in ipairs(texts) do
    diff.groups(lines, 'lua')
  end
  t.ok(os.clock() - begun < 3)
end)
