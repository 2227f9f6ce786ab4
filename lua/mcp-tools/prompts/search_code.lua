--- Prompt: search the code.

local path_completion = require('mcp-tools.privacy.completion')
local access = require('mcp-tools.privacy.access')
local excerpt = require('mcp-tools.editor.result.excerpt')
local matches_text = require('mcp-tools.editor.search.matches_text')
local redact = require('mcp-tools.privacy.redact')
local search = require('mcp-tools.editor.search')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of lines.
local MAX = 100
local MAX_QUERY = 1000

--- Returns the lines with a match, each once.
---@param found mcp-tools.search.Found
---@return string[] lines
---@return boolean more there are more than the maximum
local function lines_of(found)
  local lines = {}
  for _, file in ipairs(found.files) do
    local row_of, path, last = matches_text.rows(file.text), file.shown:gsub('%c', '?'), nil
    for _, match in ipairs(file.matches) do
      if match.row ~= last then
        if #lines == MAX then
          return lines, true
        end
        last = match.row
        local text = matches_text.shown(row_of(last), match.col)
        table.insert(lines, ('%s:%d: %s'):format(path, last + 1, text))
      end
    end
  end
  return lines, found.cut
end

return {
  name = 'search_code',
  title = 'Search the code',
  description = 'Searches the files of the project for a text and explains where and why it is used.',
  args = {
    { name = 'query', description = 'Literal text to search for', required = true },
    { name = 'path', description = 'File or directory (default: the project)', complete = path_completion.project },
  },
  run = function(ctx, args)
    if #args.query > MAX_QUERY or args.query:find('[%z\n]') then
      return ctx:fail('validation_error', ('query: must be one line of at most %d bytes'):format(MAX_QUERY))
    end
    local place, why = access.prompt_path(args.path, ctx.root)
    if not place then
      return ctx:fail('not_found', why)
    end
    local found, err = search.find(
      ctx,
      { query = args.query, ignore_case = not args.query:find('%u') },
      { path = place, max = 20 * MAX }
    )
    if not found then
      return nil, err
    elseif #found.files == 0 then
      return ('I searched for "%s" in %s and found nothing. What else could its name be here? Search for it.'):format(
        args.query,
        args.path or 'the project'
      )
    end
    redact.refresh(time_slice.of(ctx))
    local lines, more = lines_of(found)
    local text = 'I searched for "%s" in %s. Tell me where it is defined, and where and why it is used; read the files'
      .. ' if one line is not enough.%s\n\n%s'
    text = text:format(
      args.query,
      args.path or 'the project',
      more and (' Only the first %d lines are shown.'):format(#lines) or '',
      excerpt.fenced(table.concat(lines, '\n'))
    )
    return (utf8.repair(text))
  end,
}
