local line_diff = require('mcp-tools.editor.edit.line_diff')
local t = require('helpers')

local diff = vim.text and vim.text.diff or vim.diff
local INDICES = { result_type = 'indices' }

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

local function text(lines)
  return table.concat(lines, '\n') .. '\n'
end

--- The second text, made of the first and what is said of their difference.
local function made(one, two, hunks)
  local out, row = {}, 1
  for _, hunk in ipairs(hunks) do
    local first = hunk[1] + (hunk[2] == 0 and 1 or 0)
    vim.list_extend(out, one, row, first - 1)
    local new = hunk[3] + (hunk[4] == 0 and 1 or 0)
    vim.list_extend(out, two, new, new + hunk[4] - 1)
    row = first + hunk[2]
  end
  return vim.list_extend(out, one, row, #one)
end

describe('the difference of two texts', function()
  math.randomseed(7)

  it('is that of vim.diff where few lines of many differ', function()
    local one = numbered(60000)
    local two = vim.list_slice(one)
    two[1], two[30000] = 'first', ''
    for at = 50000, 10000, -10000 do
      for i = 1, 300 do
        table.insert(two, at, 'new ' .. i)
      end
    end
    local old, new = text(one), text(two)
    t.eq({ false, false }, { line_diff.is_far(old, new), line_diff.is_far(new, old) })
    t.eq(diff(old, new, INDICES), line_diff.of(old, new, INDICES))
    t.eq(diff(old, new, { ctxlen = 1 }), line_diff.of(old, new, { ctxlen = 1 }))
  end)

  it('is one where too many do', function()
    local shared = { 'begin', 'x', 'y' }
    for _, ends in ipairs({ { shared, { 'end' } }, { shared, {} }, { {}, { 'end' } }, { {}, {} } }) do
      local one = vim.list_extend(vim.list_extend(vim.list_slice(ends[1]), alike(100000)), ends[2])
      local two = vim.list_extend(vim.list_extend(vim.list_slice(ends[1]), alike(90000)), ends[2])
      local old, new = text(one), text(two)
      t.ok(line_diff.is_far(old, new))
      local hunks = line_diff.of(old, new, INDICES)
      t.eq(1, #hunks)
      t.ok(hunks[1][1] > #ends[1] and hunks[1][1] + hunks[1][2] - 1 <= #one - #ends[2])
      t.eq(new, text(made(one, two, hunks)))
      local unified = line_diff.of(old, new, {})
      t.eq(hunks[1], vim.tbl_map(tonumber, { unified:match('^@@ %-(%d+),(%d+) %+(%d+),(%d+) @@\n') }))
      local _, lines = unified:gsub('\n[-+]', '')
      t.eq(hunks[1][2] + hunks[1][4], lines)
    end
  end)

  it('has lines that are only in one of both, and ends without a line break', function()
    local long = text(alike(70000))
    t.eq({ { 0, 0, 1, 70000 } }, line_diff.of('', long, INDICES))
    t.eq({ { 1, 70000, 0, 0 } }, line_diff.of(long, '', INDICES))
    t.eq({ { 70000, 0, 70001, 70000 } }, line_diff.of(long, long .. text(alike(70000)), INDICES))
    local unified = line_diff.of(long .. 'x', text(alike(70000)) .. 'y', {})
    t.matches('\n%-x\n\\ No newline at end of file\n%+', unified)
    t.matches('\n%+y\n\\ No newline at end of file\n$', unified)
  end)
end)
