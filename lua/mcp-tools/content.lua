--- Content values, which a tool returns if plain data is not enough: text, images, audio, resources.
---
--- Each value has a metatable, so data with a `type` field is never mistaken for content.
--- Source: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result

local M = {}

--- Maximum number of content blocks in one result, because encoding them blocks the main thread.
M.MAX_BLOCKS = 10000

---@class mcp-tools.Block
---@field [string] any as MCP names them; `bytes` is not encoded yet
---@field package extras? table from a mounted server: `annotations`, `_meta`, `icons` as in MCP
local Block = {}
---@class mcp-tools.ContentResult
---@field content mcp-tools.Block[]
---@field structured? table
---@field is_error? boolean
---@field meta? table
local Result = {}

local function check_type(what, field, value, kinds)
  if not vim.tbl_contains(kinds, type(value)) then
    local expected = table.concat(kinds, ' or ')
    error(('content.%s: %s must be a %s, got %s'):format(what, field, expected, type(value)), 3)
  end
  return value
end

--- Creates a text block.
---@param text string UTF-8
---@return mcp-tools.Block
function M.text(text)
  return setmetatable({ type = 'text', text = check_type('text', 'text', text, { 'string' }) }, Block)
end

local function binary(kind)
  return function(bytes, mime_type)
    check_type(kind, 'bytes', bytes, { 'string' })
    check_type(kind, 'mime_type', mime_type, { 'string' })
    return setmetatable({ type = kind, bytes = bytes, mimeType = mime_type }, Block)
  end
end

--- Creates an image block from raw bytes.
---@type fun(bytes: string, mime_type: string): mcp-tools.Block
M.image = binary('image')

--- Creates an audio block from raw bytes.
---@type fun(bytes: string, mime_type: string): mcp-tools.Block
M.audio = binary('audio')

--- Creates a block with the contents of a resource.
---@param spec { uri: string, mime_type?: string, text?: string, blob?: string } one of text and blob (raw bytes)
---@return mcp-tools.Block
function M.resource(spec)
  check_type('resource', 'spec', spec, { 'table' })
  check_type('resource', 'uri', spec.uri, { 'string' })
  if (spec.text == nil) == (spec.blob == nil) then
    error('content.resource: give exactly one of text and blob', 2)
  end
  check_type('resource', spec.text and 'text' or 'blob', spec.text or spec.blob, { 'string' })
  return setmetatable({
    type = 'resource',
    bytes = spec.blob,
    resource = { uri = spec.uri, mimeType = spec.mime_type, text = spec.text },
  }, Block)
end

--- Creates a link to a resource that the client can read.
---@param spec { uri: string, name: string, title?: string, description?: string, mime_type?: string, size?: integer }
---@return mcp-tools.Block
function M.resource_link(spec)
  check_type('resource_link', 'spec', spec, { 'table' })
  check_type('resource_link', 'uri', spec.uri, { 'string' })
  check_type('resource_link', 'name', spec.name, { 'string' })
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

--- Creates a complete result: blocks, structured data, error flag and metadata.
---@param spec { content: mcp-tools.Block|mcp-tools.Block[], structured?: table, is_error?: boolean, meta?: table }
---@return mcp-tools.ContentResult
function M.result(spec)
  check_type('result', 'spec', spec, { 'table' })
  local blocks = spec.content or {} ---@type any
  if M.is_block(blocks) then
    blocks = { blocks }
  end
  for i, block in ipairs(blocks) do
    if not M.is_block(block) then
      error(
        ('content.result: content[%d] is not a content value; use content.text(…) or a similar function'):format(i),
        2
      )
    end
  end
  check_type('result', 'structured', spec.structured, { 'table', 'nil' })
  check_type('result', 'is_error', spec.is_error, { 'boolean', 'nil' })
  check_type('result', 'meta', spec.meta, { 'table', 'nil' })
  return setmetatable(
    { content = blocks, structured = spec.structured, is_error = spec.is_error, meta = spec.meta },
    Result
  )
end

---@class mcp-tools.RawResult JSON text from another process, which is passed on unchanged
---@field kind 'json'|'content' data, or an MCP result
---@field text string
---@field size integer bytes that count toward the limit
local Raw = {}

---@package
--- Creates a result from another process.
---@param kind 'json'|'content'
---@param text string
---@param size? integer bytes that count toward the limit (default: all)
---@return mcp-tools.RawResult
function M.raw(kind, text, size)
  check_type('raw', 'text', text, { 'string' })
  return setmetatable({ kind = kind, text = text, size = size or #text }, Raw)
end

---@package
---@return boolean
function M.is_raw(value)
  return type(value) == 'table' and getmetatable(value) == Raw
end

---@param block table an MCP content block
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
--- Converts an MCP tool result.
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
--- Converts content to a result: one block, a non-empty list of blocks, or a `content.result`.
---@param value any
---@return mcp-tools.ContentResult? result nil if the value is plain data
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
    return { content = value } -- is refused later, without a check of each block
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
