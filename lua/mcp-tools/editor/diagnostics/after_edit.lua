--- Diagnostics in the answer of an edit: what the servers say of the new text, when they say it soon.
---
--- Receives: the answer of a tool that has edited one file.
--- Sends: the answer with `diagnostics`: those of the text as it is now, or that they are unknown and why. Never those
--- of an older text.
--- Does not know about: what was edited, what is new among them (list.lua, for `diagnostics_wait`).

local attached = require('mcp-tools.editor.lsp.attached')
local clients = require('mcp-tools.editor.lsp.clients')
local list = require('mcp-tools.editor.diagnostics.list')
local target = require('mcp-tools.editor.buffer.target')

local M = {}

--- An edit has been made and its answer waits, ms.
local WAIT_MS = 5000
--- Rows of an answer.
local MAX_ROWS = 20

--- The argument of tools that edit.
M.ARG = { type = 'boolean', description = 'Add fresh diagnostics' }

---@param why string?
---@return table
local function unknown(why)
  return { checked = 'unknown', why = (why and why .. '; ' or '') .. 'ask diagnostics_wait' }
end

--- Why no server can say something soon.
---@param bufnr integer
---@return string?
local function absent(bufnr)
  local starting = clients.starting(bufnr)
  if #starting == 0 then
    return attached.missing(bufnr).message
  end
  for _, client in ipairs(starting) do
    if not client.initialized and not clients.is_stopped(client) then
      return client.name .. ' is still starting'
    end
  end
end

---@param ctx mcp-tools.Ctx in a coroutine
---@param path string
---@return table
local function of_file(ctx, path)
  local found, err = target.await(ctx, { path = path }, { load = true })
  local why = not found and err.message or found and absent(found.bufnr)
  if why then
    return unknown(why)
  end
  local args = { path = path, wait_ms = WAIT_MS, offset = 0, limit = MAX_ROWS }
  local answer
  answer, err = list.list(ctx, args)
  if not answer then
    return unknown(err and err.message)
  elseif answer.checked ~= 'yes' then
    return unknown(answer.why)
  end
  return {
    checked = 'yes',
    total = answer.total,
    rows = answer.diagnostics,
    more = answer.next_offset and 'diagnostics_list has the others' or nil,
  }
end

--- Adds diagnostics to the answer of an edit, if that was asked for.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { diagnostics: boolean? }
---@param answer table? nothing where the edit has failed
---@param place integer|string the buffer, or the resolved path of a file that may not be open
---@return table? answer
function M.add(ctx, args, answer, place)
  if answer and args.diagnostics then
    local path = type(place) == 'number' and vim.api.nvim_buf_get_name(place) or place --[[@as string]]
    answer.diagnostics = path ~= '' and of_file(ctx, path) or unknown('the buffer has no file')
  end
  return answer
end

return M
