--- Results of language servers for LSP clients: other files removed, positions converted, answers of several servers
--- merged. Everything else stays as the servers wrote it, except secrets in texts.

local documents = require('mcp-tools.editor.language_server.documents')
local server_text = require('mcp-tools.editor.lsp.server_text')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Represents a value that refers to a file that clients may not read.
local REMOVED = {}

---@param value any
---@return string?
local function uri_of(value)
  local uri = value.uri or value.targetUri
  return type(uri) == 'string' and uri or nil
end

---@param value any
---@return boolean
local function is_range(value)
  return type(value) == 'table' and type(value.start) == 'table' and type(value['end']) == 'table'
end

---@class mcp-tools.lsp.Conversion
---@field client string name of the server
---@field encoding mcp-tools.lsp.Encoding
---@field by_uri table<string, mcp-tools.lsp.Document|false> false: clients may not read the file
---@field pause fun()

---@param value any
---@param uris table<string, true> collects the URIs in it
local function collect(value, uris)
  if type(value) ~= 'table' then
    return
  end
  local uri = uri_of(value)
  if uri then
    uris[uri] = true
  end
  for key, each in pairs(value) do
    if key ~= 'data' then
      collect(each, uris)
    end
  end
end

---@param range lsp.Range
---@param document mcp-tools.lsp.Document?
---@param job mcp-tools.lsp.Conversion
---@return lsp.Range
local function range_of(range, document, job)
  if not document then
    return range
  end
  return {
    start = documents.to_client(document, range.start, job.encoding),
    ['end'] = documents.to_client(document, range['end'], job.encoding),
  }
end

local convert

---@param list any[]
---@param here mcp-tools.lsp.Document?
---@param job mcp-tools.lsp.Conversion
---@return any[]
local function convert_list(list, here, job)
  local kept = {}
  for _, each in ipairs(list) do
    local value = is_range(each) and range_of(each, here, job) or convert(each, here, job)
    if value ~= REMOVED then
      table.insert(kept, value)
    end
    job.pause()
  end
  return kept
end

--- Converts a value.
---@param value any
---@param here mcp-tools.lsp.Document? the file of ranges that belong to no URI
---@param job mcp-tools.lsp.Conversion
---@return any
function convert(value, here, job)
  if type(value) == 'string' then
    return server_text.code(value)
  elseif type(value) ~= 'table' or next(value) == nil then
    return value
  elseif vim.islist(value) then
    return convert_list(value, here, job)
  end
  local uri, own = uri_of(value), here
  if uri then
    own = job.by_uri[uri] or nil
    if not own then
      return REMOVED
    end
  end
  local caller = type(value.from) == 'table' and uri_of(value.from)
  local result = {}
  for key, each in pairs(value) do
    local converted = each
    if key == 'fromRanges' then -- of the caller: it is `from`, or else the item that was asked about
      converted = convert_list(each, caller and (job.by_uri[caller] or nil) or here, job)
    elseif is_range(each) then
      converted = range_of(each, key == 'originSelectionRange' and here or own, job)
    elseif key ~= 'uri' and key ~= 'targetUri' and key ~= 'data' then
      converted = convert(each, own, job)
    end
    if converted == REMOVED then
      return REMOVED
    end
    result[key] = converted
  end
  if uri and value.selectionRange then
    result.data = { server = job.client, data = value.data } -- only that server can continue from this item
  end
  return result
end

--- Converts the results of servers.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param answers mcp-tools.lsp.Convertible[]
---@param here string? resolved path of the file that the request is about
---@return any[] results without removed ones
---@return boolean removed whether parts were removed
function M.convert(ctx, answers, here)
  server_text.refresh(ctx)
  local results, removed, path_of, load = {}, false, documents.checker(ctx), documents.loader(ctx)
  for _, answer in ipairs(answers) do
    local encoding, uris = answer.client.offset_encoding, {}
    local job = { client = answer.client.name, encoding = encoding, by_uri = {}, pause = time_slice.of(ctx) }
    collect(answer.result, uris)
    for uri in pairs(uris) do
      local path = path_of(uri)
      removed = removed or not path
      job.by_uri[uri] = path and load(path, encoding) or false
      job.pause()
    end
    local own = here and load(here, encoding) or nil
    local converted = convert(answer.result, own, job)
    if converted ~= REMOVED and next(converted) ~= nil then
      table.insert(results, converted)
    end
  end
  return results, removed
end

--- Identifies a location or symbol, so that one that two servers report occurs once.
---@param value table
---@return string?
local function key_of(value)
  local location = value.location or value
  local uri, range = uri_of(location), location.selectionRange or location.range or location.targetSelectionRange
  return uri
      and is_range(range)
      and ('%s %d:%d %s'):format(uri, range.start.line, range.start.character, tostring(value.name))
    or nil
end

--- Merges lists, and single values, to one list.
---@param results any[]
---@return any[]
function M.merge_lists(results)
  local merged, seen = {}, {}
  for _, result in ipairs(results) do
    for _, value in ipairs(vim.islist(result) and result or { result }) do
      local key = #results > 1 and key_of(value) or nil
      if not key or not seen[key] then
        seen[key or value] = true
        table.insert(merged, value)
      end
    end
  end
  return merged
end

--- Merges hover texts.
---@param results lsp.Hover[]
---@return lsp.Hover?
function M.merge_hovers(results)
  if #results < 2 then
    return results[1]
  end
  local texts = {}
  for _, result in ipairs(results) do
    table.insert(texts, table.concat(vim.lsp.util.convert_input_to_markdown_lines(result.contents), '\n'))
  end
  return { contents = { kind = 'markdown', value = table.concat(texts, '\n\n---\n\n') }, range = results[1].range }
end

return M
