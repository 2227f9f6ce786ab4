--- Text for prompts: of files, as the person has them; excerpts with line numbers; as embedded resources.
---
--- Receives: paths as people write them; the call's ctx.
--- Sends: text that may be given, or why not.
--- Does not know about: prompts.

local buffers = require('mcp-tools.editor.buffers')
local content = require('mcp-tools.content')
local read_file = require('mcp-tools.files.read')
local mime = require('mcp-tools.files.mime')
local access = require('mcp-tools.files.access')
local uri_template = require('mcp-tools.util.uri_template')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- One file in a prompt; more leaves no room for the answer.
local MAX_BYTES = 128 * 1024
--- Bytes; longer lines are cut in excerpts.
local MAX_LINE = 400

local BUFFER = assert(uri_template.compile('nvim://buffer/{+path}'))
local FILE = assert(uri_template.compile('file:///{+path}'))

---@class mcp-tools.TextSource
---@field path string? as shown
---@field place string? resolved
---@field bufnr integer?
---@field filetype string?
---@field lines string[]

---@param bufnr integer
---@param place string?
---@param root string
---@return mcp-tools.TextSource
local function of_buffer(bufnr, place, root)
  local filetype = vim.bo[bufnr].filetype
  return {
    path = place and access.shown(place, root),
    place = place,
    bufnr = bufnr,
    filetype = filetype ~= '' and filetype or nil,
    lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false),
  }
end

--- The text of a file, from its buffer when it is open; without a path that of the current file. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param path? string relative to the project, or absolute
---@return mcp-tools.TextSource?
---@return string? fault
function M.find(ctx, path)
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
    return of_buffer(bufnr, place, ctx.root)
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
    return of_buffer(bufnr, place, ctx.root)
  end
  local bytes, err = ctx:await(function(done)
    read_file.read(place, 8 * 1024 * 1024, done)
  end)
  if not bytes then
    return nil, err.message
  elseif not mime.is_text_mime(mime.of_file(place, bytes)) then
    return nil, path .. ' is not a text file'
  end
  local lines = vim.split(bytes, '\n', { plain = true })
  if lines[#lines] == '' and #lines > 1 then
    table.remove(lines)
  end
  return {
    path = access.shown(place, ctx.root),
    place = place,
    filetype = vim.filetype.match({ filename = place }),
    lines = lines,
  }
end

--- Lines with their numbers.
---@param lines string[]
---@param first integer
---@param last integer
---@param mark? integer the line that it is about
---@param before? integer lines of the text that stand before those given
---@return string
function M.numbered(lines, first, last, mark, before)
  local out = {}
  before = before or 0
  first, last = math.max(first, before + 1), math.min(last, before + #lines)
  for number = first, last do
    local line = utf8.cut(lines[number - before], MAX_LINE)
    table.insert(out, ('%s%5d  %s'):format(number == mark and '>' or ' ', number, line))
  end
  return (utf8.repair(table.concat(out, '\n')))
end

--- A fence that the text itself does not hold.
---@param text string
---@param language? string
---@return string
function M.fenced(text, language)
  local fence = '```'
  while text:find(fence, 1, true) do
    fence = fence .. '`'
  end
  return ('%s%s\n%s\n%s'):format(fence, language or '', text, fence)
end

--- The text as an embedded resource, cut where it is too much.
---@param source mcp-tools.TextSource
---@return mcp-tools.Block
---@return boolean cut
function M.resource(source)
  local text = table.concat(source.lines, '\n') .. '\n'
  local cut = #text > MAX_BYTES
  if cut then
    text = text:sub(1, MAX_BYTES):gsub('[^\n]*$', '')
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
    mime_type = source.place and mime.of_text(source.place) or 'text/plain',
    text = (utf8.repair(text)),
  }),
    cut
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
