--- What is asked before a rename: may it be, what would change, and does that leave anything out?
---
--- Receives: what is to be renamed, and the server that does it.
--- Sends: changes of all places, or why there are none.
--- Does not know about: how they are applied and checked afterwards (rename.lua).

local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local left_out = require('mcp-tools.editor.lsp.rename_left_out')
local lsp = require('mcp-tools.editor.lsp')
local navigation = require('mcp-tools.editor.lsp.navigation')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.lsp.position')
local request = require('mcp-tools.editor.lsp.request')
local wait = require('mcp-tools.editor.lsp.wait')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local M = {}

M.METHOD = 'textDocument/rename'
--- Asked again for so long when a place is left out, ms.
local PATIENCE_MS = 6000
--- A server that is told of a file has looked at it by then, ms.
local REMINDED_MS = 1200

---@class mcp-tools.lsp.Renaming
---@field ctx mcp-tools.Ctx
---@field client vim.lsp.Client
---@field spot mcp-tools.lsp.Spot
---@field old string
---@field new string

--- Has a server look at a file again that it may have let go when it was closed.
---@param of mcp-tools.lsp.Renaming
---@param path string resolved
local function remind(of, path)
  disk.tell_servers(path, 1)
  wait.pause(of.ctx, REMINDED_MS)
end

--- Asks whether the thing at a place can be renamed, and how it is called.
---@param of mcp-tools.lsp.Renaming
---@return fun(): lsp.PrepareRenameResult?, mcp-tools.Error? answer waits for it
local function begin_prepare(of)
  local at = lsp.place(of.spot.bufnr, of.spot.line, of.spot.column)(of.client)
  return request.begin(of.ctx, of.client, 'textDocument/prepareRename', at, of.spot.bufnr)
end

---@param of mcp-tools.lsp.Renaming
---@return fun(): table?, mcp-tools.Error? answer waits for the changes
local function begin_rename(of)
  local params = lsp.place(of.spot.bufnr, of.spot.line, of.spot.column, { newName = of.new })(of.client)
  return request.begin(of.ctx, of.client, M.METHOD, params, of.spot.bufnr)
end

--- How the thing is called, by what a server said of it.
---@param of mcp-tools.lsp.Renaming
---@param result table of `prepareRename`
---@param word string at the place
---@return string
local function name_in(of, result, word)
  local range = result.range or result.start and result
  if not range or range.start.line ~= range['end'].line then
    return result.placeholder or word
  end
  local line = vim.api.nvim_buf_get_lines(of.spot.bufnr, range.start.line, range.start.line + 1, false)[1] or ''
  local first = position.byte(line, range.start.character, of.client.offset_encoding)
  local last = position.byte(line, range['end'].character, of.client.offset_encoding)
  return line:sub(first + 1, last)
end

---@class mcp-tools.lsp.RenameAsked
---@field change fun(): table?, mcp-tools.Error? waits for what the server would change
---@field places mcp-tools.lsp.Named[]
---@field more boolean there are others
---@field again boolean? the server was asked again, because it had left out a place

--- Asks for all that a rename needs at once: whether it can be, what would change, and where the text has the name.
---@param of mcp-tools.lsp.Renaming its `old` is set
---@param beside fun() called when the server has been asked
---@return mcp-tools.lsp.RenameAsked?
---@return mcp-tools.Error? err it cannot be renamed
function M.begin(of, beside)
  local word = navigation.word(of.spot)
  local provider = of.client.server_capabilities.renameProvider
  local prepare = type(provider) == 'table' and provider.prepareProvider and begin_prepare(of)
  local asked = { change = begin_rename(of) }
  beside()
  of.old = word
  if word ~= '' then
    asked.places, asked.more = left_out.places(of)
  end
  if prepare then
    local result, err = prepare()
    if not result and word ~= '' then
      remind(of, paths.resolve(vim.api.nvim_buf_get_name(of.spot.bufnr)))
      result, err = begin_prepare(of)()
      asked.change = begin_rename(of)
      beside()
    end
    if not result then
      local text = 'what stands at %s cannot be renamed%s; line and column must be on a name of this project'
      local why = err and (' (%s)'):format(err.message) or ''
      return nil, errors.new('not_found', text:format(navigation.name(of.spot), why))
    end
    of.old = name_in(of, result, word)
  end
  if of.old ~= word or word == '' then
    asked.places, asked.more = left_out.places(of)
  end
  return asked
end

--- A plan that leaves nothing out.
---@param of mcp-tools.lsp.Renaming
---@param asked mcp-tools.lsp.RenameAsked
---@return mcp-tools.lsp.Plan?
---@return boolean|mcp-tools.Error sure
function M.complete(of, asked)
  local over = vim.uv.hrtime() + PATIENCE_MS * 1e6
  while true do
    local change, err = asked.change()
    if not change then
      local text = ('%s does not rename what stands at %s'):format(of.client.name, navigation.name(of.spot))
      return nil, err or errors.new('not_found', text)
    end
    local plan
    plan, err = workspace_edit.plan(of.ctx, change, of.client)
    if not plan then
      return nil, err --[[@as mcp-tools.Error]]
    elseif plan.count == 0 then
      return nil, errors.new('not_found', ('%s finds nothing to rename'):format(of.client.name))
    end
    local place, sure, missing = left_out.find(of, plan, asked.places, asked.more)
    if not place then
      return plan, sure
    elseif vim.uv.hrtime() > over then
      local text = '%s would leave out %s, which has the old name; nothing has been changed.'
        .. ' It may still be indexing: wait with lsp_status, then try again'
      return nil, errors.new('busy', text:format(of.client.name, place))
    end
    remind(of, missing.path)
    asked.change, asked.again = begin_rename(of), true
    asked.places, asked.more = left_out.places(of)
  end
end

return M
