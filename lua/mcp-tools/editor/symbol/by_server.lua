--- Symbols of a buffer by its language server (`textDocument/documentSymbol`).
---
--- Receives: a loaded buffer.
--- Sends: a tree of symbols, or why there is none.
--- Does not know about: what comes instead (symbol/init.lua), who asks.

local clients = require('mcp-tools.editor.lsp.clients')
local kinds = require('mcp-tools.editor.lsp.kinds')
local nodes = require('mcp-tools.editor.symbol.nodes')
local time_slice = require('mcp-tools.util.time_slice')
local timer = require('mcp-tools.util.timer')

local M = {}

local METHOD = 'textDocument/documentSymbol'
--- A server that is starting answers `initialize` by then, ms.
local STARTS_MS = 10000
--- The first answer may wait until the server has read the project; one that takes longer later on is busy, ms.
local FIRST_MS, ANSWERS_MS = 20000, 5000
local TICK_MS = 10
--- ContentModified, and the server's own cancel: it may be asked again.
local AGAIN = { [-32801] = true, [-32802] = true }
local TRIES = 5

--- Servers that have answered once.
---@type table<integer, true>
local answered = {}

---@param item table DocumentSymbol or SymbolInformation
---@param encoding mcp-tools.lsp.Encoding
---@return mcp-tools.SymbolNode?
local function node_of(item, encoding)
  local range = item.range or type(item.location) == 'table' and item.location.range
  if type(item.name) ~= 'string' or type(range) ~= 'table' then
    return nil
  end
  local at = (item.selectionRange or range).start
  local last = range['end']
  local children = {}
  for _, child in ipairs(type(item.children) == 'table' and item.children or {}) do
    table.insert(children, node_of(child, encoding))
  end
  return {
    name = item.name,
    kind = kinds.name(item.kind),
    line = range.start.line + 1,
    -- A range that ends before the first character of a line does not reach it.
    end_line = (last.character == 0 and last.line > range.start.line) and last.line or last.line + 1,
    range = { range.start.line, range.start.character, last.line, last.character },
    at = { at.line, at.character },
    units = encoding,
    children = children,
  }
end

---@param items table[]
---@param encoding mcp-tools.lsp.Encoding
---@param pause fun()
---@return mcp-tools.SymbolNode[]
local function tree_of(items, encoding, pause)
  local list, flat = {}, true
  for _, item in ipairs(items) do
    table.insert(list, node_of(item, encoding))
    flat = flat and item.location ~= nil
    pause()
  end
  return flat and nodes.nest(list, pause) or list
end

--- Waits until the servers that are about to be there have started.
---@param bufnr integer
---@param fresh boolean the buffer was loaded just now
---@param cb fun(list: vim.lsp.Client[])
---@return fun() cancel
local function when_started(bufnr, fresh, cb)
  local begun, ticks = vim.uv.hrtime(), nil
  local function look()
    local ms = (vim.uv.hrtime() - begun) / 1e6
    local starting = vim.api.nvim_buf_is_loaded(bufnr) and clients.starting(bufnr) or {}
    local none = #starting == 0 and fresh and vim.api.nvim_buf_is_loaded(bufnr) and clients.may_appear(bufnr)
    local pending = none and ms < clients.APPEARS_MS
    if none and not pending then
      clients.note_serverless(bufnr)
    end
    for _, client in ipairs(starting) do
      pending = pending or not client.initialized and not clients.is_stopped(client)
    end
    if pending and ms < STARTS_MS then
      return false
    end
    if ticks then
      ticks:stop()
    end
    cb(#starting > 0 and clients.of(bufnr, METHOD) or {})
    return true
  end
  if look() then
    return function() end
  end
  ticks = timer.every(TICK_MS, look)
  return function()
    ticks:stop()
  end
end

--- Can one of the servers that are there now be asked?
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
---@param fresh boolean the buffer was loaded just now: its server may be about to start
---@param cb fun(tree: mcp-tools.SymbolNode[]?, server: string?, why: string?) no server: neither
---@param within? integer ms for the answer
---@return fun() cancel
function M.ask(bufnr, fresh, cb, within)
  local over, stop, id, limit, asked = false
  local function finish(...)
    if over then
      return
    end
    over = true
    if limit then
      limit:stop()
    end
    cb(...)
  end
  local function ask(client, try)
    local params = { textDocument = { uri = vim.uri_from_bufnr(bufnr) } }
    asked = client
    id = clients.request(client, METHOD, params, bufnr, function(err, result)
      if over then
        return
      elseif err and AGAIN[err.code] and try < TRIES then
        return vim.defer_fn(function()
          if not over then
            ask(client, try + 1)
          end
        end, 50 * try)
      elseif err then
        return finish(nil, client.name, ('%s: %s'):format(client.name, tostring(err.message)))
      end
      answered[client.id] = true
      time_slice.run(function(pause)
        finish(tree_of(type(result) == 'table' and result or {}, client.offset_encoding, pause), client.name)
      end)
    end)
    if not id then
      finish(nil, client.name, client.name .. ' has stopped')
    end
  end
  stop = when_started(bufnr, fresh, function(list)
    if over then
      return
    elseif #list == 0 then
      return finish()
    end
    local over_at = vim.uv.hrtime() + (within or answered[list[1].id] and ANSWERS_MS or FIRST_MS) * 1e6
    limit = timer.every(100, function()
      local gone = clients.is_stopped(list[1])
      if gone or vim.uv.hrtime() > over_at then
        if id and not gone then
          clients.cancel(list[1], id)
        end
        local text = gone and '%s has stopped' or '%s did not answer in time'
        finish(nil, list[1].name, text:format(list[1].name))
      end
    end)
    ask(list[1], 1)
  end)
  return function()
    if over then
      return
    end
    over = true
    stop()
    if limit then
      limit:stop()
    end
    if id and asked then
      clients.cancel(asked, id)
    end
  end
end

return M
