--- LSP clients of a buffer, and wrappers of their functions for all supported versions of Neovim.

local errors = require('mcp-tools.errors')
local server_state = require('mcp-tools.editor.lsp.server_state')

---@diagnostic disable: missing-parameter, param-type-mismatch, undefined-field -- in Neovim 0.10 and 0.12

local M = {}

--- In Neovim 0.11 the functions of a client became methods.
local METHODS = vim.fn.has('nvim-0.11') == 1

--- Calls a function of a client.
---@param client vim.lsp.Client
---@param name string
---@param ... any
---@return any ...
local function call(client, name, ...)
  if METHODS then
    return client[name](client, ...)
  end
  return client[name](...)
end

--- Returns the clients that are attached to a buffer or still initializing; without a buffer, all.
---@param bufnr? integer
---@return vim.lsp.Client[] by id
function M.starting(bufnr)
  local list = vim.lsp.get_clients({ bufnr = bufnr, _uninitialized = true }) ---@diagnostic disable-line
  table.sort(list, function(a, b)
    return a.id < b.id
  end)
  return list
end

--- Maximum wait for the first server of a loaded file, ns: some configurations first search for the root directory.
local APPEARS_NS = 300e6
--- Maximum wait for the answer to `initialize`, ms.
local INITIALIZED_MS = 20000
--- How long the absence of a server is remembered, ns.
local SERVERLESS_NS = 300e9

--- Filetype and directory → time at which no server had started, ns.
---@type table<string, integer>
local serverless = {}

---@param bufnr integer
---@return string
local function serverless_key(bufnr)
  return vim.bo[bufnr].filetype .. '\n' .. vim.fs.dirname(vim.api.nvim_buf_get_name(bufnr))
end

--- Whether a server may still be started for a buffer that has none.
---@param bufnr integer loaded
---@return boolean
local function may_appear(bufnr)
  local since = serverless[serverless_key(bufnr)]
  return vim.bo[bufnr].filetype ~= ''
    and vim.bo[bufnr].buftype == ''
    and not (since and vim.uv.hrtime() - since < SERVERLESS_NS)
end

--- Records that no server started for a buffer. The record is cleared when a server attaches to any buffer.
---@param bufnr integer loaded
local function note_serverless(bufnr)
  if next(serverless) == nil then
    vim.api.nvim_create_autocmd('LspAttach', {
      once = true,
      desc = 'mcp-tools: files without a language server may have one now',
      callback = function()
        serverless = {}
      end,
    })
  end
  serverless[serverless_key(bufnr)] = vim.uv.hrtime()
end

---@param client vim.lsp.Client
---@return boolean
function M.is_stopped(client)
  return call(client, 'is_stopped')
end

---@param client vim.lsp.Client
---@param method string
---@param bufnr? integer
---@return boolean
function M.supports(client, method, bufnr)
  local where = bufnr ---@type any
  if not METHODS then
    where = { bufnr = bufnr }
  end
  return call(client, 'supports_method', method, where)
end

--- Returns the initialized clients that can answer a method.
---@param bufnr integer? nil: of any buffer
---@param method? string
---@return vim.lsp.Client[] by id
function M.of(bufnr, method)
  return vim.tbl_filter(function(client)
    local is_running = client.initialized and not M.is_stopped(client)
    return is_running and (not method or M.supports(client, method, bufnr))
  end, M.starting(bufnr))
end

--- Returns the identifiers for diagnostic requests, one for each registration; false for a registration without one.
---@param client vim.lsp.Client
---@param bufnr? integer
---@return (string|false)[] not empty
function M.pull_identifiers(client, bufnr)
  local method, list = 'textDocument/diagnostic', {}
  if client._provider_foreach then -- from 0.12 on
    client:_provider_foreach(method, function(capability)
      table.insert(list, type(capability) == 'table' and capability.identifier or false)
    end)
  else
    local registered = client.dynamic_capabilities:get(method, { bufnr = bufnr })
    local options = registered and registered.registerOptions or client.server_capabilities.diagnosticProvider
    table.insert(list, type(options) == 'table' and options.identifier or false)
  end
  return #list > 0 and list or { false }
end

--- Sends a request. `cb` is called on the main loop, but not if the server exits first.
---@param client vim.lsp.Client
---@param method string
---@param params table?
---@param bufnr integer? buffer whose pending changes are sent first (0 would be the current buffer)
---@param cb fun(err: lsp.ResponseError?, result: any)
---@return integer? id nil: the server has stopped
function M.request(client, method, params, bufnr, cb)
  bufnr = bufnr or next(client.attached_buffers) or nil
  local ok, id = call(client, 'request', method, params, function(err, result)
    cb(err, result)
  end, bufnr)
  return ok and id or nil
end

---@param client vim.lsp.Client
---@param method string
---@param params table
function M.notify(client, method, params)
  call(client, 'notify', method, params)
end

--- Cancels a request.
---@param client vim.lsp.Client
---@param id integer
function M.cancel(client, id)
  if not M.is_stopped(client) then
    call(client, 'cancel_request', id)
  end
end

--- Stops a server; with `force`, without a shutdown request.
---@param client vim.lsp.Client
---@param force? boolean
function M.stop(client, force)
  call(client, 'stop', force)
end

--- Returns the root directories of a client.
---@param client vim.lsp.Client
---@return string[]
function M.roots(client)
  local roots = {}
  for _, folder in ipairs(client.workspace_folders or {}) do
    table.insert(roots, vim.uri_to_fname(folder.uri))
  end
  if #roots == 0 then
    table.insert(roots, client.root_dir or client.config.root_dir)
  end
  return roots
end

--- Returns the error for a buffer that has no server, or none that supports the method.
---@param bufnr integer
---@param method? string
---@return mcp-tools.Error
function M.missing(bufnr, method)
  local attached = M.of(bufnr)
  if #attached == 0 then
    local filetype = vim.bo[bufnr].filetype
    local text = 'no language server is attached to %s (filetype %s); editor_servers lists those that run'
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
    return errors.new('not_found', text:format(name, filetype ~= '' and filetype or 'unknown'))
  end
  local names = {}
  for i, client in ipairs(attached) do
    names[i] = client.name
  end
  local text = '%s cannot answer %s'
  return errors.new('not_found', text:format(table.concat(names, ', '), method))
end

--- Waits until the servers of a buffer have started.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param bufnr integer
---@param is_new boolean also wait for the first server of the buffer
---@param ms number
function M.await_started(ctx, bufnr, is_new, ms)
  local begun = vim.uv.hrtime()
  server_state.await(ctx, ms, function()
    if not vim.api.nvim_buf_is_loaded(bufnr) then
      return true
    end
    local starting = M.starting(bufnr)
    if #starting == 0 and is_new and may_appear(bufnr) then
      if vim.uv.hrtime() - begun < APPEARS_NS then
        return false
      end
      note_serverless(bufnr)
    end
    return vim.iter(starting):all(function(client)
      return client.initialized or M.is_stopped(client)
    end)
  end)
end

--- Waits until the servers of a buffer have started, and returns those that can answer a method.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param bufnr integer
---@param method? string
---@return vim.lsp.Client[]? clients not empty
---@return mcp-tools.Error? err
function M.await(ctx, bufnr, method)
  server_state.ensure_listening()
  M.await_started(ctx, bufnr, true, INITIALIZED_MS)
  local list = vim.api.nvim_buf_is_loaded(bufnr) and M.of(bufnr, method) or {}
  if #list > 0 then
    return list
  end
  return nil, M.missing(bufnr, method)
end

return M
