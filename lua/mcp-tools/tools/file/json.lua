--- One value of a JSON file.

local contents = require('mcp-tools.editor.buffer.contents')
local errors = require('mcp-tools.errors')
local json_query = require('mcp-tools.editor.file.json_query')
local file_text = require('mcp-tools.files.text')
local read = require('mcp-tools.files.read')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local MAX_FILE = 16 * 1024 * 1024

---@param ctx mcp-tools.Ctx
---@param found mcp-tools.Target
---@return string? text
---@return mcp-tools.Error? err
local function text_of(ctx, found)
  if found.bufnr then
    return contents.of_buffer(found.bufnr, time_slice.of(ctx))
  end
  local bytes, err = ctx:await(function(done)
    read.read(found.path, MAX_FILE, done)
  end)
  return bytes and file_text.decode(bytes), err
end

return {
  name = 'file_json',
  description = 'A value of a JSON file by its path, such as "scripts.test", "items[0].name" or ["a.b"]; without a'
    .. ' query the whole. Of a value that is too large: its keys or the number of its items. Unsaved changes count.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Or its buffer; 0 = the current file', minimum = 0 },
    query = {
      type = 'string',
      description = 'Path of the value; indices count from 0',
      default = '',
      maxLength = 10000,
    },
    max_bytes = {
      type = 'integer',
      description = 'Size of a value that is given as a whole',
      default = 16384,
      minimum = 100,
      maximum = 1048576,
    },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local found, err = target.await(ctx, args, {})
    if not found then
      return ctx(nil, err)
    end
    local text
    text, err = text_of(ctx, found)
    if not text then
      return ctx(nil, err)
    elseif utf8.invalid_at(text) then
      return ctx(nil, errors.new('tool_error', ('%s is not JSON: it is not UTF-8'):format(found.shown)))
    end
    local answer
    answer, err = json_query.find(ctx, text, args.query, args.max_bytes)
    if not answer then
      return ctx(nil, err)
    end
    answer.path = (utf8.repair(found.shown))
    if answer.value == nil and answer.type ~= 'null' then
      answer.narrowed = answer.deep and 'the value is nested too deep to be given whole; ask for one below it'
        or 'the value is too large; ask for one below it, or give max_bytes'
      answer.deep = nil
    end
    return answer
  end,
}
