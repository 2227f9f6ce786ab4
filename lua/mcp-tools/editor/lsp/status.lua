--- Reports the state of language servers, and restarts them.

local access = require('mcp-tools.privacy.access')
local background = require('mcp-tools.editor.background')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local lsp = require('mcp-tools.editor.lsp')
local server_state = require('mcp-tools.editor.lsp.server_state')

local M = {}

--- Time after which a server that has not exited is killed, ms.
local EXIT_MS = 3000

---@param ctx mcp-tools.Ctx
---@param args { path: string?, bufnr: integer? }
---@return vim.lsp.Client[]?
---@return mcp-tools.Error? err
local function clients_for(ctx, args)
  server_state.ensure_listening()
  if not args.path and not args.bufnr then
    return clients.starting()
  end
  local target, err = lsp.target(ctx, args)
  if not target then
    return nil, err
  end
  return clients.await(ctx, target.bufnr)
end

--- Returns the loaded buffers of a server.
---@param client vim.lsp.Client
---@return integer[] buffers
local function files_of(client)
  return vim.tbl_filter(vim.api.nvim_buf_is_loaded, vim.tbl_keys(client.attached_buffers))
end

--- Returns the state of language servers; with `timeout_ms`, waits until they are ready.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { path: string?, bufnr: integer?, timeout_ms: integer }
---@return table?
---@return mcp-tools.Error? err
function M.of(ctx, args)
  local list, err = clients_for(ctx, args)
  if not list then
    return nil, err
  end
  local deadline = vim.uv.hrtime() + args.timeout_ms * 1e6
  local servers, all_ready = {}, true
  for _, client in ipairs(list) do
    local bufnr = files_of(client)[1]
    if bufnr and args.timeout_ms > 0 then
      lsp.await_ready(ctx, client, bufnr, (deadline - vim.uv.hrtime()) / 1e6)
    end
  end
  for i, client in ipairs(list) do
    local state = lsp.state(client)
    local roots = clients.roots(client)
    all_ready = all_ready and state.state == 'ready'
    servers[i] = {
      id = client.id,
      name = client.name,
      state = state.state,
      doing = lsp.progress_text(state),
      percentage = state.percentage,
      root = roots[1] and access.name(roots[1]),
      files = vim.tbl_count(client.attached_buffers),
    }
  end
  return {
    servers = servers,
    ready = all_ready and #servers > 0,
    note = #servers == 0 and 'no language server is running; pass a file as path to start its server' or nil,
  }
end

--- Restarts a server. A restart that has begun is finished even if the call ends.
---@param client vim.lsp.Client
---@param cb fun(done: { name: string, id: integer?, files: integer })
local function restart(client, cb)
  background.run(function(ctx)
    local files, id = files_of(client), nil
    local function has_exited()
      return clients.is_stopped(client) and not vim.lsp.get_client_by_id(client.id)
    end
    clients.stop(client)
    if not server_state.await(ctx, EXIT_MS, has_exited) then
      clients.stop(client, true)
      server_state.await(ctx, EXIT_MS, has_exited)
    end
    for _, bufnr in ipairs(vim.tbl_filter(vim.api.nvim_buf_is_loaded, files)) do
      local ok, started = pcall(vim.lsp.start, client.config, { bufnr = bufnr })
      if not ok then
        log.error('%s did not start again: %s', client.name, started)
      end
      id = ok and started or id
    end
    return { name = client.name, id = id, files = #files }
  end, cb)
end

--- Returns the clients with a name.
---@param list vim.lsp.Client[]
---@param name string or `all`
---@return vim.lsp.Client[]? list not empty
---@return mcp-tools.Error? err
local function with_name(list, name)
  list = vim.tbl_filter(function(client)
    return name == 'all' or client.name == name
  end, list)
  if #list == 0 then
    local what = name ~= 'all' and ("restart: no language server '%s'"):format(name) or 'no language server is running'
    return nil, errors.new('not_found', what .. '; editor_servers lists the running ones')
  end
  return list
end

--- Returns the text that is shown for approval of a restart.
---@param args { path: string?, bufnr: integer?, restart: string }
---@return string?
---@return mcp-tools.Error? err
function M.preview(args)
  local found, err = {}, nil
  if args.path or args.bufnr then
    found, err = buffers.find(args)
  end
  if not found then
    return nil, err
  elseif found.path and not found.bufnr then
    return 'The language servers that start when the file is opened.'
  end
  local list
  list, err = with_name(clients.starting(found.bufnr), args.restart)
  if not list then
    return nil, err
  end
  return table.concat(
    vim.tbl_map(function(client)
      return ('%s (%d files)'):format(client.name, #files_of(client))
    end, list),
    '\n'
  )
end

--- Restarts language servers.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { path: string?, bufnr: integer?, restart: string }
---@return table?
---@return mcp-tools.Error? err
function M.restart(ctx, args)
  local list, err = clients_for(ctx, args)
  if not list then
    return nil, err
  end
  list, err = with_name(list, args.restart)
  if not list then
    return nil, err
  end
  local restarted = {}
  for _, client in ipairs(list) do
    local done = ctx:await(function(done)
      restart(client, done)
    end)
    if done.files > 0 and not done.id then
      return nil, errors.new('tool_error', ('%s has exited and did not start again'):format(client.name))
    end
    table.insert(restarted, done)
  end
  return { restarted = restarted }
end

return M
