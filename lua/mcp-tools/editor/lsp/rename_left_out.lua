--- Left out of a rename: places that mean the renamed thing, of which a server that has not read all does not know.
---
--- Receives: a rename, and what its server would change.
--- Sends: one such place, and whether every place was looked at.
--- Does not know about: what is done about it.

local access = require('mcp-tools.files.access')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.lsp.position')
local request = require('mcp-tools.editor.lsp.request')
local search = require('mcp-tools.editor.search')

local M = {}

--- Places of the project that have the name; more are a word of the language.
local MAX_PLACES = 500
--- Places that are left out by the server and asked for what they mean.
local MAX_ASKED = 100

---@class mcp-tools.lsp.Named a place that has the old name
---@field path string resolved
---@field line integer from 1
---@field byte integer from 0

--- Places of the project's text that have the old name, or another one; unsaved changes included.
---@param of mcp-tools.lsp.Renaming
---@param name? string
---@param max? integer places
---@return mcp-tools.lsp.Named[]
---@return boolean more there are others, or nobody could look
function M.places(of, name, max)
  local found = search.find(of.ctx, { query = name or of.old, word = true }, { max = max or MAX_PLACES })
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
  local answer = request.begin(of.ctx, of.client, 'textDocument/definition', params, bufnr)
  return function()
    local result = answer()
    for _, item in ipairs(result and locations.items({ { result = result, client = of.client } }) or {}) do
      local path = item.uri:find('^file:') and paths.resolve(vim.uri_to_fname(item.uri))
      for _, file in ipairs(plan.files) do
        for _, each in ipairs(file.edits) do
          if file.place == path and each.start_line == item.range.start.line then
            return true
          end
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
function M.find(of, plan, places, more)
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

return M
