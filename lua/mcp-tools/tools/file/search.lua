--- Searches the text of the project, including unsaved changes.

local matches_text = require('mcp-tools.editor.search.matches_text')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local result = require('mcp-tools.editor.result')
local search = require('mcp-tools.editor.search')
local time_slice = require('mcp-tools.util.time_slice')

--- Characters with a special meaning in a regular expression.
local LIKE_REGEX = '[\\|*+?%[%]^$]'

---@param file mcp-tools.search.File
---@param from integer index of the first match
---@param to integer index of the last match
---@param context integer
---@param out string[]
---@param pause fun()
local function add(file, from, to, context, out, pause)
  local row_of, printed, is_match = matches_text.rows(file.text), -1, {}
  for i = from, to do
    is_match[file.matches[i].row] = is_match[file.matches[i].row] or file.matches[i]
  end
  table.insert(out, file.shown .. (file.unsaved and ' (unsaved)' or ''))
  for i = from, to do
    local row = file.matches[i].row
    if context > 0 and printed >= 0 and row - context > printed + 1 then
      table.insert(out, '  --')
    end
    for each = math.max(row - context, printed + 1, 0), row + context do
      local match, line = is_match[each], row_of(each)
      if line and match then
        local column = position.characters(line:sub(1, match.col)) + 1
        table.insert(out, ('  %d:%d: %s'):format(each + 1, column, matches_text.shown(line, match.col)))
      elseif line then
        table.insert(out, ('  %d- %s'):format(each + 1, matches_text.shown(line)))
      end
      pause()
      printed = math.max(printed, each)
    end
  end
end

--- Returns the text of one page of matches.
---@param found mcp-tools.search.Found
---@param opts { limit: integer, offset: integer }
---@param context integer
---@param pause fun()
---@return string[]
local function places(found, opts, context, pause)
  local out, passed, left = {}, 0, opts.limit
  for _, file in ipairs(found.files) do
    local from = math.max(1, opts.offset - passed + 1)
    local to = math.min(#file.matches, from + left - 1)
    if from <= to and left > 0 then
      add(file, from, to, context, out, pause)
      left = left - (to - from + 1)
    end
    passed = passed + #file.matches
  end
  return out
end

--- Returns the result of a search.
---@param found mcp-tools.search.Found
---@param opts { limit: integer, offset: integer, context: integer }
---@param pause fun() called between pieces of work
---@return string
local function text_of(found, opts, pause)
  local head = ('%d%s matches in %d files'):format(found.total, found.cut and '+' or '', #found.files)
  local skipped = found.skipped > 0 and ('; %d files are too large to be searched'):format(found.skipped) or ''
  local function with(context, without)
    return {
      without = without,
      text = function()
        local first = result.with_range(head, opts, found.total) .. skipped
        return vim.list_extend({ first }, places(found, opts, context, pause))
      end,
    }
  end
  local variants = { with(opts.context), opts.context > 0 and with(0, 'context') or nil }
  return matches_text.fitting(head .. skipped, variants, found.files, function(file)
    return ('%s: %d'):format(file.shown, #file.matches)
  end, 'lines')
end

return {
  name = 'file_search',
  title = 'Search in files',
  description = 'Finds text in the files of the project, including unsaved changes: the total, then per file'
    .. ' `line:column: text` (from 1, in characters), or counts per file. Leaves out ignored and sensitive files.',
  args = {
    query = { type = 'string', description = 'Text to find, plain unless regex', required = true, minLength = 1 },
    path = { type = 'string', description = 'File or directory; default: the project' },
    globs = {
      type = 'array',
      items = { type = 'string', maxLength = 500 },
      description = 'Only files such as `*.lua` or `src/**`; a leading ! excludes',
    },
    regex = {
      type = 'boolean',
      description = 'query is a regular expression (ripgrep syntax), matched line by line',
      default = false,
    },
    ignore_case = { type = 'boolean', description = 'Case-insensitive', default = false },
    word = { type = 'boolean', description = 'Whole words only', default = false },
    context = { type = 'integer', description = 'Lines around each match', default = 0, minimum = 0, maximum = 20 },
    limit = { type = 'integer', description = 'Maximum number of matches', default = 200, minimum = 1, maximum = 5000 },
    offset = { type = 'integer', description = 'Number of matches to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, args)
    local found, err = search.find(ctx, args, args)
    if not found then
      return nil, err
    end
    local pause = time_slice.of(ctx)
    redact.refresh(pause)
    local text = text_of(found, args, pause)
    if found.total == 0 then
      -- A general note: naming the skipped files that contain the query would reveal their contents.
      text = text .. '; sensitive files, links to files outside the project and files that git ignores are not searched'
    end
    if found.total == 0 and not args.regex and args.query:find(LIKE_REGEX) then
      text = text .. ' (the query is plain text; for a regular expression, set regex=true)'
    end
    return text
  end,
}
