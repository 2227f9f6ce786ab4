--- Lists the files of the project.

local access = require('mcp-tools.privacy.access')
local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')
local result = require('mcp-tools.editor.result')
local search_files = require('mcp-tools.editor.search.files')
local time_slice = require('mcp-tools.util.time_slice')

--- Maximum number of directories in the result, if not all files are listed.
local MAX_DIRECTORIES = 50

--- Returns the directories with the most files.
---@param counts table<string, integer>
---@return table<string, integer>?
local function most(counts)
  local names = vim.tbl_keys(counts)
  table.sort(names, function(a, b)
    return counts[a] == counts[b] and a < b or counts[a] > counts[b]
  end)
  local out = vim.empty_dict()
  for i = 1, math.min(#names, MAX_DIRECTORIES) do
    out[names[i]] = counts[names[i]]
  end
  return out
end

return {
  name = 'file_list',
  title = 'List files',
  description = 'Lists the files of the project or a directory, without ignored ones.',
  search_hint = 'ls, find, glob, tree, which files are there',
  args = {
    path = { type = 'string', description = 'Directory' },
    globs = arguments.GLOBS,
    limit = arguments.limit('names', 200, 5000),
    offset = { type = 'integer', description = 'Names to skip', default = 0, minimum = 0 },
    ignored = { type = 'boolean', description = 'Include ignored files', default = false, hidden = true },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  timeout = 60000,
  run = function(ctx, args)
    local place = errors.unwrap(search_files.place(ctx, args.path))
    local directory = place.path
    if not place.is_directory then
      local text = 'path: %s is a file; file_read reads it'
      return nil, errors.new('not_found', text:format(access.shown(directory, ctx.root)))
    end
    local names, source, cut = search_files.names(ctx, directory, { ignored = args.ignored })
    local matches = errors.unwrap(search_files.matcher(args.globs or {}))
    local pause = time_slice.of(ctx)
    local prefix = directory == paths.real_root(ctx.root) and '' or access.shown(directory, ctx.root) .. '/'
    local matching, counts = {}, {}
    for _, name in ipairs(names) do
      if matches(name) then
        table.insert(matching, prefix .. name)
        local top = prefix .. (name:match('^[^/]*/') or './')
        counts[top] = (counts[top] or 0) + 1
      end
      pause()
    end
    local files, answer = result.page(matching, args)
    local folders = #matching > args.limit and most(counts) or nil
    local about = { files = files, folders = folders, source = source, truncated = cut or nil }
    return result.utf8(vim.tbl_extend('error', answer, about))
  end,
  render = function(value, args)
    local head = result.with_range(result.count(value.total, 'file'), args, value.total)
    if value.truncated then
      head = head .. '; there are more, which were not listed'
    end
    local rows = { head }
    for directory, count in vim.spairs(value.folders or {}) do
      table.insert(rows, ('%s: %s'):format(directory, result.count(count, 'file')))
    end
    return table.concat(vim.list_extend(rows, value.files), '\n')
  end,
}
