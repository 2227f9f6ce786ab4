--- Searches the text of the project, including unsaved changes.

local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local matches_text = require('mcp-tools.editor.search.matches_text')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local result = require('mcp-tools.editor.result')
local search = require('mcp-tools.editor.search')
local time_slice = require('mcp-tools.util.time_slice')

--- Characters with a special meaning in a regular expression.
local LIKE_REGEX = '[\\|*+?%[%]^$]'

---@class mcp-tools.SearchRow
---@field line integer from 1
---@field column integer? of the match, in characters; nil: a line of context
---@field text string

--- Returns the rows of some matches of a file, with the lines around them.
---@param file mcp-tools.search.File
---@param from integer index of the first match
---@param to integer index of the last match
---@param context integer
---@param pause fun()
---@return mcp-tools.SearchRow[]
local function rows_of(file, from, to, context, pause)
  local row_of, last, is_match, rows = matches_text.rows(file.text), -1, {}, {}
  for i = from, to do
    is_match[file.matches[i].row] = is_match[file.matches[i].row] or file.matches[i]
  end
  for i = from, to do
    local row = file.matches[i].row
    for each = math.max(row - context, last + 1, 0), row + context do
      local match, line = is_match[each], row_of(each)
      if line then
        table.insert(rows, {
          line = each + 1,
          column = match and position.characters(line:sub(1, match.col)) + 1 or nil,
          text = matches_text.shown(line, match and match.col),
        })
      end
      pause()
      last = math.max(last, each)
    end
  end
  return rows
end

--- Returns one page of matches by file.
---@param found mcp-tools.search.Found
---@param args { limit: integer, offset: integer, context: integer }
---@param pause fun()
---@return { path: string, unsaved: boolean?, total: integer, rows: mcp-tools.SearchRow[] }[]
local function files_of(found, args, pause)
  local files, passed, left = {}, 0, args.limit
  for i, file in ipairs(found.files) do
    local from = math.max(1, args.offset - passed + 1)
    local to = math.min(#file.matches, from + left - 1)
    local is_shown = from <= to and left > 0
    files[i] = {
      path = file.shown,
      unsaved = file.unsaved or nil,
      total = #file.matches,
      rows = is_shown and rows_of(file, from, to, args.context, pause) or {},
    }
    left = is_shown and left - (to - from + 1) or left
    passed = passed + #file.matches
  end
  return files
end

--- Returns the rows of all files as `path:line: text`; lines of context as `path-line- text`.
---@param files { path: string, rows: mcp-tools.SearchRow[] }[]
---@param with_context boolean
---@return string[]
local function lines_of(files, with_context)
  local out = {}
  for _, file in ipairs(files) do
    for _, row in ipairs(file.rows) do
      if row.column then
        table.insert(out, ('%s:%d: %s'):format(file.path, row.line, row.text))
      elseif with_context then
        table.insert(out, ('%s-%d- %s'):format(file.path, row.line, row.text))
      end
    end
  end
  return out
end

---@param value table
---@param args { limit: integer, offset: integer, context: integer }
---@return string
local function render(value, args)
  local count = value.cut and ('%d+ matches'):format(value.total) or result.count(value.total, 'match', 'matches')
  local head = ('%s in %s'):format(count, result.count(#value.files, 'file'))
  local notes = value.note and { value.note } or {}
  if value.skipped then
    table.insert(notes, ('%d files are too large to be searched'):format(value.skipped))
  end
  local unsaved = vim.iter(value.files):filter(function(file)
    return file.unsaved and #file.rows > 0
  end)
  local paths = unsaved
    :map(function(file)
      return file.path
    end)
    :totable()
  if #paths > 0 then
    table.insert(notes, 'unsaved: ' .. table.concat(paths, ', '))
  end
  local rest = #notes > 0 and '; ' .. table.concat(notes, '; ') or ''
  local function variant(with_context, without)
    return {
      without = without,
      text = function()
        local first = result.with_range(head, args, value.total) .. rest
        return vim.list_extend({ first }, lines_of(value.files, with_context))
      end,
    }
  end
  local variants = { variant(true), args.context > 0 and variant(false, 'context') or nil }
  return matches_text.fitting(head .. rest, variants, value.files, function(file)
    return ('%s: %d'):format(file.path, file.total)
  end, 'lines')
end

return {
  name = 'file_search',
  title = 'Search in files',
  description = 'Finds text or a regular expression in the project, unsaved changes included. Returns'
    .. ' `path:line: text`. For the users of a function or class use symbol_references.',
  search_hint = 'grep, find text, ripgrep, occurrences of a string',
  args = {
    query = { type = 'string', description = 'Text to find', required = true, minLength = 1 },
    regex = {
      type = 'boolean',
      description = 'The query is a regular expression in the syntax of ripgrep',
      default = false,
    },
    ignore_case = { type = 'boolean', description = 'Case-insensitive', default = false },
    path = { type = 'string', description = 'File or directory' },
    globs = arguments.GLOBS,
    context = { type = 'integer', description = 'Lines around each match', default = 0, minimum = 0, maximum = 20 },
    limit = arguments.limit('matches', 200, 5000),
    offset = { type = 'integer', description = 'Matches to skip', default = 0, minimum = 0 },
    word = { type = 'boolean', description = 'Whole words only', default = false, hidden = true },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, args)
    local found = errors.unwrap(search.find(ctx, args, args))
    local pause, note = time_slice.of(ctx), nil
    redact.refresh(pause)
    if found.total == 0 then
      -- A general note: naming the skipped files that contain the query would reveal their contents.
      note = 'sensitive files, links to files outside the project and files that git ignores are not searched'
      if not args.regex and args.query:find(LIKE_REGEX) then
        note = note .. '; the query is plain text: for a regular expression, set regex=true'
      end
    end
    return {
      total = found.total,
      cut = found.cut or nil,
      files = files_of(found, args, pause),
      skipped = found.skipped > 0 and found.skipped or nil,
      note = note,
    }
  end,
  render = render,
}
