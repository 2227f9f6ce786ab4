--- Checks before a rename: places that the server would leave out, and definitions that already have the new name.
---
--- A server that has not read the whole project renames a part of it and reports success. So the project is searched
--- for the old name, and the server is asked for the definitions of the remaining places.

local access = require('mcp-tools.privacy.access')
local clients = require('mcp-tools.editor.lsp.clients')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.lsp.position')
local request = require('mcp-tools.editor.lsp.request')
local search = require('mcp-tools.editor.search')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Maximum number of places with the name; a more common name is not checked.
local MAX_PLACES = 500
--- Maximum number of left-out places that the server is asked about.
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

--- Searches the project, unsaved changes included, for a name.
---@param rename mcp-tools.lsp.Renaming
---@param name string
---@param max? integer number of places
---@return mcp-tools.lsp.Named[]
---@return boolean more there are more places, or the search failed
function M.places(rename, name, max)
  local found = search.find(rename.ctx, { query = name, word = true }, { max = max or MAX_PLACES })
  local places = {}
  for _, file in ipairs(found and found.files or {}) do
    for _, match in ipairs(file.matches) do
      table.insert(places, { path = file.path, line = match.row + 1, byte = match.col })
    end
  end
  return places, not found or found.cut or found.skipped > 0
end

--- Returns the places that a plan does not change.
---@param plan mcp-tools.lsp.Plan
---@param places mcp-tools.lsp.Named[]
---@return mcp-tools.lsp.Named[]
local function unchanged(plan, places)
  local changed = {}
  for _, file in ipairs(plan.files) do
    for _, each in ipairs(file.edits) do
      changed[('%s %d %d'):format(file.resolved, each.start_line + 1, each.start_col)] = true
    end
  end
  return vim.tbl_filter(function(place)
    return not changed[('%s %d %d'):format(place.path, place.line, place.byte)]
  end, places)
end

--- Returns the buffer of a file if it is served by the renaming client.
---@param rename mcp-tools.lsp.Renaming
---@param path string
---@return integer?
local function served(rename, path)
  local bufnr = rename.ctx:await(function(done)
    open.load(path, done, rename.ctx)
  end)
  local list = bufnr and lsp.clients(rename.ctx, bufnr, 'textDocument/definition')
  return list and vim.list_contains(list, rename.client) and bufnr or nil
end

--- Asks for the definitions of a position that are in files of the plan.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param params table
---@param bufnr integer
---@return fun(): { file: mcp-tools.lsp.FileChange, at: lsp.Position }[] wait returns the answer
local function begin_definitions(rename, plan, params, bufnr)
  local answer = request.begin(rename.ctx, rename.client, 'textDocument/definition', params, bufnr)
  return function()
    local result, found = answer(), {}
    for _, item in ipairs(result and locations.items({ { result = result, client = rename.client } }) or {}) do
      local path = item.uri:find('^file:') and paths.resolve(vim.uri_to_fname(item.uri))
      for _, file in ipairs(plan.files) do
        if file.resolved == path then
          table.insert(found, { file = file, at = item.range.start })
        end
      end
    end
    return found
  end
end

--- Asks whether a place refers to the renamed symbol.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param place mcp-tools.lsp.Named
---@param bufnr integer
---@return fun(): boolean wait returns the answer
local function begin_asking(rename, plan, place, bufnr)
  local line = vim.api.nvim_buf_get_lines(bufnr, place.line - 1, place.line, false)[1] or ''
  local params = lsp.document(bufnr, {
    position = { line = place.line - 1, character = position.units(line, place.byte, rename.client.offset_encoding) },
  })
  local answer = begin_definitions(rename, plan, params, bufnr)
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

--- Whether the servers of a buffer may know a file.
---@param bufnr integer
---@param path string
---@return boolean
local function is_same_language(bufnr, path)
  local own = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(bufnr), ':e')
  return vim.fn.fnamemodify(path, ':e') == own
    or vim.filetype.match({ filename = path }) == vim.bo[bufnr].filetype and vim.bo[bufnr].filetype ~= ''
end

--- Returns a place that refers to the renamed symbol and would keep the old name.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param places mcp-tools.lsp.Named[]
---@param more boolean there are more places
---@return string? missed
---@return boolean sure every place was checked
---@return mcp-tools.lsp.Named? place of the missed one
function M.left_out(rename, plan, places, more)
  local left, asked = unchanged(plan, places), {}
  local readable, buffers = access.files(rename.ctx.root), {}
  for i = 1, math.min(#left, MAX_ASKED) do
    local place = left[i]
    if buffers[place.path] == nil then
      local known = readable(place.path) and is_same_language(rename.spot.bufnr, place.path)
      buffers[place.path] = known and served(rename, place.path) or false
    end
  end
  for i = 1, math.min(#left, MAX_ASKED) do
    local bufnr = buffers[left[i].path]
    if bufnr then
      table.insert(asked, { place = left[i], means_it = begin_asking(rename, plan, left[i], bufnr) })
    end
  end
  for _, each in ipairs(asked) do -- after all requests were sent, so that the server works on them in the meantime
    if each.means_it() then
      local place = each.place
      return ('%s:%d'):format(access.shown(place.path, rename.ctx.root), place.line), true, place
    end
  end
  return nil, not more and #left <= MAX_ASKED
end

--- Returns the symbol at a position, and the symbols of its scope.
---@param tree mcp-tools.SymbolNode[]
---@param at lsp.Position
---@return mcp-tools.SymbolNode? own nil if servers do not list it, such as a local variable
---@return mcp-tools.SymbolNode[] siblings
---@return string? container
local function scope_of(tree, at)
  local own = symbol_tree.each(tree, function(node)
    local row, column = unpack(node.at)
    return row == at.line and column <= at.character and at.character <= column + #node.name and node
  end)
  local container
  if own then
    container = own.parent
  else
    container = symbol_tree.around(tree, at.line + 1)
  end
  return own, container and container.children or tree, container and container.name
end

--- Returns the buffer and position of the definition of the renamed symbol.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return integer bufnr
---@return lsp.Position
local function definition(rename, plan)
  local params = lsp.place(rename.spot.bufnr, rename.spot.line, rename.spot.column)(rename.client)
  if clients.supports(rename.client, 'textDocument/definition', rename.spot.bufnr) then
    local found = begin_definitions(rename, plan, params, rename.spot.bufnr)()[1]
    if found then
      return found.file.bufnr, found.at
    end
  end
  return rename.spot.bufnr, params.position
end

--- Returns an error message if a definition in the same scope already has the new name.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return string?
function M.conflict(rename, plan)
  local places, more = M.places(rename, rename.new, 1)
  if #places == 0 and not more then
    return nil
  end
  local bufnr, at = definition(rename, plan)
  local method = 'textDocument/documentSymbol'
  if not clients.supports(rename.client, method, bufnr) then
    return nil
  end
  local result = request.ask(rename.ctx, rename.client, method, lsp.document(bufnr), bufnr)
  local tree = symbol_tree.of_server(result, rename.client.offset_encoding, time_slice.of(rename.ctx))
  local own, siblings, container = scope_of(tree, at)
  for _, node in ipairs(siblings) do
    if node.name == rename.new and node ~= own then
      local where = container or access.shown(vim.api.nvim_buf_get_name(bufnr), rename.ctx.root)
      local text = 'conflict: %s already defines %s (line %d); nothing was changed'
      return text:format(where, rename.new, node.at[1] + 1)
    end
  end
end

return M
