--- Answers requests of LSP clients of agents with the language servers of this editor (`mcp-tools lsp`).
---
--- Answers refer to the text of the editor, including unsaved changes. A closed file is loaded into a hidden buffer
--- during the call. Methods that change files are refused.

local clients = require('mcp-tools.editor.lsp.clients')
local config = require('mcp-tools.config')
local documents = require('mcp-tools.editor.language_server.documents')
local editor_context = require('mcp-tools.editor.context')
local errors = require('mcp-tools.errors')
local extensions = require('mcp-tools.editor.language_server.extensions')
local fresh = require('mcp-tools.editor.diagnostics.fresh')
local json = require('mcp-tools.util.json')
local lsp = require('mcp-tools.editor.lsp')
local results = require('mcp-tools.editor.language_server.results')
local target = require('mcp-tools.editor.buffer.target')

local M = {}

local DIAGNOSTIC, SYMBOL = 'textDocument/diagnostic', 'workspace/symbol'

--- Supported methods, with the function that merges the results of several servers.
local SERVED = {
  ['callHierarchy/incomingCalls'] = results.merge_lists,
  ['callHierarchy/outgoingCalls'] = results.merge_lists,
  ['textDocument/definition'] = results.merge_lists,
  ['textDocument/documentSymbol'] = results.merge_lists,
  ['textDocument/hover'] = results.merge_hovers,
  ['textDocument/implementation'] = results.merge_lists,
  ['textDocument/prepareCallHierarchy'] = results.merge_lists,
  ['textDocument/references'] = results.merge_lists,
  [DIAGNOSTIC] = results.merge_hovers, -- returns the only result
  [SYMBOL] = results.merge_lists,
}

--- Methods that change files or run commands, with the tool that does the same with the user's approval.
local REFUSED = {
  ['codeAction/resolve'] = 'code_actions',
  ['textDocument/codeAction'] = 'code_actions',
  ['textDocument/formatting'] = 'code_format',
  ['textDocument/rangeFormatting'] = 'code_format',
  ['textDocument/rename'] = 'symbol_rename',
  ['workspace/applyEdit'] = 'file_edit',
  ['workspace/executeCommand'] = 'code_actions',
  ['workspace/willRenameFiles'] = 'file_move',
}

--- Our own method, for `mcp-tools connect --lsp`: returns the file extensions that have a server.
local EXTENSIONS = '$/mcp-tools/extensions'

--- Fields of parameters that are passed to servers. With `partialResultToken`, answers would be empty.
local FIELDS = { 'textDocument', 'position', 'context', 'item', 'query' }

--- Maximum wait for diagnostics of the current text, ms.
local DIAGNOSTICS_MS = 10000

---@class mcp-tools.lsp.Server
---@field client vim.lsp.Client
---@field bufnr integer loaded

--- The part of an answer that its conversion needs.
---@class mcp-tools.lsp.Convertible
---@field result table
---@field client { name: string, offset_encoding: mcp-tools.lsp.Encoding }

--- Asks servers at the same time.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param servers mcp-tools.lsp.Server[]
---@param method string
---@param params mcp-tools.lsp.Params
---@return mcp-tools.lsp.Answer[]? answers without empty ones
---@return mcp-tools.Error? err
local function ask(ctx, servers, method, params)
  local waits, answers, failed, unready = {}, {}, nil, nil
  for i, server in ipairs(servers) do
    waits[i] = lsp.begin(ctx, server.client, server.bufnr, method, params)
  end
  for _, wait in ipairs(waits) do
    local answer, err = wait()
    failed = failed or err
    if answer and type(answer.result) == 'table' and next(answer.result) ~= nil then
      table.insert(answers, answer)
    elseif answer then
      unready = unready or answer.incomplete
    end
  end
  if #answers > 0 or not (failed or unready) then
    return answers
  end
  return nil, failed or errors.new('busy', unready .. ', so its answer would be incomplete; ask again in a few seconds')
end

---@param place any
---@return boolean
local function is_position(place)
  if type(place) ~= 'table' then
    return false
  end
  return vim.iter({ place.line, place.character }):all(function(number)
    return type(number) == 'number' and number >= 0 and number % 1 == 0
  end) and place.line ~= nil and place.character ~= nil
end

--- Returns the positions in the parameters of a request.
---@param params table
---@return lsp.Position[]? places
---@return mcp-tools.Error? err
local function positions_of(params)
  local list = { params.position }
  for _, field in ipairs({ 'range', 'selectionRange' }) do
    local range = params.item and params.item[field]
    vim.list_extend(list, type(range) == 'table' and { range.start, range['end'] } or {})
  end
  for _, place in ipairs(list) do
    if not is_position(place) then
      return nil, errors.new('validation_error', 'params: a position must have a line and a character')
    end
  end
  return list
end

--- Returns the parameters for each server, with positions in its encoding and in the text of the editor.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param opened mcp-tools.Target
---@param params table
---@param list vim.lsp.Client[]
---@return (fun(client: vim.lsp.Client): table)?
---@return mcp-tools.Error? err
local function params_for(ctx, opened, params, list)
  local by_encoding, load = {}, documents.loader(ctx)
  for _, client in ipairs(list) do
    local encoding = client.offset_encoding
    if not by_encoding[encoding] then
      local document = load(opened.path, encoding)
      local copy = vim.deepcopy(params)
      copy.textDocument = copy.textDocument and { uri = vim.uri_from_bufnr(opened.bufnr) }
      local places, err = positions_of(copy)
      if not places then
        return nil, err
      end
      for _, place in ipairs(places) do
        local server_place, gone = documents.to_server(document, place, encoding)
        if gone and place == copy.position then
          local text = 'line %d of %s was deleted in the editor, where the file has unsaved changes'
          return nil, errors.new('stale', text:format(place.line + 1, opened.shown))
        end
        place.line, place.character = server_place.line, server_place.character
      end
      by_encoding[encoding] = copy
    end
  end
  return function(client)
    return by_encoding[client.offset_encoding]
  end
end

--- Asks the servers of a file.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param opened mcp-tools.Target
---@param method string
---@param params table
---@param name any name of the only server to ask
---@return mcp-tools.lsp.Answer[]?
---@return mcp-tools.Error? err
local function ask_about(ctx, opened, method, params, name)
  local list, err = clients.await(ctx, opened.bufnr, method)
  if list and name then
    list = vim.tbl_filter(function(client)
      return client.name == name
    end, list)
    if #list == 0 then
      return nil, errors.new('not_found', ('item.data: the server %s has stopped'):format(tostring(name)))
    end
  end
  local for_client
  if list then
    for_client, err = params_for(ctx, opened, params, list)
  end
  if not list or not for_client then
    return nil, err
  end
  return ask(
    ctx,
    vim.tbl_map(function(client)
      return { client = client, bufnr = opened.bufnr }
    end, list),
    method,
    for_client
  )
end

--- Starts the servers of a file, and asks all running servers for symbols by name.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param opened mcp-tools.Target?
---@param params table
---@return mcp-tools.lsp.Answer[]?
---@return mcp-tools.Error? err
local function ask_everywhere(ctx, opened, params)
  if opened then
    clients.await(ctx, opened.bufnr, SYMBOL)
  end
  local servers = {}
  for _, client in ipairs(clients.of(nil, SYMBOL)) do
    local bufnr = next(client.attached_buffers)
    if bufnr and vim.api.nvim_buf_is_loaded(bufnr) then
      table.insert(servers, { client = client, bufnr = bufnr })
    end
  end
  if #servers == 0 then
    return nil, errors.new('not_found', 'no running language server searches for symbols; open a file first')
  end
  return ask(ctx, servers, SYMBOL, { query = params.query })
end

--- Waits for the diagnostics of a file's current text.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param opened mcp-tools.Target
---@return mcp-tools.lsp.Convertible[]?
---@return mcp-tools.Error? err
local function diagnostics_of(ctx, opened)
  local list = clients.await(ctx, opened.bufnr)
  local checked, why
  if list then
    checked, why = fresh.wait(ctx, opened.bufnr, list, DIAGNOSTICS_MS)
  end
  local file = editor_context.diagnostics(opened.path)[1]
  if not file or checked == 'no' and #file.diagnostics == 0 then
    return nil, errors.new('busy', why or 'the file was closed')
  end
  local result = { kind = 'full', items = file.diagnostics }
  return { { result = result, client = { name = '', offset_encoding = 'utf-16' } } }
end

--- Runs one request.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { method: string, params: table, near: string? }
---@return string? json of the result
---@return mcp-tools.Error? err
function M.run(ctx, args)
  local method, params = args.method, {}
  for _, field in ipairs(FIELDS) do -- other fields are not checked
    params[field] = args.params[field]
  end
  local tool, merge = REFUSED[method], SERVED[method]
  if tool then
    local text = '%s is not answered here, because it changes files; use the tool %s%s of Neovim instead'
    return nil, errors.new('access_denied', text:format(method, config.get('tool_prefix'), tool))
  elseif method == 'textDocument/prepareRename' then
    -- So that Copilot CLI sends the rename request, whose refusal names the tool.
    return json.encode({ start = params.position, ['end'] = params.position })
  elseif method == EXTENSIONS then
    return json.encode(extensions.of(ctx))
  elseif not merge then
    return nil, errors.new('capability_missing', method .. ' is not supported')
  end
  if method:find('^callHierarchy/') then
    params.textDocument, params.position = nil, nil
  end
  if type(params.item) ~= 'table' or params.textDocument then
    params.item = nil
  end
  local name
  if params.item then
    local data = type(params.item.data) == 'table' and params.item.data or {}
    local kept = data.id ~= nil and results.data_of(ctx, data.id) or nil
    name, params.item = data.server, vim.tbl_extend('force', {}, params.item)
    params.item.data = kept
    if data.id ~= nil and kept == nil then
      return nil, errors.new('stale', 'item.data: the item is too old; send textDocument/prepareCallHierarchy again')
    end
  end
  local named = method == SYMBOL and { uri = args.near } or params.textDocument or params.item
  local opened, err, path
  if type(named) == 'table' and named.uri then
    path, err = documents.checker(ctx)(named.uri)
    if path then
      opened, err = target.await(ctx, { path = path }, { load = true })
    end
  end
  if not opened and method ~= SYMBOL then
    return nil, err or errors.new('validation_error', 'params: must have a textDocument or an item')
  end
  local answers
  if method == DIAGNOSTIC then
    answers, err = diagnostics_of(ctx, opened --[[@as mcp-tools.Target]])
  elseif method == SYMBOL then
    answers, err = ask_everywhere(ctx, opened, params)
  else
    answers, err = ask_about(ctx, opened --[[@as mcp-tools.Target]], method, params, name)
  end
  if not answers then
    return nil, err
  end
  local list, removed = results.convert(ctx, answers --[[@as mcp-tools.lsp.Convertible[] ]], path)
  if #list == 0 and removed then
    local text = 'the result is only in files outside the project, or in sensitive ones, and is not shown here'
    return nil, errors.new('access_denied', text)
  end
  return json.encode(merge(list))
end

return M
