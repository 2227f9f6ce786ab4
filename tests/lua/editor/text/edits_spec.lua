-- every Neovim
local text_edits = require('mcp-tools.editor.text.edits')
local t = require('helpers')

local LINES = { 'one', 'two', 'three', 'ünf', '' }

local function edit(start_line, start_col, end_line, end_col, text)
  return { start_line = start_line, start_col = start_col, end_line = end_line, end_col = end_col, text = text }
end

local function ordered(edits, lines)
  lines = lines or LINES
  return text_edits.ordered(edits, #lines, function(row)
    return lines[row + 1]
  end)
end

local function applied(edits, lines)
  return text_edits.applied(lines or LINES, t.ok(ordered(edits, lines)))
end

describe('edits of text', function()
  it('are made wherever they stand in the list', function()
    t.eq({ 'ONE', 'two', 'th', '!ünf', '' }, applied({ edit(2, 2, 3, 0, '\n!'), edit(0, 0, 0, 3, 'ONE') }))
  end)

  it('keep their order at one place', function()
    t.eq({ 'abone', 'two', 'three', 'ünf', '' }, applied({ edit(0, 0, 0, 0, 'a'), edit(0, 0, 0, 0, 'b') }))
  end)

  it('may end on the line behind the last one', function()
    local lines = { 'a', 'b' }
    t.eq({ 'a', 'b', 'c' }, applied({ edit(2, 0, 2, 0, 'c\n') }, lines))
    t.eq({ 'a', 'b', 'c' }, applied({ edit(2, 0, 2, 0, 'c') }, lines))
    t.eq({ 'a' }, applied({ edit(1, 0, 2, 0, '') }, lines))
    t.eq({ 'a', 'c' }, applied({ edit(1, 0, 2, 0, 'c\n') }, lines))
    t.eq({ '' }, applied({ edit(0, 0, 2, 0, '') }, lines))
    t.eq({ 'x', 'y' }, applied({ edit(0, 0, 2, 0, 'x\ny\n') }, lines))
  end)

  it('beside each other at the end of the text do not overlap', function()
    local lines = { 'a', 'b', 'c' }
    local delete_last = edit(2, 0, 3, 0, '')
    t.eq({ 'a', 'B' }, applied({ edit(1, 0, 2, 0, 'B\n'), delete_last }, lines))
    t.eq({ 'a', 'B' }, applied({ delete_last, edit(1, 0, 1, 1, 'B') }, lines))
    t.eq({ 'a' }, applied({ edit(1, 0, 2, 0, ''), delete_last }, lines))
    t.eq({ 'a', 'b', 'new' }, applied({ edit(2, 0, 2, 0, 'new\n'), delete_last }, lines))
    t.eq({ 'a', 'b', 'new' }, applied({ delete_last, edit(2, 0, 2, 0, 'new\n') }, lines))
    t.eq({ 'a', 'b', 'end' }, applied({ delete_last, edit(3, 0, 3, 0, 'end\n') }, lines))
    t.eq(
      { 'a', 'b', 'C', 'd', 'e' },
      applied({
        edit(3, 0, 3, 0, 'd\n'),
        edit(2, 0, 3, 0, 'C\n'),
        edit(3, 0, 3, 0, 'e\n'),
      }, lines)
    )
    t.eq({ '' }, applied({ edit(0, 0, 1, 0, ''), edit(1, 0, 2, 0, ''), delete_last }, lines))
    t.eq({ 'a', 'b', 'c' }, applied({ edit(3, 0, 3, 0, '') }, lines))
  end)

  it('are refused where they overlap, end before they start, or are outside', function()
    for _, case in ipairs({
      { { edit(0, 0, 0, 2, 'x'), edit(0, 1, 0, 3, 'y') }, 'edits%[1%]: it overlaps' },
      { { edit(1, 0, 0, 0, 'x') }, 'end is before its start' },
      { { edit(0, 2, 0, 1, 'x') }, 'end is before its start' },
      { { edit(0, 0, 0, 4, 'x') }, '0:0 to 0:4 is not in the text %(5 lines%)' },
      { { edit(5, 1, 5, 1, 'x') }, 'not in the text' },
      { { edit(0, 0, 0, 0, 'x'), edit(-1, 0, 0, 0, 'x') }, 'edits%[1%]: ' },
    }) do
      local list, err = ordered(case[1])
      t.eq(nil, list)
      t.eq('validation_error', err.code)
      t.matches(case[2], err.message)
    end
  end)
end)

describe('parts of an edit', function()
  --- What the parts of one edit make of the text, applied as one by one in a buffer.
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

  it('leave alone what is the same, in whole characters', function()
    local got, parts = in_buffer({ 'aaa é bbb' }, edit(0, 0, 0, 10, 'aaa è bbb'))
    t.eq({ 'aaa è bbb' }, got)
    t.eq({ { row = 0, col = 4, end_row = 0, end_col = 6, lines = { 'è' } } }, parts)
    t.eq({}, select(2, in_buffer({ 'a', 'b' }, edit(0, 0, 1, 1, 'a\nb'))))
  end)

  it('are few, however many places of a large text differ', function()
    local old, new = {}, {}
    for i = 1, 30000 do
      old[i] = 'line ' .. i
      new[i] = i % 3 == 0 and 'changed ' .. i or old[i]
    end
    local got, parts = in_buffer(old, edit(0, 0, #old, 0, table.concat(new, '\n') .. '\n'))
    t.eq(new, got)
    t.ok(#parts > 100 and #parts < 5000, #parts)
  end)

  it('make what the edit makes', function()
    math.randomseed(7)
    local words = { 'a', 'b', 'c', '', 'é', 'ab', 'ac' }
    local function some_lines(min)
      local lines = {}
      for i = 1, math.random(min, 7) do
        lines[i] = words[math.random(#words)]
      end
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
