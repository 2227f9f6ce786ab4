--- Content values: what a tool returns when plain data is not enough (text, images, audio, resources).
---
--- Each value carries a metatable, so a tool's data that happens to have a `type` field is never mistaken for content.
--- Source: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result

local M = {}

--- Content blocks of one result: each costs the editor some microseconds, and every client more.
M.MAX_BLOCKS = 10000

---@class mcp-tools.Block
---@field package extras? table of a mounted server: `annotations`, `_meta`, `icons` as MCP has them
local Block = {}
---@class mcp-tools.ContentResult
local Result = {}

local function need(what, field, value, kinds)
  if not vim.tbl_contains(kinds, type(value)) then
    local expected = table.concat(kinds, ' or ')
    error(('content.%s: %s must be a %s, got %s'):format(what, field, expected, type(value)), 3)
  end
  return value
end

--- A text block.
---@param text string UTF-8
---@return mcp-tools.Block
function M.text(text)
  return setmetatable({ type = 'text', text = need('text', 'text', text, { 'string' }) }, Block)
end

local function binary(kind)
  return function(bytes, mime_type)
    need(kind, 'bytes', bytes, { 'string' })
    need(kind, 'mime_type', mime_type, { 'string' })
    return setmetatable({ type = kind, bytes = bytes, mimeType = mime_type }, Block)
  end
end

--- An image block from raw bytes.
---@type fun(bytes: string, mime_type: string): mcp-tools.Block
M.image = binary('image')

--- An audio block from raw bytes.
---@type fun(bytes: string, mime_type: string): mcp-tools.Block
M.audio = binary('audio')

--- A resource's contents, embedded in the result.
---@param spec { uri: string, mime_type?: string, text?: string, blob?: string } one of text and blob (raw bytes)
---@return mcp-tools.Block
function M.resource(spec)
  need('resource', 'spec', spec, { 'table' })
  need('resource', 'uri', spec.uri, { 'string' })
  if (spec.text == nil) == (spec.blob == nil) then
    error('content.resource: give exactly one of text and blob', 2)
  end
  need('resource', spec.text and 'text' or 'blob', spec.text or spec.blob, { 'string' })
  return setmetatable({
    type = 'resource',
    bytes = spec.blob,
    resource = { uri = spec.uri, mimeType = spec.mime_type, text = spec.text },
  }, Block)
end

--- A link to a resource that the client may read by itself.
---@param spec { uri: string, name: string, title?: string, description?: string, mime_type?: string, size?: integer }
---@return mcp-tools.Block
function M.resource_link(spec)
  need('resource_link', 'spec', spec, { 'table' })
  need('resource_link', 'uri', spec.uri, { 'string' })
  need('resource_link', 'name', spec.name, { 'string' })
  return setmetatable({
    type = 'resource_link',
    uri = spec.uri,
    name = spec.name,
    title = spec.title,
    description = spec.description,
    mimeType = spec.mime_type,
    size = spec.size,
  }, Block)
end

--- A whole result: blocks, structured data, error flag and metadata in one.
---@param spec { content: mcp-tools.Block|mcp-tools.Block[], structured?: table, is_error?: boolean, meta?: table }
---@return mcp-tools.ContentResult
function M.result(spec)
  need('result', 'spec', spec, { 'table' })
  local blocks = spec.content or {}
  if M.is_block(blocks) then
    blocks = { blocks }
  end
  for i, block in ipairs(blocks) do
    if not M.is_block(block) then
      error(
        ('content.result: content[%d] is not a content value; make it with content.text(…) or another'):format(i),
        2
      )
    end
  end
  need('result', 'structured', spec.structured, { 'table', 'nil' })
  need('result', 'is_error', spec.is_error, { 'boolean', 'nil' })
  need('result', 'meta', spec.meta, { 'table', 'nil' })
  return setmetatable(
    { content = blocks, structured = spec.structured, is_error = spec.is_error, meta = spec.meta },
    Result
  )
end

---@class mcp-tools.RawResult JSON text that another process made; it is passed on as it is
---@field kind 'json'|'content' data, or a result in MCP's own shape
---@field text string
---@field size integer bytes that count for the limit
local Raw = {}

---@package
--- A result of another process.
---@param kind 'json'|'content'
---@param text string
---@param size? integer bytes that count for the limit (default: all)
---@return mcp-tools.RawResult
function M.raw(kind, text, size)
  need('raw', 'text', text, { 'string' })
  return setmetatable({ kind = kind, text = text, size = size or #text }, Raw)
end

---@package
---@return boolean
function M.is_raw(value)
  return type(value) == 'table' and getmetatable(value) == Raw
end

---@param block table as MCP has it
---@return mcp-tools.Block
local function block_of(block)
  local made
  if block.type == 'text' then
    made = M.text(block.text)
  elseif block.type == 'image' or block.type == 'audio' then
    made = M[block.type](vim.base64.decode(block.data), block.mimeType)
  elseif block.type == 'resource' then
    local inner = block.resource
    local blob = inner.blob and vim.base64.decode(inner.blob)
    made = M.resource({ uri = inner.uri, mime_type = inner.mimeType, text = inner.text, blob = blob })
    made.resource._meta = inner._meta
  else
    made = setmetatable(vim.deepcopy(block), Block)
  end
  made.extras = { annotations = block.annotations, _meta = block._meta, icons = block.icons }
  return made
end

---@package
--- A tool result in MCP's shape, as `content.result` makes it.
---@param result table
---@return mcp-tools.ContentResult
function M.of_mcp(result)
  return M.result({
    content = vim.tbl_map(block_of, result.content or {}),
    structured = result.structuredContent,
    is_error = result.isError,
    meta = result._meta,
  })
end

---@package
---@return boolean
function M.is_block(value)
  return type(value) == 'table' and getmetatable(value) == Block
end

---@package
--- The blocks of a value that is content: one block, a non-empty list of blocks, or a `content.result`.
---@param value any
---@return mcp-tools.ContentResult? result nil when the value is plain data
function M.as_result(value)
  if type(value) ~= 'table' then
    return nil
  end
  local mt = getmetatable(value)
  if mt == Result then
    return value
  end
  if mt == Block then
    return { content = { value } }
  end
  if not M.is_block(value[1]) then
    return nil
  end
  if #value > M.MAX_BLOCKS then
    return { content = value } -- to be refused: the look at each takes long
  end
  local n = 0
  for _, block in pairs(value) do
    n = n + 1
    if not M.is_block(block) then
      return nil
    end
  end
  return n == #value and { content = value } or nil
end

return M
