-- every Neovim
local text_diff = require('mcp-tools.editor.text.diff')
local t = require('helpers')

--- Lines of which nobody can say where they come from.
local function alike(count)
  local list = {}
  for i = 1, count do
    list[i] = math.random() < 0.5 and 'a' or 'b'
  end
  return list
end

local function numbered(count)
  local list = {}
  for i = 1, count do
    list[i] = 'line ' .. i .. (i % 3 == 0 and ' end' or '')
  end
  return list
end

--- The second text, made of the first and what is said of their difference.
local function made(one, two, spans)
  local out, row = {}, 1
  for _, span in ipairs(spans) do
    vim.list_extend(out, one, row, span[1] - 1)
    vim.list_extend(out, two, span[3], span[3] + span[4] - 1)
    row = span[1] + span[2]
  end
  return table.concat(vim.list_extend(out, one, row, #one), '\n')
end

local function later(one, two)
  local spans
  text_diff.spans_async(one, two, function(found)
    spans = found
  end)
  t.wait(function()
    return spans
  end, 20000, 'a comparison')
  return spans
end

--- The second text, made of the first and a unified diff.
local function patched(one, unified)
  local out, row = {}, 1
  for line in vim.gsplit(unified, '\n', { plain = true, trimempty = true }) do
    local sign, first, count = line:sub(1, 1), line:match('^@@ %-(%d+),?(%d*) ')
    if first then
      local at = tonumber(first) + (count == '0' and 1 or 0)
      vim.list_extend(out, one, row, at - 1)
      row = at
    else
      if sign ~= '+' then
        t.eq(one[row], line:sub(2))
        row = row + 1
      end
      table.insert(out, sign ~= '-' and line:sub(2) or nil)
    end
  end
  return table.concat(vim.list_extend(out, one, row, #one), '\n')
end

--- A unified diff without the names of the texts.
local function hunks(one, two, context)
  return (text_diff.unified(one, two, { context = context }):gsub('^%-%-%- a\n%+%+%+ b\n', ''))
end

describe('the difference of two texts', function()
  math.randomseed(7)

  it('is found line by line, at once and beside the main loop', function()
    for _ = 1, 300 do
      local one, two = alike(math.random(0, 12)), alike(math.random(0, 12))
      local spans = text_diff.spans(one, two)
      t.eq({ one, two, table.concat(two, '\n') }, { one, two, made(one, two, spans) })
      t.eq(spans, later(one, two))
    end
  end)

  it('makes the second text of the first as a unified diff', function()
    for i = 1, 300 do
      local one, two = alike(math.random(0, 12)), alike(math.random(0, 12))
      t.eq(table.concat(two, '\n'), patched(one, hunks(one, two, i % 4)))
    end
    local one = numbered(30)
    local two = vim.list_slice(one)
    table.remove(two, 20)
    two[10], two[4] = 'changed', 'changed'
    local diff = (vim.text and vim.text.diff or vim.diff)
    local expected = diff(table.concat(one, '\n') .. '\n', table.concat(two, '\n') .. '\n', { ctxlen = 3 })
    t.eq(expected, hunks(one, two, 3))
  end)

  it('takes little longer to write than to find', function()
    local one, two = numbered(140000), numbered(140000)
    for i = 1, #two do
      two[i] = 'changed ' .. i
    end
    local function time(fn)
      collectgarbage()
      local begun = os.clock()
      fn(one, two)
      return os.clock() - begun
    end
    local found = time(text_diff.spans)
    t.ok(time(text_diff.unified) < 12 * found)
  end)

  it('of a long text has every place that differs', function()
    local one = numbered(60000)
    local two = vim.list_slice(one)
    for i = 1, #one, 10 do
      two[i] = 'changed ' .. i
    end
    local spans = later(one, two)
    t.eq({ 6000, { 1, 1, 1, 1 }, { 59991, 1, 59991, 1 } }, { #spans, spans[1], spans[6000] })
    t.eq(spans, text_diff.spans(one, two))
  end)

  it('does not keep the editor waiting, however little two texts have in common', function()
    local one, two = alike(400000), alike(400000)
    local longest, before = 0, vim.uv.hrtime()
    local timer = vim.uv.new_timer()
    timer:start(1, 1, function()
      longest, before = math.max(longest, vim.uv.hrtime() - before), vim.uv.hrtime()
    end)
    local spans = later(one, two)
    timer:close()
    t.eq(table.concat(two, '\n'), made(one, two, spans))
    t.ok(#spans > 1000)
    t.ok(longest < 1e9, ('%d ms'):format(longest / 1e6))
  end)

  it('of very long texts is one place where nobody can wait for it', function()
    local one, two = alike(200000), alike(200000)
    local begun = vim.uv.hrtime()
    local spans, unified = text_diff.spans(one, two), hunks(one, two, 3)
    t.ok(vim.uv.hrtime() - begun < 2e9)
    t.eq({ 1, table.concat(two, '\n') }, { #spans, made(one, two, spans) })
    local _, lines = unified:gsub('\n[-+]', '')
    t.eq(spans[1][2] + spans[1][4], lines)
  end)
end)
