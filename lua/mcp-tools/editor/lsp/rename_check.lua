--- Checks before a rename: places that the server would leave out, and definitions that have the new name already.
---
--- A server that has not read all of the project renames a part of it, and says that it succeeded. So the old name is
--- searched for in the project's text, and the server is asked what the remaining places mean.

local access = require('mcp-tools.privacy.access')
local clients = require('mcp-tools.editor.lsp.clients')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.lsp.position')
local request = require('mcp-tools.editor.lsp.request')
local search = require('mcp-tools.editor.search')

local M = {}

--- Places of the project that have the name; beyond this it is too common to check.
local MAX_PLACES = 500
--- Places that the server leaves out and is asked about.
local MAX_ASKED = 100

---@class mcp-tools.lsp.Renaming
---@field ctx mcp-tools.Ctx
---@field client vim.lsp.Client
---@field spot mcp-tools.lsp.Spot
---@field old string
---@field new string

---@class mcp-tools.lsp.Named a place that has the old name
---@field path string resolved
---@field line integer from 1
---@field byte integer from 0

--- Places of the project's text that have a name, unsaved changes included.
---@param of mcp-tools.lsp.Renaming
---@param name string
---@param max? integer places
---@return mcp-tools.lsp.Named[]
---@return boolean more there are others, or nobody could look
function M.places(of, name, max)
  local found = search.find(of.ctx, { query = name, word = true }, { max = max or MAX_PLACES })
  local places = {}
  for _, file in ipairs(found and found.files or {}) do
    for _, match in ipairs(file.matches) do
      table.insert(places, { path = file.path, line = match.row + 1, byte = match.col })
    end
  end
  return places, not found or found.cut or found.passed > 0
end

--- Those that a plan does not change.
---@param plan mcp-tools.lsp.Plan
---@param places mcp-tools.lsp.Named[]
---@return mcp-tools.lsp.Named[]
local function unchanged(plan, places)
  local changed = {}
  for _, file in ipairs(plan.files) do
    for _, each in ipairs(file.edits) do
      changed[('%s %d %d'):format(file.place, each.start_line + 1, each.start_col)] = true
    end
  end
  return vim.tbl_filter(function(place)
    return not changed[('%s %d %d'):format(place.path, place.line, place.byte)]
  end, places)
end

--- The buffer of a file, if the server that renames knows it.
---@param of mcp-tools.lsp.Renaming
---@param path string
---@return integer?
local function served(of, path)
  local bufnr = of.ctx:await(function(done)
    open.load(path, done, of.ctx)
  end)
  local list = bufnr and lsp.clients(of.ctx, bufnr, 'textDocument/definition')
  return list and vim.list_contains(list, of.client) and bufnr or nil
end

--- Asks for the definitions of a place, of those in files that the rename changes.
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param params table
---@param bufnr integer
---@return fun(): { file: mcp-tools.lsp.FileChange, at: lsp.Position }[] answer waits for it
local function begin_definitions(of, plan, params, bufnr)
  local answer = request.begin(of.ctx, of.client, 'textDocument/definition', params, bufnr)
  return function()
    local result, found = answer(), {}
    for _, item in ipairs(result and locations.items({ { result = result, client = of.client } }) or {}) do
      local path = item.uri:find('^file:') and paths.resolve(vim.uri_to_fname(item.uri))
      for _, file in ipairs(plan.files) do
        if file.place == path then
          table.insert(found, { file = file, at = item.range.start })
        end
      end
    end
    return found
  end
end

--- Asks whether a place means the thing that is renamed.
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param place mcp-tools.lsp.Named
---@param bufnr integer
---@return fun(): boolean means_it waits for it
local function begin_asking(of, plan, place, bufnr)
  local line = vim.api.nvim_buf_get_lines(bufnr, place.line - 1, place.line, false)[1] or ''
  local params = lsp.document(bufnr, {
    position = { line = place.line - 1, character = position.units(line, place.byte, of.client.offset_encoding) },
  })
  local answer = begin_definitions(of, plan, params, bufnr)
  return function()
    for _, found in ipairs(answer()) do
      for _, each in ipairs(found.file.edits) do
        if each.start_line == found.at.line then
          return true
        end
      end
    end
    return false
  end
end

--- Is a file one that the servers of a buffer may know?
---@param bufnr integer
---@param path string
---@return boolean
local function is_alike(bufnr, path)
  local own = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(bufnr), ':e')
  return vim.fn.fnamemodify(path, ':e') == own
    or vim.filetype.match({ filename = path }) == vim.bo[bufnr].filetype and vim.bo[bufnr].filetype ~= ''
end

--- A place that means the renamed thing and would keep the old name.
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param places mcp-tools.lsp.Named[]
---@param more boolean there are others
---@return string? missed
---@return boolean sure every place was looked at
---@return mcp-tools.lsp.Named? place of the missed one
function M.left_out(of, plan, places, more)
  local left, asked = unchanged(plan, places), {}
  local readable, buffers = access.files(of.ctx.root), {}
  for i = 1, math.min(#left, MAX_ASKED) do
    local place = left[i]
    if buffers[place.path] == nil then
      local known = readable(place.path) and is_alike(of.spot.bufnr, place.path)
      buffers[place.path] = known and served(of, place.path) or false
    end
  end
  for i = 1, math.min(#left, MAX_ASKED) do
    local bufnr = buffers[left[i].path]
    if bufnr then
      table.insert(asked, { place = left[i], means_it = begin_asking(of, plan, left[i], bufnr) })
    end
  end
  for _, each in ipairs(asked) do -- all are asked by now: the server answers one while another is on its way
    if each.means_it() then
      local place = each.place
      return ('%s:%d'):format(access.shown(place.path, of.ctx.root), place.line), true, place
    end
  end
  return nil, not more and #left <= MAX_ASKED
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
  if clients.supports(of.client, 'textDocument/definition', of.spot.bufnr) then
    local found = begin_definitions(of, plan, params, of.spot.bufnr)()[1]
    if found then
      return found.file.bufnr, found.at
    end
  end
  return of.spot.bufnr, params.position
end

--- The definition that has the new name already, as an error message.
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return string?
function M.conflict(of, plan)
  local places, more = M.places(of, of.new, 1)
  if #places == 0 and not more then
    return nil
  end
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
