--- Media types: whether one is text, and the type of a file.

local trim = require('mcp-tools.util.trim')

local M = {}

--- The type of unknown bytes.
M.BYTES = 'application/octet-stream'

--- Textual application types, also with the prefix `x-` or as a suffix such as `+json`.
local TEXT = {}
for name in
  ('ecmascript graphql javascript json ndjson sh sql toml typescript xml x-www-form-urlencoded yaml'):gmatch('%S+')
do
  TEXT[name] = true
end

--- Returns whether a media type is text.
---@param mime_type any
---@return boolean
function M.is_text_mime(mime_type)
  if type(mime_type) ~= 'string' then
    return false
  end
  local essence = trim(mime_type:lower():match('^[^;]*'))
  local sub = essence:match('^application/([^/%s]+)$')
  local suffix = essence:match('^[^/%s]+/[^/%s]*%+(%w+)$')
  return essence:find('^text/[^/%s]+$') ~= nil
    or sub ~= nil and (TEXT[sub] or TEXT[sub:match('^x%-(.*)')]) == true
    or TEXT[suffix] == true
end

--- Binary types by file extension.
local BINARY = { jpg = 'image/jpeg', mp3 = 'audio/mpeg', mp4 = 'video/mp4', wav = 'audio/wav' }
BINARY.pdf, BINARY.zip = 'application/pdf', 'application/zip'
for _, extension in ipairs({ 'bmp', 'gif', 'ico', 'jpeg', 'png', 'webp' }) do
  BINARY[extension] = 'image/' .. extension
end

--- Number of bytes searched for NUL, as git does.
local SNIFF = 8000

--- Returns the type of a file.
---@param path string
---@param bytes? string content, to detect binary files with an unknown extension
---@return string
function M.of_file(path, bytes)
  local is_binary = bytes and bytes:sub(1, SNIFF):find('\0', 1, true)
  return BINARY[(path:match('%.([^./]+)$') or ''):lower()] or (is_binary and M.BYTES or 'text/plain')
end

return M
