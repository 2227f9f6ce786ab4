--- Symbols of a buffer from its language server (`textDocument/documentSymbol`).

local clients = require('mcp-tools.editor.lsp.clients')
local request = require('mcp-tools.editor.lsp.request')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

local METHOD = 'textDocument/documentSymbol'
--- Maximum wait for the answer to `initialize`, ms.
local STARTS_MS = 10000
--- Maximum wait for the first answer, which may come after the server has read the project, and for later ones, ms.
local FIRST_MS, ANSWERS_MS = 20000, 5000

--- Servers that have answered before.
---@type table<integer, true>
local answered = {}

--- Identifies the servers of a buffer.
---@param bufnr integer
---@return string key changes with the servers of the buffer
function M.servers(bufnr)
  local ids = {}
  for _, client in ipairs(clients.starting(bufnr)) do
    table.insert(ids, client.id)
  end
  return table.concat(ids, ' ')
end

--- Asks the first server that can answer. `cb` is called on the main loop, perhaps before this returns.
---@param bufnr integer loaded
---@param fresh boolean the buffer was just loaded, so its server may not have started
---@param cb fun(tree: mcp-tools.SymbolNode[]?, server: string?, why: string?) without a server all are nil
---@param within? integer ms for the answer
---@return fun() cancel
function M.ask(bufnr, fresh, cb, within)
  local stop_asking
  local stop_waiting = clients.when_started(bufnr, fresh, STARTS_MS, function()
    local client = vim.api.nvim_buf_is_loaded(bufnr) and clients.of(bufnr, METHOD)[1]
    if not client then
      return cb()
    end
    local opts = { bufnr = bufnr, timeout = within or answered[client.id] and ANSWERS_MS or FIRST_MS }
    local params = { textDocument = { uri = vim.uri_from_bufnr(bufnr) } }
    stop_asking = request.start(client, METHOD, params, opts, function(result, err)
      if err then
        return cb(nil, client.name, err.message)
      end
      answered[client.id] = true
      time_slice.run(function(pause)
        cb(symbol_tree.of_server(result, client.offset_encoding, pause), client.name)
      end)
    end)
  end)
  return function()
    stop_waiting()
    if stop_asking then
      stop_asking()
    end
  end
end

return M
