--- Prompt: search the code.

local path_completion = require('mcp-tools.editor.file.completion')
local access = require('mcp-tools.files.access')
local on_disk = require('mcp-tools.editor.search.on_disk')
local excerpt = require('mcp-tools.editor.result.excerpt')
local utf8 = require('mcp-tools.util.utf8')

--- Lines that are shown; where there are more, another word finds better.
local MAX = 100
local MAX_QUERY = 1000

return {
  name = 'search_code',
  title = 'Search the code',
  description = 'Searches the files of the project for a text and explains where it is used and what for.',
  args = {
    { name = 'query', description = 'The text to look for, as it is', required = true },
    { name = 'path', description = 'Only in this file or folder', complete = path_completion.project },
  },
  run = function(ctx, args)
    if #args.query > MAX_QUERY or args.query:find('[%z\n]') then
      return ctx:fail('validation_error', ('query: must be one line of at most %d bytes'):format(MAX_QUERY))
    end
    local place, why = access.path(args.path or '.', ctx.root)
    if not place then
      return ctx:fail('not_found', ('%s is %s'):format(args.path or 'the project', why))
    end
    local hits, fault, more = on_disk.find(ctx, args.query, place, MAX)
    if not hits then
      return ctx:fail('tool_error', 'the search failed: ' .. fault)
    end
    if #hits == 0 then
      return ('I looked for "%s" in %s and found nothing. What else could it be called here? Look for that.'):format(
        args.query,
        args.path or 'the project'
      )
    end
    local lines = {}
    for i, hit in ipairs(hits) do
      lines[i] = ('%s:%d: %s'):format(hit.path, hit.line, hit.text)
    end
    local text = 'I looked for "%s" in %s. Tell me where it is defined, where it is used and what for; read the files'
      .. ' where a line alone does not tell.%s\n\n%s'
    text = text:format(
      args.query,
      args.path or 'the project',
      more and (' There is more than the first %d lines.'):format(#hits) or '',
      excerpt.fenced(table.concat(lines, '\n'))
    )
    return (utf8.repair(text))
  end,
}
