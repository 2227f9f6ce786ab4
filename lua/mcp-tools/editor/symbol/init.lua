--- Symbols of files: by the language server, else the syntax tree; the answer says which.
---
--- Receives: a loaded buffer, or the text of a file that is not open; names such as `Class/method`.
--- Sends: trees of symbols, or the one that a name means.
--- Does not know about: tools, who may read the file.
---
---   symbol.find(bufnr, 'Ledger/post_entry', function(found, err) … end)     -- found.line, found.end_line, found.by
---   local file = symbol.await(ctx, bufnr)                                   -- file.tree, file.by, file.changedtick

local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local from_server = require('mcp-tools.editor.symbol.from_server')
local in_text = require('mcp-tools.editor.symbol.in_text')
local name_path = require('mcp-tools.editor.symbol.name_path')
local nodes = require('mcp-tools.editor.symbol.nodes')
local position = require('mcp-tools.editor.lsp.position')
local time_slice = require('mcp-tools.util.time_slice')

local api = vim.api

local M = {}

---@class mcp-tools.SymbolFile
---@field tree mcp-tools.SymbolNode[]
---@field by 'server'|'treesitter'|'nothing'
---@field name string? of the server or the language
---@field why string? why the server, or nothing, knows its symbols
---@field changedtick integer? of the buffer that it was read from
---@field servers string?
---@field failed boolean? the server did not answer

--- Somebody types on while the server is asked: asked again so many times.
local TRIES = 3
--- Where a person waits; a server that takes longer is busy with something else, ms.
M.PERSON_MS = 2000
--- Files whose symbols are kept.
local MAX_KEPT = 64

---@type table<integer, mcp-tools.SymbolFile> by buffer
local kept = {}

---@param bufnr integer
---@return mcp-tools.SymbolFile?
local function known(bufnr)
  local file = kept[bufnr]
  if
    file
    and file.changedtick == api.nvim_buf_get_changedtick(bufnr)
    and file.servers == from_server.servers(bufnr)
  then
    return file
  end
end

---@param bufnr integer
---@param file mcp-tools.SymbolFile
local function keep(bufnr, file)
  if not kept[bufnr] and vim.tbl_count(kept) >= MAX_KEPT then
    kept = {}
  end
  kept[bufnr] = file
end

--- Returns what knows the symbols of a file.
---@param file mcp-tools.SymbolFile
---@return string? name nil when nothing does
function M.by(file)
  if file.by == 'server' then
    return file.name --[[@as string]]
  end
  return file.by == 'treesitter' and 'treesitter' or nil
end

--- Returns the one symbol of a file that a name path means.
---@param file mcp-tools.SymbolFile
---@param path mcp-tools.NamePath
---@param argument string its name, for the error
---@param where string the file, for the error
---@return mcp-tools.SymbolNode?
---@return mcp-tools.Error? err
function M.one(file, path, argument, where)
  if file.by == 'nothing' then
    return nil, errors.new('not_found', ('%s: the symbols of %s are not known: %s'):format(argument, where, file.why))
  end
  return name_path.one(file.tree, path, argument, where)
end

--- Symbols of a buffer. `cb` is called on the main loop, perhaps before this returns.
---@param bufnr integer loaded
---@param cb fun(file: mcp-tools.SymbolFile?, err: mcp-tools.Error?)
---@param opts? { fresh: boolean?, within: integer? } `fresh`: the buffer was loaded just now; `within`: ms for the
---  server's answer
---@param try? integer
---@return fun() cancel
function M.of_buffer(bufnr, cb, opts, try)
  opts = opts or {}
  bufnr = bufnr == 0 and api.nvim_get_current_buf() or bufnr
  local file = known(bufnr)
  if file then
    cb(file)
    return function() end
  end
  local tick, cancel = api.nvim_buf_get_changedtick(bufnr), nil
  local function finish(found)
    if not api.nvim_buf_is_loaded(bufnr) then
      return cb(nil, buffers.gone(bufnr))
    elseif api.nvim_buf_get_changedtick(bufnr) ~= tick then
      if (try or 1) >= TRIES then
        return cb(nil, errors.new('busy', 'the text changes while it is looked at; try again'))
      end
      cancel = M.of_buffer(bufnr, cb, { within = opts.within }, (try or 1) + 1)
      return
    end
    found.changedtick, found.servers = tick, from_server.servers(bufnr)
    if not found.failed then -- the server is asked again next time
      keep(bufnr, found)
    end
    cb(found)
  end
  local stop = from_server.ask(bufnr, opts.fresh == true, function(tree, server, why)
    if not api.nvim_buf_is_loaded(bufnr) then
      return finish()
    elseif tree and (#tree > 0 or api.nvim_buf_line_count(bufnr) < 2) then
      return time_slice.run(function(pause)
        finish({ tree = nodes.prune(tree, pause), by = 'server', name = server })
      end)
    end
    in_text.ask(bufnr, vim.bo[bufnr].filetype, function(found)
      if tree and #found.tree == 0 then
        found = { tree = {}, by = 'server', name = server }
      end
      if found.by == 'nothing' then
        found = vim.tbl_extend('force', found, {
          why = ('%s, and %s'):format(why or 'no language server knows them', found.why),
        })
      end
      found.failed, found.why = why ~= nil, found.by == 'nothing' and found.why or why
      finish(found)
    end)
  end, opts.within)
  return function()
    (cancel or stop)()
  end
end

--- The same for coroutines of `run` handlers; it ends with the call.
---@param ctx mcp-tools.Ctx
---@param bufnr integer loaded
---@param opts? { fresh: boolean?, within: integer? }
---@return mcp-tools.SymbolFile?
---@return mcp-tools.Error? err
function M.await(ctx, bufnr, opts)
  return ctx:await(function(done)
    local cancel = M.of_buffer(bufnr, done, opts)
    ctx:on_cancel(cancel)
  end)
end

--- Symbols of a text as prompts have it: of its buffer where it is open, else of its lines.
---@param ctx mcp-tools.Ctx in a coroutine
---@param source mcp-tools.TextSource
---@return mcp-tools.SymbolFile?
---@return mcp-tools.Error? err
function M.of_source(ctx, source)
  if source.bufnr then
    return M.await(ctx, source.bufnr, { within = M.PERSON_MS })
  end
  return ctx:await(function(done)
    in_text.of_text(source.lines, source.filetype or '', done)
  end)
end

---@class mcp-tools.FoundSymbol
---@field path string the whole name path
---@field kind string
---@field line integer from 1
---@field end_line integer
---@field by string
---@field node mcp-tools.SymbolNode
---@field file mcp-tools.SymbolFile

---@param bufnr integer
---@param file mcp-tools.SymbolFile
---@param path mcp-tools.NamePath
---@param argument string
---@return mcp-tools.FoundSymbol?
---@return mcp-tools.Error? err
local function pick(bufnr, file, path, argument)
  local node, err = M.one(file, path, argument, buffers.shown(bufnr))
  if not node then
    return nil, err
  end
  return {
    path = name_path.of(node, file.tree),
    kind = node.kind,
    line = node.line,
    end_line = node.end_line,
    by = M.by(file),
    node = node,
    file = file,
  }
end

--- The one symbol of a buffer that a name means. `cb` is called on the main loop, perhaps before this returns.
---@param bufnr integer loaded
---@param name string `name`, `Class/method`, `/Class`, `name[2]`
---@param cb fun(found: mcp-tools.FoundSymbol?, err: mcp-tools.Error?)
---@param opts? { argument: string?, fresh: boolean? } `argument`: what the name is called in errors, `symbol`
---@return fun() cancel
function M.find(bufnr, name, cb, opts)
  bufnr = bufnr == 0 and api.nvim_get_current_buf() or bufnr
  local argument = opts and opts.argument or 'symbol'
  local path, bad = name_path.parse(name, argument)
  if not path then
    cb(nil, bad)
    return function() end
  end
  return M.of_buffer(bufnr, function(file, err)
    if not file then
      return cb(nil, err)
    end
    cb(pick(bufnr, file, path, argument))
  end, opts)
end

--- The bytes of a symbol in its buffer: row and column of its start and its end, from 0.
---@param bufnr integer
---@param node mcp-tools.SymbolNode
---@return integer row, integer col, integer end_row, integer end_col
function M.range(bufnr, node)
  local function byte(row, units)
    local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
    return position.byte(line, units, node.units)
  end
  local row, col, end_row, end_col = unpack(node.range)
  return row, byte(row, col), end_row, byte(end_row, end_col)
end

return M
