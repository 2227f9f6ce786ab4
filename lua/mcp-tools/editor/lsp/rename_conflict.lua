--- Finds a definition that already has the new name in the scope of the symbol that is renamed.

local access = require('mcp-tools.files.access')
local clients = require('mcp-tools.editor.lsp.clients')
local left_out = require('mcp-tools.editor.lsp.rename_left_out')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local paths = require('mcp-tools.files.paths')
local request = require('mcp-tools.editor.lsp.request')

local M = {}

--- Whether the text of the project has the new name at all. Without it nothing can conflict.
---@param of mcp-tools.lsp.Renaming
---@return boolean
function M.is_used(of)
  local places, more = left_out.places(of, of.new, 1)
  return #places > 0 or more
end

---@param range lsp.Range
---@param at lsp.Position
---@return boolean
local function contains(range, at)
  local first, last = range.start, range['end']
  return (first.line < at.line or first.line == at.line and first.character <= at.character)
    and (at.line < last.line or at.line == last.line and at.character <= last.character)
end

--- The symbols beside the one that is defined at a position, and what contains them.
---@param symbols lsp.DocumentSymbol[]
---@param at lsp.Position
---@return lsp.DocumentSymbol[] siblings
---@return string? container
local function scope_of(symbols, at)
  local container
  while true do
    local inner
    for _, symbol in ipairs(symbols) do
      if contains(symbol.range, at) and not contains(symbol.selectionRange, at) then
        inner = symbol
      end
    end
    if not inner then
      return symbols, container
    end
    symbols, container = inner.children or {}, inner.name
  end
end

--- The same for servers that answer a flat list, whose entries name what contains them.
---@param symbols lsp.SymbolInformation[]
---@param at lsp.Position
---@return lsp.SymbolInformation[] siblings
---@return string? container
local function flat_scope_of(symbols, at)
  local own
  for _, symbol in ipairs(symbols) do
    if contains(symbol.location.range, at) then
      own = symbol -- the innermost one comes last
    end
  end
  local container = own and own.containerName
  return own and vim.tbl_filter(function(symbol)
    return symbol.containerName == container
  end, symbols) or {},
    container
end

--- Where the renamed symbol is defined: the file, if the rename changes it, and the position.
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return integer bufnr
---@return lsp.Position
local function definition(of, plan)
  local params = lsp.place(of.spot.bufnr, of.spot.line, of.spot.column)(of.client)
  local result
  if clients.supports(of.client, 'textDocument/definition', of.spot.bufnr) then
    result = request.ask(of.ctx, of.client, 'textDocument/definition', params, of.spot.bufnr)
  end
  for _, item in ipairs(result and locations.items({ { result = result, client = of.client } }) or {}) do
    local path = item.uri:find('^file:') and paths.resolve(vim.uri_to_fname(item.uri))
    for _, file in ipairs(plan.files) do
      if file.place == path then
        return file.bufnr, item.range.start
      end
    end
  end
  return of.spot.bufnr, params.position
end

--- The definition that has the new name already, as an error message.
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return string?
function M.find(of, plan)
  local bufnr, at = definition(of, plan)
  local method = 'textDocument/documentSymbol'
  if not clients.supports(of.client, method, bufnr) then
    return nil
  end
  local symbols = request.ask(of.ctx, of.client, method, lsp.document(bufnr), bufnr)
  if type(symbols) ~= 'table' or not symbols[1] then
    return nil
  end
  local siblings, container = (symbols[1].location and flat_scope_of or scope_of)(symbols, at)
  for _, symbol in ipairs(siblings) do
    local range = symbol.selectionRange or symbol.location.range
    if symbol.name == of.new and not contains(range, at) then
      local where = container ~= '' and container or access.shown(vim.api.nvim_buf_get_name(bufnr), of.ctx.root)
      local text = 'conflict: %s already defines %s (line %d); nothing was changed'
      return text:format(where, of.new, range.start.line + 1)
    end
  end
end

return M
