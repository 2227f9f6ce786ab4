--- Patches: unified diffs and the `apply_patch` format of Codex, parsed, and their hunks located in a text.

local errors = require('mcp-tools.errors')
local strings = require('mcp-tools.util.strings')
local substring = require('mcp-tools.util.substring')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of hunks.
local MAX_HUNKS = 500
--- Maximum number of bytes of a patch, and of the header of a hunk.
local MAX_BYTES, MAX_HEADER = 500000, 100
--- Maximum number of lines that are compared for one hunk.
local MAX_COMPARED = 2000000
--- Number of lines between two pauses.
local AT_ONCE = 5000
--- Maximum number of anchors of a hunk.
local MAX_ANCHORS = 10
--- Maximum number of bytes of a hunk in an error.
local MAX_QUOTED = 600
--- Number of lines times hunks that takes a few milliseconds.
local QUICK = 1000000

---@class mcp-tools.PatchHunk
---@field line integer? 1-based line of the old text where it begins
---@field after string[]? anchors, such as in `@@ class Parser`: lines that occur before it, in this order
---@field at_end boolean? it is at the end of the file
---@field rows string[] each with its first character: ' ', '-' or '+'

---@class mcp-tools.PatchFile
---@field path string
---@field new boolean whether it creates the file
---@field hunks mcp-tools.PatchHunk[]

---@param line integer
---@param text string
---@return mcp-tools.Error
local function fault(line, text)
  return errors.new('validation_error', ('patch: line %d: %s'):format(line, text))
end

--- Returns the path of a header of a unified diff.
---@param text string after `--- ` or `+++ `
---@return string? path nil: /dev/null
local function header_path(text)
  local path = strings.trim_end(text:match('^[^\t]*'))
  path = path:match('^"(.*)"$') or path
  return path ~= '/dev/null' and path or nil
end

local DELETES = 'files are not deleted by patches; delete the file with a command'
local RENAMES = 'files are not renamed by patches; use file_move'

---@param files mcp-tools.PatchFile[]
---@param fields table
---@return mcp-tools.PatchHunk
local function add_hunk(files, fields)
  local hunk = vim.tbl_extend('error', { rows = {} }, fields)
  table.insert(files[#files].hunks, hunk)
  return hunk
end

---@param lines string[]
---@return mcp-tools.PatchFile[]?
---@return mcp-tools.Error? err
local function parse_unified(lines)
  local files, hunk, old = {}, nil, nil
  local left_old, left_new = 0, 0 -- rows left in the hunk
  for number, row in ipairs(lines) do
    local start, old_count, new_count = row:sub(1, MAX_HEADER):match('^@@ %-(%d+),?(%d*) %+%d+,?(%d*) @@')
    if left_old > 0 or left_new > 0 then
      row = row == '' and ' ' or row
      local first = row:sub(1, 1)
      if first == ' ' or first == '-' or first == '+' then
        left_old = left_old - (first == '+' and 0 or 1)
        left_new = left_new - (first == '-' and 0 or 1)
        table.insert(hunk.rows, row)
      elseif first ~= '\\' then
        return nil, fault(number, "a row of a hunk begins with ' ', '-' or '+'; the counts in its header may be wrong")
      end
    elseif row:find('^%-%-%- ') then
      old = header_path(row:sub(5)) or ''
    elseif row:find('^%+%+%+ ') and old then
      local new = header_path(row:sub(5))
      if not new then
        return nil, fault(number, DELETES)
      end
      local old_name, new_name = old:match('^a/(.+)$'), new:match('^b/(.+)$')
      if new_name and (old_name or old == '') then -- the prefixes of git
        old, new = old_name or old, new_name
      end
      if old ~= '' and old ~= new then
        return nil, fault(number, RENAMES)
      end
      table.insert(files, { path = new, new = old == '', hunks = {} })
    elseif start and #files > 0 then
      left_old, left_new = tonumber(old_count) or 1, tonumber(new_count) or 1
      hunk = add_hunk(files, { line = tonumber(start) + (left_old == 0 and 1 or 0) })
    elseif row:find('^@@') or row:find('^[ +-]') and trim(row) ~= '' then
      return nil, fault(number, 'it is not part of a hunk; the header of its hunk is missing or has wrong counts')
    elseif row:find('^rename ') or row:find('^copy ') then
      return nil, fault(number, RENAMES)
    elseif row:find('^deleted file mode') then
      return nil, fault(number, DELETES)
    elseif row:find('^Binary files ') or row:find('^GIT binary patch') then
      return nil, fault(number, 'binary files cannot be patched')
    elseif row:find('^diff ') then
      old = nil
    end
  end
  for _, file in ipairs(files) do
    if #file.hunks == 0 then
      return nil, errors.new('validation_error', ('patch: it has no hunks for %s'):format(file.path))
    end
  end
  if left_old > 0 or left_new > 0 then
    return nil, errors.new('validation_error', 'patch: the last hunk has fewer rows than its header says')
  end
  return files
end

---@param lines string[]
---@return mcp-tools.PatchFile[]?
---@return mcp-tools.Error? err
local function parse_codex(lines)
  local files, hunk = {}, nil ---@type mcp-tools.PatchFile[], mcp-tools.PatchHunk?
  for number, row in ipairs(lines) do
    local verb, path = row:match('^%*%*%* (%a+) File: (.+)$')
    if verb == 'Add' or verb == 'Update' then
      table.insert(files, { path = path, new = verb == 'Add', hunks = {} })
      hunk = verb == 'Add' and add_hunk(files, {}) or nil
    elseif verb then
      return nil, fault(number, DELETES)
    elseif row:find('^%*%*%* Move to: ') then
      return nil, fault(number, RENAMES)
    elseif row == '*** End of File' and hunk then
      hunk.at_end = true
    elseif row:sub(1, 2) == '@@' and #files > 0 then
      local anchor = trim(row:sub(3))
      if not hunk or #hunk.rows > 0 then
        hunk = add_hunk(files, { after = {} })
      elseif #(hunk.after or {}) == MAX_ANCHORS then
        return nil, fault(number, ('more than %d lines with @@ before a hunk'):format(MAX_ANCHORS))
      end
      hunk.after = hunk.after or {}
      table.insert(hunk.after, anchor ~= '' and anchor or nil)
    elseif row:find('^%*%*%*') then
      if not row:find('^%*%*%* Begin Patch') and not row:find('^%*%*%* End Patch') and row ~= '*** End of File' then
        return nil, fault(number, 'it must be Add File, Update File or End of File')
      end
    elseif #files > 0 then -- the first hunk needs no `@@`
      row = row == '' and ' ' or row
      if not row:find('^[ +-]') then
        return nil, fault(number, "a row of a hunk begins with ' ', '-' or '+'")
      end
      hunk = hunk or row ~= ' ' and add_hunk(files, {}) or nil
      if hunk then
        table.insert(hunk.rows, row)
      end
    end
  end
  for _, file in ipairs(files) do
    for _, one in ipairs(file.hunks) do
      while one.rows[#one.rows] == ' ' do -- empty lines between hunks
        table.remove(one.rows)
      end
    end
  end
  return files
end

--- Parses a unified diff or `apply_patch` text.
---@param text string
---@return mcp-tools.PatchFile[]?
---@return mcp-tools.Error? err
function M.parse(text)
  if #text > MAX_BYTES then
    return nil, errors.new('too_large', ('patch: more than %d bytes; send it in parts'):format(MAX_BYTES))
  end
  local lines = vim.split((text:gsub('\r\n', '\n')), '\n', { plain = true })
  local is_codex = ('\n' .. text):find('\n%*%*%* %a+ File: ') ~= nil
  local files, err = (is_codex and parse_codex or parse_unified)(lines)
  if not files then
    return nil, err
  end
  local count = 0
  for _, file in ipairs(files) do
    count = count + #file.hunks
  end
  if count == 0 or count > MAX_HUNKS then
    local problem = count == 0 and 'neither a unified diff nor apply_patch text' or 'more than %d hunks'
    return nil, errors.new('validation_error', 'patch: ' .. problem:format(MAX_HUNKS))
  end
  return files
end

--- Returns the text of a file that a patch creates.
---@param file mcp-tools.PatchFile
---@return string
function M.new_text(file)
  local lines = {}
  for _, hunk in ipairs(file.hunks) do
    for _, row in ipairs(hunk.rows) do
      table.insert(lines, row:sub(2))
    end
  end
  return #lines > 0 and table.concat(lines, '\n') .. '\n' or ''
end

--- The text of a file, indexed to find the anchors of hunks.
---@class mcp-tools.PatchText
---@field text string
---@field starts integer[] first byte of each line
---@field rows_of table<string, integer[]> text without surrounding white space → its lines

---@param lines string[]
---@param pause? fun()
---@return mcp-tools.PatchText
local function indexed(lines, pause)
  local starts, rows_of, at = {}, {}, 2
  for i, line in ipairs(lines) do
    starts[i], at = at, at + #line + 1
    local text = trim(line)
    rows_of[text] = rows_of[text] or {}
    table.insert(rows_of[text], i)
    if pause and i % AT_ONCE == 0 then
      pause()
    end
  end
  return { text = '\n' .. table.concat(lines, '\n') .. '\n', starts = starts, rows_of = rows_of }
end

--- Finds the occurrence of lines that is nearest to `goal`, at `from` or later.
---@param lines string[]
---@param wanted string[] at least one
---@param from integer 1-based line
---@param goal integer 1-based line
---@return integer? row
local function nearest(lines, wanted, from, goal)
  local last, compared = #lines - #wanted + 1, 0
  local function fits(row)
    for i, line in ipairs(wanted) do
      compared = compared + 1
      if lines[row + i - 1] ~= line then
        return false
      end
    end
    return true
  end
  goal = math.max(from, math.min(goal, last))
  for distance = 0, math.max(goal - from, last - goal) do
    local before, after = goal - distance, goal + distance
    if after <= last and fits(after) then
      return after
    elseif distance > 0 and before >= from and fits(before) then
      return before
    elseif compared > MAX_COMPARED then
      return nil
    end
  end
end

--- Returns the index of the first item that is at least a value.
---@param list integer[] ascending
---@param value integer
---@return integer
local function at_least(list, value)
  local low, high = 1, #list + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if list[middle] < value then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

--- Returns the line after the last anchor of a hunk. Each anchor is the next line that equals it or, if there is none,
--- the next one that contains it; surrounding white space is ignored.
---@param whole mcp-tools.PatchText
---@param hunk mcp-tools.PatchHunk
---@param from integer 1-based
---@return integer? row
---@return string? missing anchor
local function after_anchors(whole, hunk, from)
  for _, anchor in ipairs(hunk.after or {}) do
    local wanted = trim(anchor)
    local exact = whole.rows_of[wanted] or {}
    local row = exact[at_least(exact, from)]
    if not row and whole.starts[from] and wanted ~= '' then
      local byte = substring.finder(wanted)(whole.text, whole.starts[from])
      row = byte and at_least(whole.starts, byte + 1) - 1 or nil
    end
    if not row then
      return nil, anchor
    end
    from = row + 1
  end
  return from
end

--- Returns where a hunk begins.
---@param lines string[]
---@param lazy { index: (fun(): mcp-tools.PatchText), trimmed: fun(): string[] }
---@param hunk mcp-tools.PatchHunk
---@param wanted string[] its old lines
---@param from integer 1-based line after the previous hunk
---@param shift integer how far the previous hunk was from its line
---@return integer? row
---@return string? problem
local function locate(lines, lazy, hunk, wanted, from, shift)
  local missing
  if hunk.after and #hunk.after > 0 then
    from, missing = after_anchors(lazy.index(), hunk, from)
  end
  if not from then
    return nil, ('the line %q was not found'):format(utf8.cut(missing --[[@as string]], MAX_QUOTED))
  elseif #wanted == 0 then
    local has_anchor = hunk.after and #hunk.after > 0
    return hunk.line and math.max(math.min(hunk.line + shift, #lines + 1), from) or has_anchor and from or #lines + 1
  end
  local goal = hunk.line and hunk.line + shift or hunk.at_end and #lines - #wanted + 1 or from
  local found = nearest(lines, wanted, from, goal)
    or nearest(lazy.trimmed(), vim.tbl_map(strings.trim_end, wanted), from, goal)
  if found then
    return found
  end
  local where = from > 1 and (' after line %d'):format(from - 1) or ''
  return nil, ('these lines were not found%s:\n%s'):format(where, utf8.cut(table.concat(wanted, '\n'), MAX_QUOTED))
end

--- Returns whether locating the hunks takes only milliseconds, so that no pause is needed.
---@param lines string[]
---@param hunks mcp-tools.PatchHunk[]
---@return boolean
function M.is_quick(lines, hunks)
  return #lines * (#hunks + 1) <= QUICK
end

--- Returns the edits of the hunks of one file. Context lines keep the text of the file.
---@param lines string[]
---@param hunks mcp-tools.PatchHunk[]
---@param pause? fun()
---@return mcp-tools.Edit[]?
---@return mcp-tools.Error? err
function M.edits(lines, hunks, pause)
  local edits, from, shift = {}, 1, 0
  local index, trimmed
  local lazy = {
    index = function()
      index = index or indexed(lines, pause)
      return index
    end,
    trimmed = function()
      trimmed = trimmed or vim.tbl_map(strings.trim_end, lines)
      return trimmed
    end,
  }
  for i, hunk in ipairs(hunks) do
    local wanted = {}
    for _, row in ipairs(hunk.rows) do
      if row:sub(1, 1) ~= '+' then
        table.insert(wanted, row:sub(2))
      end
    end
    local at, problem = locate(lines, lazy, hunk, wanted, from, shift)
    if not at then
      return nil, errors.new('not_found', ('patch: hunk %d: %s'):format(i, problem))
    end
    local new, row = {}, at
    for _, each in ipairs(hunk.rows) do
      local first = each:sub(1, 1)
      if first ~= '-' then
        table.insert(new, first == ' ' and lines[row] or each:sub(2))
      end
      row = row + (first == '+' and 0 or 1)
    end
    table.insert(edits, {
      start_line = at - 1,
      start_col = 0,
      end_line = at - 1 + #wanted,
      end_col = 0,
      text = #new > 0 and table.concat(new, '\n') .. '\n' or '',
    })
    from, shift = at + #wanted, hunk.line and at - hunk.line or shift
    if pause then
      pause()
    end
  end
  if #lines == 1 and lines[1] == '' then -- replace the one line of an empty buffer
    local texts = vim.tbl_map(function(edit)
      return edit.text
    end, edits)
    edits = { { start_line = 0, start_col = 0, end_line = 1, end_col = 0, text = table.concat(texts) } }
  end
  return edits
end

return M
