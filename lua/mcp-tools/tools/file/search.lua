--- A search in the text of the project, unsaved changes included.

local matches_text = require('mcp-tools.editor.search.matches_text')
local redact = require('mcp-tools.privacy.redact')
local search = require('mcp-tools.editor.search')
local time_slice = require('mcp-tools.util.time_slice')

--- Signs that mean something in a regular expression.
local LIKE_REGEX = '[\\|*+?%[%]^$]'

return {
  name = 'file_search',
  title = 'Search in files',
  description = 'Finds text in the files of the project, including unsaved changes: the total, then per file'
    .. ' `line:column: text` (from 1, in characters), or counts per file. Leaves out ignored and sensitive files.',
  args = {
    query = { type = 'string', description = 'Text to find, plain unless regex', required = true, minLength = 1 },
    path = { type = 'string', description = 'File or folder to search; default: the project' },
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
    limit = { type = 'integer', description = 'At most so many matches', default = 200, minimum = 1, maximum = 5000 },
    offset = { type = 'integer', description = 'Matches to pass over', default = 0, minimum = 0 },
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
    local text = matches_text.of(found, args, pause)
    if found.total == 0 then
      -- In general: which of them hold the query is for nobody.
      text = text .. '; sensitive files, links that lead outside of the project and what git ignores are not searched'
    end
    if found.total == 0 and not args.regex and args.query:find(LIKE_REGEX) then
      text = text .. ' (query was taken as plain text; regex=true takes it as a regular expression)'
    end
    return text
  end,
}
