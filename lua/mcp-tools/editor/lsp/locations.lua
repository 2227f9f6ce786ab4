--- Adds the text of the line to each location that servers return, unless clients must not read the file.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local contents = require('mcp-tools.editor.buffer.contents')
local matches_text = require('mcp-tools.editor.search.matches_text')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')

local M = {}

---@class mcp-tools.lsp.Item
---@field uri string
---@field range lsp.Range
---@field encoding mcp-tools.lsp.Encoding
---@field data any belongs to the caller

---@class mcp-tools.lsp.Found
---@field path string as shown
---@field file string? resolved path; nil if the URI is not a file
---@field line integer
---@field column integer
---@field end_line integer
---@field end_column integer
---@field text string? the line, trimmed
---@field raw string? the line
---@field data any

--- Merges results of servers (Location, Location[] or LocationLink[]) into one list. Removes duplicates and invalid
--- locations.
---@param answers { result: any, client: vim.lsp.Client }[]
---@return mcp-tools.lsp.Item[]
function M.items(answers)
  local list, seen = {}, {}
  for _, answer in ipairs(answers) do
    local result = answer.result
    for _, each in ipairs(vim.islist(result) and result or { result }) do
      each = type(each) == 'table' and each or {}
      local uri = each.uri or each.targetUri
      local range = each.range or each.targetSelectionRange or each.targetRange
      if type(uri) == 'string' and position.is_range(range) then
        local key = ('%s %d %d'):format(uri, range.start.line, range.start.character)
        if not seen[key] then
          seen[key] = true
          table.insert(list, { uri = uri, range = range, encoding = answer.client.offset_encoding })
        end
      end
    end
  end
  return list
end

--- Reads lines of files, from open buffers or from disk.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param wanted table<string, table<integer, true>> resolved path → rows from 0
---@param on_text? fun(path: string, text: string) called with the text of each file that is not open
---@return table<string, table<integer, string>> lines
local function lines_of(ctx, wanted, on_text)
  local lines, files = {}, {}
  local pause, of_path = time_slice.of(ctx), buffers.of_paths()
  for path, rows in pairs(wanted) do
    local bufnr = of_path(path)
    if bufnr then
      lines[path] = {}
      for row in pairs(rows) do
        lines[path][row] = vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
      end
    else
      table.insert(files, path)
    end
    pause()
  end
  for first = 1, #files, contents.AT_ONCE do
    local chunk = vim.list_slice(files, first, first + contents.AT_ONCE - 1)
    for path, file in pairs(contents.of(ctx, chunk, of_path)) do
      local row_of = matches_text.rows(file and file.text or '')
      lines[path] = {}
      for row in vim.spairs(wanted[path]) do
        lines[path][row] = row_of(row)
      end
      if on_text and file then
        on_text(path, file.text)
      end
    end
  end
  return lines
end

--- Returns locations with their lines, sorted by path and line.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param items mcp-tools.lsp.Item[]
---@param opts? { without_text: boolean?, on_text: fun(path: string, text: string)? } `on_text`: called with the text of
---  each file that is not open
---@return mcp-tools.lsp.Found[]
---@return { path: string, why: string }[]? withheld
function M.find(ctx, items, opts)
  opts = opts or {}
  local wanted, files, allowed, withheld = {}, {}, {}, {}
  local pause, refusal = time_slice.of(ctx), target.path_refusals(ctx)
  for _, item in ipairs(items) do
    local file = files[item.uri]
    if file == nil then
      file = item.uri:find('^file:') and paths.resolve(vim.uri_to_fname(item.uri)) or false
      files[item.uri] = file
      if file and allowed[file] == nil then
        local err, why = refusal(file)
        allowed[file] = err == nil
        if err then
          table.insert(withheld, { path = access.shown(file, ctx.root), why = why })
        end
      end
    end
    if file and allowed[file] then
      wanted[file] = wanted[file] or {}
      wanted[file][item.range.start.line] = true
      wanted[file][item.range['end'].line] = true
    end
    pause()
  end
  local lines = lines_of(ctx, wanted, opts.on_text)
  if not opts.without_text then
    redact.refresh(pause)
  end
  local found, known, texts = {}, position.known(), {} ---@type table, mcp-tools.position.Known, table<string, string>
  local function text_of(line)
    texts[line] = texts[line] or matches_text.shown(trim(line))
    return texts[line]
  end
  for i, item in ipairs(items) do
    local file, from, to = files[item.uri], item.range.start, item.range['end']
    local file_lines = file and lines[file] or {}
    local raw = file_lines[from.line]
    found[i] = {
      path = file and access.shown(file, ctx.root) or access.name(item.uri),
      file = file or nil,
      line = from.line + 1,
      column = position.to_client(raw, from.character, item.encoding, known),
      end_line = to.line + 1,
      end_column = position.to_client(file_lines[to.line], to.character, item.encoding, known),
      text = not opts.without_text and raw and text_of(raw) or nil,
      raw = raw,
      data = item.data,
    }
    pause()
  end
  table.sort(found, function(a, b)
    if a.path ~= b.path then
      return a.path < b.path
    elseif a.line ~= b.line then
      return a.line < b.line
    end
    return a.column < b.column
  end)
  return found, #withheld > 0 and withheld or nil
end

return M
