--- Prepares results of language servers for LSP clients: removes secrets and files that clients may not read, converts
--- positions, merges the answers of several servers. `data` of servers stays in the editor.

local documents = require('mcp-tools.editor.language_server.documents')
local lru = require('mcp-tools.util.lru')
local position = require('mcp-tools.editor.position')
local server_text = require('mcp-tools.editor.lsp.server_text')
local sessions = require('mcp-tools.util.session')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

local is_range = position.is_range

--- Replaces a value that refers to a file that clients may not read.
local REMOVED = {}

--- Maximum number of items per client whose data is kept.
local MAX_DATA = 1000

--- Data of call hierarchy items, which only their server understands and which may quote any file.
local kept_of = sessions.keep(function()
  return { last = 0, by_id = lru(MAX_DATA) }
end)
--- Part of all ids, so that ids of other editors are not accepted.
local epoch = ('%x'):format(vim.uv.hrtime())

---@param ctx mcp-tools.Ctx
---@param data any
---@return string? id nil if there is no data
local function keep(ctx, data)
  if data == nil then
    return nil
  end
  local kept = kept_of(ctx)
  kept.last = kept.last + 1
  local id = ('%s-%d'):format(epoch, kept.last)
  kept.by_id:set(id, data)
  return id
end

--- Returns the data of an item that was sent to this client.
---@param ctx mcp-tools.Ctx
---@param id any
---@return any data nil if it is unknown
function M.data_of(ctx, id)
  return kept_of(ctx).by_id:get(id)
end

---@param value any
---@return string?
local function uri_of(value)
  local uri = value.uri or value.targetUri
  return type(uri) == 'string' and uri or nil
end

---@param key any
---@param value any
---@return boolean
local function is_uri(key, value)
  return type(key) == 'string' and key:find('[uU]ri$') ~= nil and type(value) == 'string'
end

---@class mcp-tools.lsp.Conversion
---@field client string name of the server
---@field encoding mcp-tools.lsp.Encoding
---@field by_uri table<string, mcp-tools.lsp.Document|false> false: clients may not read the file
---@field pause fun()
---@field keep fun(data: any): string?

---@param value any
---@param uris table<string, true> collects the URIs in it
local function collect(value, uris)
  if type(value) ~= 'table' then
    return
  end
  for key, each in pairs(value) do
    if is_uri(key, each) then
      uris[each] = true
    elseif key ~= 'data' then
      collect(each, uris)
    end
  end
end

---@param range lsp.Range
---@param document mcp-tools.lsp.Document?
---@param job mcp-tools.lsp.Conversion
---@return lsp.Range
local function range_of(range, document, job)
  local function place_of(place)
    local target = document and documents.to_client(document, place, job.encoding) or place
    return { line = target.line, character = target.character }
  end
  return { start = place_of(range.start), ['end'] = place_of(range['end']) }
end

local convert

---@param list any[]
---@param document mcp-tools.lsp.Document?
---@param job mcp-tools.lsp.Conversion
---@return any[]
local function convert_list(list, document, job)
  local kept = {}
  for _, each in ipairs(list) do
    local value = is_range(each) and range_of(each, document, job) or convert(each, document, job)
    if value ~= REMOVED then
      table.insert(kept, value)
    end
    job.pause()
  end
  return kept
end

--- Converts a value.
---@param value any
---@param document mcp-tools.lsp.Document? the file of ranges without a URI
---@param job mcp-tools.lsp.Conversion
---@return any
function convert(value, document, job)
  if type(value) == 'string' then
    return server_text.code(value)
  elseif type(value) ~= 'table' or next(value) == nil then
    return value
  elseif vim.islist(value) then
    return convert_list(value, document, job)
  end
  for key, each in pairs(value) do
    if is_uri(key, each) and not job.by_uri[each] then
      return REMOVED
    end
  end
  local uri = uri_of(value)
  local own = uri and (job.by_uri[uri] or nil) or document
  local caller = type(value.from) == 'table' and uri_of(value.from)
  local result = {}
  for key, each in pairs(value) do
    local converted = each
    if key == 'data' then
      converted = nil
    elseif key == 'fromRanges' and type(each) == 'table' then
      -- Ranges in the file of the caller: `from`, or otherwise the item of the request.
      converted = convert_list(each, caller and (job.by_uri[caller] or nil) or document, job)
    elseif is_range(each) then
      converted = range_of(each, key == 'originSelectionRange' and document or own, job)
    elseif not is_uri(key, each) then
      converted = convert(each, own, job)
    end
    if converted == REMOVED then
      return REMOVED
    end
    result[key] = converted
  end
  if uri and value.selectionRange then
    result.data = { server = job.client, id = job.keep(value.data) } -- only this server knows the item
  end
  return result
end

--- Converts the results of servers.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param answers mcp-tools.lsp.Convertible[]
---@param here string? resolved path of the file that the request is about
---@return any[] results without removed ones
---@return boolean removed parts were removed
function M.convert(ctx, answers, here)
  server_text.refresh(ctx)
  local results, removed, path_of, load = {}, false, documents.checker(ctx), documents.loader(ctx)
  for _, answer in ipairs(answers) do
    local encoding, uris = answer.client.offset_encoding, {}
    local job = {
      client = answer.client.name,
      encoding = encoding,
      by_uri = {},
      pause = time_slice.of(ctx),
      keep = function(data)
        return keep(ctx, data)
      end,
    }
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

--- Identifies a location or symbol, to remove duplicates from different servers.
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

--- Merges lists and single values into one list.
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
