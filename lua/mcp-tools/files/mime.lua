--- Media types: which of them are text, and which one a file has.
---
--- Receives: media types of definitions and clients; paths, and the first bytes of a file.
--- Sends: answers.
--- Does not know about: resources, who asks.

local trim = require('mcp-tools.util.trim')

local M = {}

--- What a file is when nothing tells.
M.BYTES = 'application/octet-stream'

--- Types outside of text/ that people read. Suffixes such as +json count as well.
local TEXT = {
  ['application/ecmascript'] = true,
  ['application/graphql'] = true,
  ['application/javascript'] = true,
  ['application/json'] = true,
  ['application/ld+json'] = true,
  ['application/sql'] = true,
  ['application/toml'] = true,
  ['application/typescript'] = true,
  ['application/x-httpd-php'] = true,
  ['application/x-javascript'] = true,
  ['application/x-ndjson'] = true,
  ['application/x-sh'] = true,
  ['application/x-tex'] = true,
  ['application/x-www-form-urlencoded'] = true,
  ['application/x-yaml'] = true,
  ['application/xml'] = true,
  ['application/xml-dtd'] = true,
  ['application/yaml'] = true,
}

local SUFFIXES = { json = true, xml = true, yaml = true, toml = true }

--- Is it text? Parameters and letter case do not matter.
---@param mime_type any
---@return boolean
function M.is_text_mime(mime_type)
  if type(mime_type) ~= 'string' then
    return false
  end
  local essence = trim(mime_type:lower():match('^[^;]*'))
  if essence:find('^text/[^/%s]+$') or TEXT[essence] then
    return true
  end
  return SUFFIXES[essence:match('^[^/%s]+/[^/%s]*%+(%w+)$')] == true
end

local BY_EXTENSION = {
  bmp = 'image/bmp',
  css = 'text/css',
  csv = 'text/csv',
  gif = 'image/gif',
  gz = 'application/gzip',
  htm = 'text/html',
  html = 'text/html',
  ico = 'image/x-icon',
  jpeg = 'image/jpeg',
  jpg = 'image/jpeg',
  js = 'text/javascript',
  json = 'application/json',
  lua = 'text/x-lua',
  markdown = 'text/markdown',
  md = 'text/markdown',
  mjs = 'text/javascript',
  mp3 = 'audio/mpeg',
  mp4 = 'video/mp4',
  pdf = 'application/pdf',
  png = 'image/png',
  py = 'text/x-python',
  sh = 'application/x-sh',
  svg = 'image/svg+xml',
  tar = 'application/x-tar',
  toml = 'application/toml',
  wav = 'audio/wav',
  wasm = 'application/wasm',
  webp = 'image/webp',
  xml = 'application/xml',
  yaml = 'application/yaml',
  yml = 'application/yaml',
  zip = 'application/zip',
}

--- So many bytes are looked at for a NUL, as git does.
local SNIFF = 8000

--- The type of a file.
---@param path string
---@param bytes? string what it holds; tells text from bytes where the name does not
---@return string
function M.of_file(path, bytes)
  local known = BY_EXTENSION[(path:match('%.([^./]+)$') or ''):lower()]
  local binary = bytes and bytes:sub(1, SNIFF):find('\0', 1, true)
  if known and not (binary and M.is_text_mime(known)) then
    return known
  end
  return binary and M.BYTES or 'text/plain'
end

--- The type of a text, by the name of its file.
---@param path string
---@return string
function M.of_text(path)
  local known = M.of_file(path)
  return M.is_text_mime(known) and known or 'text/plain'
end

return M
