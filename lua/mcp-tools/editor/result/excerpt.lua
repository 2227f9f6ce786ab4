--- Text for prompts: of files, as the person has them; excerpts with line numbers; as embedded resources.

local buffers = require('mcp-tools.editor.buffer')
local content = require('mcp-tools.content')
local read_file = require('mcp-tools.privacy.read')
local mime = require('mcp-tools.files.mime')
local access = require('mcp-tools.privacy.access')
local strings = require('mcp-tools.util.strings')
local uri_template = require('mcp-tools.util.uri_template')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- One file in a prompt; more leaves no room for the answer.
local MAX_BYTES = 128 * 1024
--- What is looked at of a file; whoever asks about line 20 001 gets the lines from there.
local MAX_LINES, MAX_LOOKED_AT = 20000, 1024 * 1024
--- Files of which that is taken; all lines of others are counted.
local MAX_FILE = 8 * 1024 * 1024
--- Bytes; longer lines are cut in excerpts.
local MAX_LINE = 400
--- Bytes at the beginning of a file that tell text from others.
local SNIFF = 8000

local BUFFER = assert(uri_template.compile('nvim://buffer/{+path}'))
local FILE = assert(uri_template.compile('file:///{+path}'))

---@class mcp-tools.TextSource
---@field path string? as shown
---@field place string? resolved
---@field bufnr integer?
---@field filetype string?
---@field first integer number of the first of `lines`
---@field lines string[]
---@field cut boolean there is more behind them

---@param bufnr integer
---@param place string?
---@param root string
---@param first integer
---@return mcp-tools.TextSource
local function of_buffer(bufnr, place, root, first)
  local filetype = vim.bo[bufnr].filetype
  local lines, cut = buffers.some_lines(bufnr, first, MAX_LINES, MAX_LOOKED_AT)
  return {
    path = place and access.shown(place, root),
    place = place,
    bufnr = bufnr,
    filetype = filetype ~= '' and filetype or nil,
    first = first,
    lines = lines,
    cut = cut,
  }
end

--- The text of a file, from its buffer when it is open; without a path that of the current file. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param path? string relative to the project, or absolute
---@param first? integer line to begin with
---@return mcp-tools.TextSource?
---@return string? fault
function M.find(ctx, path, first)
  first = math.max(first or 1, 1)
  if not path then
    local bufnr = buffers.current()
    if not bufnr then
      return nil, 'no file is open in the editor'
    end
    local name = vim.api.nvim_buf_get_name(bufnr)
    local ok, why, place = access.buffer(bufnr, ctx.root)
    if not ok then
      return nil, ('%s is %s, its text is not given'):format(access.shown(name, ctx.root), why)
    end
    return of_buffer(bufnr, place, ctx.root, first)
  end
  local place, why = access.path(path, ctx.root)
  if not place then
    return nil, ('%s is %s, its text is not given'):format(path, why)
  end
  local bufnr = buffers.of_path(place)
  if bufnr then
    local ok, fault = access.buffer(bufnr, ctx.root)
    if not ok then
      return nil, ('%s is %s, its text is not given'):format(path, fault)
    end
    return of_buffer(bufnr, place, ctx.root, first)
  end
  local range = { first = first, last = first + MAX_LINES - 1, max_bytes = MAX_LOOKED_AT }
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

--- Lines with their numbers.
---@param source { lines: string[], first: integer }
---@param first integer
---@param last integer
---@param mark? integer the line that it is about
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

--- Lines of a buffer with their numbers, and no others of it.
---@param bufnr integer loaded
---@param first integer
---@param last integer
---@param mark? integer the line that it is about
---@return string
function M.numbered_of(bufnr, first, last, mark)
  first = math.max(first, 1)
  local lines = buffers.some_lines(bufnr, first, last - first + 1, MAX_LOOKED_AT)
  return M.numbered({ lines = lines, first = first }, first, last, mark)
end

---@param text string
---@param char string
---@return string the shortest that does not stand in the text
local function fence_of(text, char)
  local longest = 2
  for run in text:gmatch(char .. '+') do
    longest = math.max(longest, #run)
  end
  return char:rep(longest + 1)
end

--- Longer ones are not written by anybody who means them.
local MAX_FENCE = 80

--- A fence that the text itself does not hold.
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

--- The text as an embedded resource, cut where it is too much.
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

--- Completion of one of a few words.
---@param values string[]
---@return fun(ctx: mcp-tools.Ctx, prefix: string)
function M.choices(values)
  return function(ctx, prefix)
    ctx(vim.tbl_filter(function(value)
      return vim.startswith(value, prefix:lower())
    end, values))
  end
end

return M
