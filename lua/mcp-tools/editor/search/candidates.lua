--- Files that may match a query: by a program that looks at the disk, else all.

local engines = require('mcp-tools.editor.search.engine')
local files = require('mcp-tools.editor.search.files')
local sort = require('mcp-tools.util.sort')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- The longest line of a plain query: programs look at lines.
---@param text string
---@return string
local function longest_line(text)
  local best = ''
  for line in vim.gsplit(text, '\n', { plain = true }) do
    best = #line > #best and line or best
  end
  return best
end

--- Files that may match. Which of them may be read was not checked.
---@param ctx mcp-tools.Ctx in a coroutine
---@param place mcp-tools.search.Place
---@param query mcp-tools.search.Query
---@param opts { globs: string[]?, engine: mcp-tools.search.Engine? } `engine` of a regular expression
---@return string[]? absolute, sorted, some twice
---@return mcp-tools.Error|boolean? err_or_cut
function M.find(ctx, place, query, opts)
  if not place.folder then
    return { place.path }
  end
  local takes, err = files.matcher(opts.globs)
  if not takes then
    return nil, err
  end
  local found, cut
  if opts.engine then
    found, cut = opts.engine:files(ctx, place)
  else
    local line = longest_line(query.query)
    local flags = query.ignore_case and { '-i' } or {}
    if line ~= '' then
      found, cut = engines.files(ctx, place, { pattern = line, is_regex = false, flags = flags })
    end
  end
  if not found then
    return files.list(ctx, place, opts.globs)
  end
  local pause, kept = time_slice.of(ctx), {}
  for _, path in ipairs(found) do
    if vim.startswith(path, place.path .. '/') and takes(path:sub(#place.path + 2)) then
      table.insert(kept, path)
    end
    pause()
  end
  kept = sort(kept, function(a, b)
    return a < b
  end, pause)
  return kept, cut or #found >= files.MAX_FILES
end

return M
