-- slow, every Neovim
local position = require('mcp-tools.editor.position')
local page = require('mcp-tools.editor.result').page
local search_replace = require('mcp-tools.editor.text.search_replace')
local t = require('helpers')
local text_diff = require('mcp-tools.editor.text.diff')
local text_edits = require('mcp-tools.editor.text.edits')

--- Random lines of two kinds.
local function alike(count)
  local list = t.list(count, function() return math.random() < 0.5 and 'a' or 'b' end)
  return list
end

local function numbered(count)
  local list = t.list(count, function(i) return 'line ' .. i .. (i % 3 == 0 and ' end' or '') end)
  return list
end

--- The second text, made from the first and their difference.
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
  text_diff.spans_async(one, two, function(found) spans = found end)
  t.wait(function() return spans end, 20000, 'a comparison')
  return spans
end

--- The second text, made from the first and a unified diff.
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

  it('is found line by line, synchronously and in slices', function()
    for _ = 1, 300 do
      local one, two = alike(math.random(0, 12)), alike(math.random(0, 12))
      local spans = text_diff.spans(one, two)
      t.eq({ one, two, table.concat(two, '\n') }, { one, two, made(one, two, spans) })
      t.eq(spans, later(one, two))
    end
  end)

  it('as a unified diff makes the second text from the first', function()
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

  it('of a long text is complete', function()
    local one = numbered(60000)
    local two = vim.list_slice(one)
    for i = 1, #one, 10 do
      two[i] = 'changed ' .. i
    end
    local spans = later(one, two)
    t.eq({ 6000, { 1, 1, 1, 1 }, { 59991, 1, 59991, 1 } }, { #spans, spans[1], spans[6000] })
    t.eq(spans, text_diff.spans(one, two))
    t.ok(table.concat(two, '\n') == t.fast(function() return patched(one, hunks(one, two, 3)) end)) -- unlike `vim.diff`
  end)

  it('is found in slices, even if two texts have little in common', function()
    local one, two = alike(200000), alike(200000)
    local check_turns = t.watch_turns()
    local spans = later(one, two)
    check_turns()
    t.eq(table.concat(two, '\n'), made(one, two, spans))
    t.ok(#spans > 1000)
  end)

  it('of very long texts is one span if it would take too long', function()
    local one, two = alike(200000), alike(200000)
    local spans, unified = t.fast(text_diff.spans, one, two), t.fast(hunks, one, two, 3)
    t.eq({ 1, table.concat(two, '\n') }, { #spans, made(one, two, spans) })
    local _, lines = unified:gsub('\n[-+]', '')
    t.eq(spans[1][2] + spans[1][4], lines)
  end)
end)

local LINES = { 'one', 'two', 'three', 'ünf', '' }

local function edit(start_line, start_col, end_line, end_col, text)
  return { start_line = start_line, start_col = start_col, end_line = end_line, end_col = end_col, text = text }
end

local function ordered(edits, lines)
  lines = lines or LINES
  return text_edits.ordered(edits, #lines, function(row) return lines[row + 1] end)
end

local function applied(edits, lines) return text_edits.applied(lines or LINES, t.ok(ordered(edits, lines))) end

describe('edits of text', function()
  it('can be in any order', function()
    t.eq({ 'ONE', 'two', 'th', '!ünf', '' }, applied({ edit(2, 2, 3, 0, '\n!'), edit(0, 0, 0, 3, 'ONE') }))
    t.eq({ 'abone', 'two', 'three', 'ünf', '' }, applied({ edit(0, 0, 0, 0, 'a'), edit(0, 0, 0, 0, 'b') }))
  end)

  it('can end on the line after the last one', function()
    local lines = { 'a', 'b' }
    t.eq({ 'a', 'b', 'c' }, applied({ edit(2, 0, 2, 0, 'c\n') }, lines))
    t.eq({ 'a', 'b', 'c' }, applied({ edit(2, 0, 2, 0, 'c') }, lines))
    t.eq({ 'a' }, applied({ edit(1, 0, 2, 0, '') }, lines))
    t.eq({ 'a', 'c' }, applied({ edit(1, 0, 2, 0, 'c\n') }, lines))
    t.eq({ '' }, applied({ edit(0, 0, 2, 0, '') }, lines))
    t.eq({ 'x', 'y' }, applied({ edit(0, 0, 2, 0, 'x\ny\n') }, lines))
  end)

  it('next to each other at the end of the text do not overlap', function()
    local lines = { 'a', 'b', 'c' }
    local delete_last = edit(2, 0, 3, 0, '')
    t.eq({ 'a', 'B' }, applied({ edit(1, 0, 2, 0, 'B\n'), delete_last }, lines))
    t.eq({ 'a', 'B' }, applied({ delete_last, edit(1, 0, 1, 1, 'B') }, lines))
    t.eq({ 'a' }, applied({ edit(1, 0, 2, 0, ''), delete_last }, lines))
    t.eq({ 'a', 'b', 'new' }, applied({ edit(2, 0, 2, 0, 'new\n'), delete_last }, lines))
    t.eq({ 'a', 'b', 'new' }, applied({ delete_last, edit(2, 0, 2, 0, 'new\n') }, lines))
    t.eq({ 'a', 'b', 'end' }, applied({ delete_last, edit(3, 0, 3, 0, 'end\n') }, lines))
    local three = { edit(3, 0, 3, 0, 'd\n'), edit(2, 0, 3, 0, 'C\n'), edit(3, 0, 3, 0, 'e\n') }
    t.eq({ 'a', 'b', 'C', 'd', 'e' }, applied(three, lines))
    t.eq({ '' }, applied({ edit(0, 0, 1, 0, ''), edit(1, 0, 2, 0, ''), delete_last }, lines))
    t.eq({ 'a', 'b', 'c' }, applied({ edit(3, 0, 3, 0, '') }, lines))
  end)

  it('are refused if they overlap, end before they start, or are outside', function()
    for _, case in ipairs({
      { { edit(0, 0, 0, 2, 'x'), edit(0, 1, 0, 3, 'y') }, 'edits%[1%]: it overlaps' },
      { { edit(1, 0, 0, 0, 'x') }, 'end is before its start' },
      { { edit(0, 2, 0, 1, 'x') }, 'end is before its start' },
      { { edit(0, 0, 0, 4, 'x') }, '0:0 to 0:4 is not in the text %(5 lines%)' },
      { { edit(5, 1, 5, 1, 'x') }, 'not in the text' },
      { { edit(0, 0, 0, 0, 'x'), edit(-1, 0, 0, 0, 'x') }, 'edits%[1%]: ' },
    }) do
      t.fails('validation_error', case[2], ordered(case[1]))
    end
  end)
end)

describe('parts of an edit', function()
  --- The lines and the parts of one edit, which are applied one by one in a buffer.
  local function in_buffer(lines, one)
    local at = t.ok(ordered({ one }, lines))[1]
    local bufnr = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
    local old = vim.api.nvim_buf_get_text(bufnr, at.row, at.col, at.end_row, at.end_col, {})
    local parts = text_edits.parts(at, old)
    for i = #parts, 1, -1 do
      local part = parts[i]
      vim.api.nvim_buf_set_text(bufnr, part.row, part.col, part.end_row, part.end_col, part.lines)
    end
    local got = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
    vim.api.nvim_buf_delete(bufnr, { force = true })
    return got, parts
  end

  it('exclude unchanged text, in whole characters', function()
    local got, parts = in_buffer({ 'aaa é bbb' }, edit(0, 0, 0, 10, 'aaa è bbb'))
    t.eq({ 'aaa è bbb' }, got)
    t.eq({ { row = 0, col = 4, end_row = 0, end_col = 6, lines = { 'è' } } }, parts)
    t.eq({}, select(2, in_buffer({ 'a', 'b' }, edit(0, 0, 1, 1, 'a\nb'))))
  end)

  it('are limited in number', function()
    local old, new = {}, {}
    for i = 1, 30000 do
      old[i] = 'line ' .. i
      new[i] = i % 3 == 0 and 'changed ' .. i or old[i]
    end
    local got, parts = in_buffer(old, edit(0, 0, #old, 0, table.concat(new, '\n') .. '\n'))
    t.eq(new, got)
    t.ok(#parts > 100 and #parts < 5000, #parts)
  end)

  it('are equivalent to the edit', function()
    math.randomseed(7)
    local words = { 'a', 'b', 'c', '', 'é', 'ab', 'ac' }
    local function some_lines(min)
      local lines = t.list(math.random(min, 7), function() return words[math.random(#words)] end)
      return lines
    end
    for _ = 1, 2000 do
      local lines, new = some_lines(1), some_lines(0)
      local row = math.random(0, #lines - 1)
      local end_row = math.random(row, #lines - 1)
      local col = lines[row + 1]:find('é') and 0 or math.random(0, #lines[row + 1])
      local end_col = lines[end_row + 1]:find('é') and #lines[end_row + 1] or math.random(0, #lines[end_row + 1])
      if row < end_row or col <= end_col then
        local one = edit(row, col, end_row, end_col, table.concat(new, '\n'))
        t.eq(applied({ one }, lines), (in_buffer(lines, one)))
      end
    end
  end)
end)

--- The number of matches of a text in another, including overlapping ones.
local function count(text, search)
  local found, at = 0, text:find(search, 1, true)
  while at do
    found, at = found + 1, text:find(search, at + 1, true)
  end
  return found
end

describe('edits by search', function()
  it('find text that occurs once, wherever it begins and ends', function()
    math.randomseed(7)
    local function random(max, alphabet)
      local chars = {}
      for i = 1, math.random(max) do
        local at = math.random(#alphabet)
        chars[i] = alphabet:sub(at, at)
      end
      return table.concat(chars)
    end
    for _ = 1, 4000 do
      local whole, search = random(14, 'ab\n\n'), random(5, 'ab\n\n')
      local lines = vim.split(whole, '\n', { plain = true })
      local edits, err = search_replace.edits(lines, { { old_text = search, new_text = 'X\n' } }, { brief = true })
      local expected = count(whole .. '\n', search)
      t.eq({ whole, search, expected == 1 }, { whole, search, edits ~= nil })
      if edits then
        local list = t.ok(text_edits.ordered(edits, #lines, function(row) return lines[row + 1] end))
        local at, last = (whole .. '\n'):find(search, 1, true)
        local after = (whole .. '\n'):sub(1, at - 1) .. 'X\n' .. (whole .. '\n'):sub(last + 1)
        local result = table.concat(text_edits.applied(lines, list), '\n')
        t.eq({ whole, search, (after:gsub('\n$', '')) }, { whole, search, result })
      else
        local times = expected > 10 and 'more than 10' or tostring(expected)
        t.matches(expected == 0 and 'not found' or 'occurs ' .. times .. ' times', err.message)
      end
    end
  end)

  it('find text across the pieces of a long line', function()
    local line = ('x'):rep(300000) .. 'needle' .. ('y'):rep(300000)
    for shift = 0, 6 do
      local lines = { ('z'):rep(256 * 1024 - 300000 % 7 + shift) .. line }
      local at = lines[1]:find('needle', 1, true) - 1
      local edits = t.ok(search_replace.edits(lines, { { old_text = 'needle', new_text = '' } }))
      t.eq({ at, at + 6 }, { edits[1].start_col, edits[1].end_col })
    end
    local lines = { ('a'):rep(256 * 1024 - 3) .. 'bcdefg' .. ('a'):rep(1000) }
    t.ok(search_replace.edits(lines, { { old_text = 'bcdefg', new_text = '' } }))
  end)

  it('take linear time', function()
    local lines = vim.fn['repeat']({ '    return same_line(again)' }, 200000)
    lines[#lines] = 'last'
    local search = table.concat(lines, '\n', 1, 100000) .. '\nnot there'
    t.eq(nil, (t.fast(search_replace.edits, lines, { { old_text = search, new_text = '' } }, { brief = true })))
  end)
end)

it('a page far after the end is empty', function()
  for _, offset in ipairs({ 2 ^ 53 - 1, 2 ^ 53, 1e300 }) do
    local items, about = page({ 'a', 'b' }, { offset = offset, limit = 200 })
    t.eq({ {}, { total = 2 } }, { items, about })
  end
end)

it('the beginning of a text has as many characters, whatever they are', function()
  t.eq({ 'abc', 'ab…' }, { position.cut('abc', 3), (position.cut('abc', 2)) })
  t.eq({ 'äö…', 'äöü' }, { position.cut('äöü', 2), (position.cut('äöü', 3)) })
  t.eq({ 'a\0b…', 'a\0b', '' }, { position.cut('a\0bc', 3), (position.cut('a\0b', 3)), (position.cut('', 0)) })
end)
