--- Resolves a symbol: the one that a call's arguments mean, in a file, or wherever in the project it is.
---
--- Receives: `symbol`, `path` or `bufnr` arguments, the ctx of a `run` tool.
--- Sends: the symbol with its loaded buffer; or an error value that lists what comes near.
--- Does not know about: what is done with it.

local errors = require('mcp-tools.errors')
local name_path = require('mcp-tools.editor.symbol.name_path')
local project = require('mcp-tools.editor.symbol.project')
local search_files = require('mcp-tools.editor.search.files')
local source = require('mcp-tools.editor.symbol.source')
local symbol = require('mcp-tools.editor.symbol')

local M = {}

---@class mcp-tools.PickedSymbol
---@field source mcp-tools.SymbolSource
---@field node mcp-tools.SymbolNode
---@field path string its name path
---@field by string

---@param each mcp-tools.SymbolSource
---@param node mcp-tools.SymbolNode
---@return mcp-tools.PickedSymbol
local function picked(each, node)
  return { source = each, node = node, path = name_path.of(node, each.file.tree), by = symbol.by(each.file) }
end

--- The one of the project.
---@param ctx mcp-tools.Ctx
---@param path mcp-tools.NamePath
---@return mcp-tools.PickedSymbol?
---@return mcp-tools.Error? err
local function of_project(ctx, path)
  local place, err = search_files.place(ctx, nil)
  local found
  if place then
    found, err = project.find(ctx, path, place, {})
  end
  if not found then
    return nil, err
  elseif found.total ~= 1 then
    project.drop(found)
    if found.total == 0 and found.incomplete then
      return nil,
        errors.new('busy', ('symbol: %q was not found, but %s; try again'):format(path.given, found.incomplete))
    elseif found.total == 0 then
      local text = 'symbol: there is no %q in the project; %s; symbol_find with substring finds parts of names'
      return nil, errors.new('not_found', text:format(path.given, project.looked(found)))
    end
    local text = 'symbol: %q means %d symbols: %s; give path, and the whole name path of one'
    return nil, errors.new('validation_error', text:format(path.given, found.total, project.told(ctx, found)))
  end
  local hits = found.hits[1]
  if hits.source then
    return picked(hits.source, hits.nodes[1])
  end
  local each
  each, err = source.find(ctx, { path = vim.fs.joinpath(ctx.root, hits.shown) })
  local node = each and symbol.one(each.file, path, 'symbol', each.shown)
  if not each or not node then
    return nil, err or errors.new('not_found', ('symbol: there is no %q'):format(path.given))
  end
  return picked(each, node)
end

--- Finds it.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { symbol: string, path: string?, bufnr: integer? }
---@return mcp-tools.PickedSymbol?
---@return mcp-tools.Error? err
function M.find(ctx, args)
  local path, err = name_path.parse(args.symbol, 'symbol')
  if not path then
    return nil, err
  elseif not args.path and not args.bufnr then
    return of_project(ctx, path)
  end
  local each, node
  each, err = source.find(ctx, args)
  if each then
    node, err = symbol.one(each.file, path, 'symbol', each.shown)
  end
  if not each or not node then
    return nil, err
  end
  return picked(each, node)
end

return M
