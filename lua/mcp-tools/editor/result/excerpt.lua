--- Text for prompts: from buffers or files, as excerpts with line numbers or as embedded resources.

local buffers = require('mcp-tools.editor.buffer')
local content = require('mcp-tools.content')
local read_file = require('mcp-tools.privacy.read')
local mime = require('mcp-tools.files.mime')
local access = require('mcp-tools.privacy.access')
local strings = require('mcp-tools.util.strings')
local uri_template = require('mcp-tools.util.uri_template')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum size of a file in a prompt, in bytes.
local MAX_BYTES = 128 * 1024
--- Maximum number of lines and bytes read, from the requested line.
local MAX_LINES, MAX_READ = 20000, 1024 * 1024
--- Maximum size of a file that is read, in bytes.
local MAX_FILE = 8 * 1024 * 1024
--- Maximum length of a line in excerpts, in bytes.
local MAX_LINE = 400
--- Maximum number of lines used to detect a text file.
local SNIFF = 8000

local BUFFER = assert(uri_template.compile('nvim://buffer/{+path}'))
local FILE = assert(uri_template.compile('file:///{+path}'))

---@class mcp-tools.TextSource
---@field path string? for display
---@field place string? resolved
---@field bufnr integer?
---@field filetype string?
---@field first integer line number of the first of `lines`
---@field lines string[]
---@field cut boolean whether more lines follow

--- Returns the text of a file, from its buffer if it is open; without a path, of the current file. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param path? string relative to the project, or absolute
---@param first? integer first line
---@return mcp-tools.TextSource?
---@return string? fault
function M.find(ctx, path, first)
  first = math.max(first or 1, 1)
  local readable, why, place, bufnr
  if path then
    place, why = access.path(path, ctx.root)
    readable, bufnr = place ~= nil, place and buffers.of_path(place)
  else
    readable, bufnr = true, buffers.current()
    if not bufnr then
      return nil, 'no file is open in the editor'
    end
  end
  if bufnr then
    readable, why, place = access.buffer(bufnr, ctx.root)
    path = path or access.shown(vim.api.nvim_buf_get_name(bufnr), ctx.root)
  end
  if not readable then
    return nil, ('cannot read %s: it is %s'):format(path, why)
  elseif bufnr then
    local filetype = vim.bo[bufnr].filetype
    local lines, cut = buffers.some_lines(bufnr, first, MAX_LINES, MAX_READ)
    return {
      path = place and access.shown(place, ctx.root),
      place = place,
      bufnr = bufnr,
      filetype = filetype ~= '' and filetype or nil,
      first = first,
      lines = lines,
      cut = cut,
    }
  end
  local range = { first = first, last = first + MAX_LINES - 1, max_bytes = MAX_READ }
  local lines, total = ctx:await(function(done)
    read_file.lines(place, MAX_FILE, range, done)
  end)
  if not lines then
    return nil, total.message
  elseif not mime.is_text_mime(mime.of_file(place, table.concat(lines, '\n', 1, math.min(#lines, SNIFF)))) then
    return nil, path .. ' is not a text file'
  end
  return {
    path = access.shown(place, ctx.root),
    place = place,
    filetype = vim.filetype.match({ filename = place }),
    first = first,
    lines = lines,
    cut = first + #lines - 1 < total,
  }
end

--- Returns lines with line numbers.
---@param source { lines: string[], first: integer }
---@param first integer
---@param last integer
---@param mark? integer line to mark with `>`
---@return string
function M.numbered(source, first, last, mark)
  local out, before = {}, source.first - 1
  first, last = math.max(first, source.first), math.min(last, before + #source.lines)
  for number = first, last do
    local line = utf8.cut(source.lines[number - before], MAX_LINE)
    table.insert(out, ('%s%5d  %s'):format(number == mark and '>' or ' ', number, line))
  end
  return (utf8.repair(table.concat(out, '\n')))
end

--- Returns lines of a buffer with line numbers.
---@param bufnr integer loaded
---@param first integer
---@param last integer
---@param mark? integer line to mark with `>`
---@return string
function M.numbered_of(bufnr, first, last, mark)
  first = math.max(first, 1)
  local lines = buffers.some_lines(bufnr, first, last - first + 1, MAX_READ)
  return M.numbered({ lines = lines, first = first }, first, last, mark)
end

---@param text string
---@param char string
---@return string fence the shortest fence that does not occur in the text
local function fence_of(text, char)
  local longest = 2
  for run in text:gmatch(char .. '+') do
    longest = math.max(longest, #run)
  end
  return char:rep(longest + 1)
end

--- Length of a fence from which the other character is tried.
local MAX_FENCE = 80

--- Returns the text in a fenced code block.
---@param text string
---@param language? string
---@return string
function M.fenced(text, language)
  local fence = fence_of(text, '`')
  if #fence > MAX_FENCE then
    local other = fence_of(text, '~')
    fence = #other < #fence and other or fence
  end
  return ('%s%s\n%s\n%s'):format(fence, language or '', text, fence)
end

--- Returns the text as an embedded resource, truncated if it is too long.
---@param source mcp-tools.TextSource
---@return mcp-tools.Block
---@return boolean cut
function M.resource(source)
  local text = table.concat(source.lines, '\n') .. '\n'
  local cut = source.cut
  if #text > MAX_BYTES then
    cut = true
    text = strings.whole_lines(text:sub(1, MAX_BYTES))
  end
  local uri
  if source.bufnr and source.path then
    uri = BUFFER:expand({ path = source.path })
  elseif source.place then
    uri = FILE:expand({ path = source.place:sub(2) })
  else
    uri = 'nvim://selection'
  end
  return content.resource({
    uri = uri,
    mime_type = 'text/plain',
    text = (utf8.repair(text)),
  }), cut
end

return M
