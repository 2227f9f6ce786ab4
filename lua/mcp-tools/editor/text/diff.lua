--- Differences between two texts: as line spans and as a unified diff. Long texts are compared in a thread if the
--- caller can wait.

local garbage = require('mcp-tools.util.garbage')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

-- Neovim 0.12 renamed `vim.diff` to `vim.text.diff`.
local diff = vim.text and vim.text.diff or vim.diff

--- Number of lines, of both texts, that the main thread compares without a noticeable pause.
local SHORT = 2000
--- Number of lines, of both texts, from which even joining them is left to a later turn of the event loop.
local VERY_LONG = 20000
--- Maximum number of lines of one text that the main thread compares when the caller cannot wait. Longer texts are
--- reported as one difference.
local MAX = 150000

--- One difference: `[2]` lines from the 1-based line `[1]` of the old text became `[4]` lines from line `[3]` of the
--- new one. If a count is 0, its line is the one that follows.
---@alias mcp-tools.LineSpan integer[]

--- Counts the equal lines at the beginning of two texts and, among the remaining ones, at the end.
---@param old string[]
---@param new string[]
---@return integer first
---@return integer last
function M.same_lines(old, new)
  local most, first, last = math.min(#old, #new), 0, 0
  while first < most and old[first + 1] == new[first + 1] do
    first = first + 1
  end
  while last < most - first and old[#old - last] == new[#new - last] do
    last = last + 1
  end
  return first, last
end

--- Number of bytes that are compared at once.
local BLOCK = 1024

--- Counts the equal bytes at the beginning of two strings.
---@param one string
---@param other string
---@param max integer at most the length of the shorter one
---@return integer
function M.same_start(one, other, max)
  local count = 0
  while count + BLOCK <= max and one:sub(count + 1, count + BLOCK) == other:sub(count + 1, count + BLOCK) do
    count = count + BLOCK
  end
  while count < max and one:byte(count + 1) == other:byte(count + 1) do
    count = count + 1
  end
  return count
end

--- Counts the equal bytes at the end of two strings.
---@param one string
---@param other string
---@param max integer at most the length of the shorter one
---@return integer
function M.same_end(one, other, max)
  local count = 0
  while
    count + BLOCK <= max
    and one:sub(#one - count - BLOCK + 1, #one - count) == other:sub(#other - count - BLOCK + 1, #other - count)
  do
    count = count + BLOCK
  end
  while count < max and one:byte(#one - count) == other:byte(#other - count) do
    count = count + 1
  end
  return count
end

--- Returns whether two texts are equal.
---@param one string[]
---@param other string[]
---@return boolean
function M.are_equal(one, other)
  return #one == #other and M.same_lines(one, other) == #one
end

---@class mcp-tools.DiffMiddle the part between the equal lines at both ends
---@field old string
---@field new string
---@field first integer lines before it
---@field old_count integer
---@field new_count integer

--- Returns the part of two texts that has to be compared.
---@param old string[]
---@param new string[]
---@return mcp-tools.DiffMiddle? nil: they are equal
local function middle_of(old, new)
  local first, last = M.same_lines(old, new)
  if first == #old and first == #new then
    return nil
  end
  -- One equal line on each side makes the result the same as for the whole texts.
  first, last = math.max(first - 1, 0), math.max(last - 1, 0)
  local function text_of(lines)
    return table.concat(lines, '\n', first + 1, #lines - last) .. (#lines - last > first and '\n' or '')
  end
  return {
    old = text_of(old),
    new = text_of(new),
    first = first,
    old_count = #old - last - first,
    new_count = #new - last - first,
  }
end

--- Converts differences of the middle part to lines of the whole texts.
---@param found integer[][] as returned by `vim.diff`; modified in place
---@param first integer
---@return mcp-tools.LineSpan[]
local function to_whole_text(found, first)
  for _, span in ipairs(found) do
    span[1] = first + span[1] + (span[2] == 0 and 1 or 0)
    span[3] = first + span[3] + (span[4] == 0 and 1 or 0)
  end
  return found
end

--- Returns the differences between two texts without waiting. For very long texts, everything between the first and
--- the last difference is one span.
---@param old string[]
---@param new string[]
---@return mcp-tools.LineSpan[]
function M.spans(old, new)
  if (#old == 0) ~= (#new == 0) then
    return { { 1, #old, 1, #new } }
  end
  local middle = middle_of(old, new)
  if not middle then
    return {}
  elseif math.max(middle.old_count, middle.new_count) > MAX then
    local first, last = M.same_lines(old, new)
    return { { first + 1, #old - last - first, first + 1, #new - last - first } }
  end
  return to_whole_text(diff(middle.old, middle.new, { result_type = 'indices' }) --[[@as integer[][] ]], middle.first)
end

--- Returns whether texts are so long that they should be compared in a thread.
---@param old_count integer lines
---@param new_count integer lines
---@return boolean
function M.is_long(old_count, new_count)
  return old_count + new_count > SHORT
end

--- Runs in a thread, so it cannot use upvalues.
local function compare(old, new)
  return vim.mpack.encode((vim.text and vim.text.diff or vim.diff)(old, new, { result_type = 'indices' }))
end

---@param old string[]
---@param new string[]
---@param cb fun(spans: mcp-tools.LineSpan[])
local function compare_middle(old, new, cb)
  local middle = garbage.without(middle_of, old, new)
  if not middle or not M.is_long(middle.old_count, middle.new_count) then
    return cb(M.spans(old, new))
  end
  local thread = vim.uv.new_work(
    compare,
    vim.schedule_wrap(function(packed)
      cb(packed and to_whole_text(garbage.without(vim.mpack.decode, packed), middle.first) or M.spans(old, new))
    end)
  )
  thread:queue(middle.old, middle.new)
end

--- Compares two texts, in a thread if they are long.
---@param old string[]
---@param new string[]
---@param cb fun(spans: mcp-tools.LineSpan[]) on the main loop; before this returns if the texts are short
function M.spans_async(old, new, cb)
  if #old + #new < VERY_LONG then
    return compare_middle(old, new, cb)
  end
  vim.defer_fn(function()
    compare_middle(old, new, cb)
  end, 1)
end

--- Formats a line range for the header of a hunk.
---@param first integer
---@param count integer
---@return string
local function range(first, count)
  if count == 1 then
    return tostring(first)
  end
  return ('%d,%d'):format(count == 0 and first - 1 or first, count)
end

---@class mcp-tools.UnifiedOpts
---@field old string? name of the old text, `a/…`; `/dev/null` for a new file
---@field new string? name of the new text, `b/…`
---@field context integer? number of lines around each change; default: 3

--- Formats differences as a unified diff. `vim.diff` itself takes seconds to format many lines.
---@param old string[]
---@param new string[]
---@param spans mcp-tools.LineSpan[]
---@param opts mcp-tools.UnifiedOpts
---@param max integer bytes
---@return string? text nil: it is too large
local function format(old, new, spans, opts, max)
  local out, size, context = {}, 0, opts.context or 3
  local function add(sign, lines, first, last)
    local row = first
    while row <= last and size <= max do
      out[#out + 1] = sign .. lines[row]
      row, size = row + 1, size + #lines[row] + 2
    end
  end
  add('--- ', { ((opts.old or 'a'):gsub('%c', '?')) }, 1, 1) -- a line break would look like another row
  add('+++ ', { ((opts.new or 'b'):gsub('%c', '?')) }, 1, 1)
  local i = 1
  while spans[i] and size <= max do
    local last = i
    while spans[last + 1] and spans[last + 1][1] - spans[last][1] - spans[last][2] <= 2 * context do
      last = last + 1
    end
    local before = math.min(context, spans[i][1] - 1)
    local row, new_row = spans[i][1] - before, spans[i][3] - before
    local after = math.min(context, #old - (spans[last][1] + spans[last][2] - 1))
    local old_count = spans[last][1] + spans[last][2] + after - row
    local new_count = spans[last][3] + spans[last][4] + after - new_row
    add('@@ ', { ('-%s +%s @@'):format(range(row, old_count), range(new_row, new_count)) }, 1, 1)
    for k = i, last do
      local span = spans[k]
      add(' ', old, row, span[1] - 1)
      add('-', old, span[1], span[1] + span[2] - 1)
      add('+', new, span[3], span[3] + span[4] - 1)
      row = span[1] + span[2]
    end
    add(' ', old, row, row + after - 1)
    i = last + 1
  end
  if #spans == 0 then
    return ''
  end
  return size <= max and table.concat(out, '\n') .. '\n' or nil
end

--- Returns a unified diff, '' if the texts are equal.
---@param old string[]
---@param new string[]
---@param opts? mcp-tools.UnifiedOpts
---@return string
function M.unified(old, new, opts)
  return format(old, new, M.spans(old, new), opts or {}, math.huge) --[[@as string]]
end

--- Compares two texts. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param old string[]
---@param new string[]
---@param opts mcp-tools.UnifiedOpts
---@param max integer maximum size of the diff in bytes
---@return { added: integer, removed: integer, diff: string? } result `diff`: no context if large; nil if too large
function M.await(ctx, old, new, opts, max)
  local spans = ctx:await(function(done)
    M.spans_async(old, new, done)
  end)
  local pause = time_slice.of(ctx)
  pause()
  local result = { added = 0, removed = 0 }
  for _, span in ipairs(spans) do
    result.removed, result.added = result.removed + span[2], result.added + span[4]
  end
  result.diff = format(old, new, spans, opts, max)
  if not result.diff then
    pause()
    result.diff = format(old, new, spans, vim.tbl_extend('force', opts, { context = 0 }), max)
  end
  result.diff = result.diff and (utf8.repair(result.diff))
  return result
end

return M
