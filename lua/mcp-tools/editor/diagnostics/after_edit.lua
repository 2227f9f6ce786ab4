--- Adds diagnostics to the answer of an edit: those of the new text, and new errors in other open files.

local access = require('mcp-tools.privacy.access')
local clients = require('mcp-tools.editor.lsp.clients')
local findings = require('mcp-tools.editor.diagnostics.findings')
local fresh = require('mcp-tools.editor.diagnostics.fresh')
local list = require('mcp-tools.editor.diagnostics.list')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Maximum wait for the file, ms: the edit is done and its answer waits.
local WAIT_MS = 5000
--- Maximum wait for other open files afterwards, ms.
local REST_MS = 2000
--- Maximum number of rows for this file, and for others.
local MAX_ROWS = 20
--- Maximum number of other open files.
local MAX_OTHERS = 50

--- Argument of tools that edit.
M.ARG = { type = 'boolean', description = 'Add fresh diagnostics, and new errors in other open files' }

---@param why string?
---@return table
local function unknown(why)
  return { checked = 'unknown', why = (why and why .. '; ' or '') .. 'ask diagnostics_wait' }
end

--- Returns why no server can report soon.
---@param bufnr integer
---@return string?
local function absent(bufnr)
  local starting = clients.starting(bufnr)
  if #starting == 0 then
    return clients.missing(bufnr).message
  end
  for _, client in ipairs(starting) do
    if not client.initialized and not clients.is_stopped(client) then
      return client.name .. ' is still starting'
    end
  end
end

---@param ctx mcp-tools.Ctx inside a coroutine
---@param bufnr integer
---@param path string
---@return table
local function of_file(ctx, bufnr, path)
  local why = absent(bufnr)
  if why then
    return unknown(why)
  end
  local answer, err = list.list(ctx, { path = path, wait_ms = WAIT_MS, offset = 0, limit = MAX_ROWS })
  if not answer then
    return unknown(err and err.message)
  elseif answer.checked ~= 'yes' and answer.checked ~= 'assumed' then
    return unknown(answer.why)
  elseif answer.checked == 'assumed' then -- the rows are of an older text, and a total of 0 would mean "no errors"
    return { checked = 'assumed', why = answer.why }
  end
  return {
    checked = 'yes',
    total = answer.total,
    rows = answer.diagnostics,
    more = answer.next_offset and 'diagnostics_list has the others' or nil,
  }
end

--- Returns errors of other files by path.
---@param ctx mcp-tools.Ctx
---@param but integer a buffer to skip
---@return table<string, mcp-tools.diagnostics.Finding[]>
local function errors_elsewhere(ctx, but)
  local by_path = {}
  for _, file in ipairs((findings.everywhere(ctx, { severity = 'error' }, time_slice.of(ctx)))) do
    if file.bufnr ~= but then
      by_path[file.path] = file.list
    end
  end
  return by_path
end

--- Returns other open files of the servers of a buffer.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@return integer[]
local function others(ctx, bufnr)
  local found, open = {}, {}
  for _, client in ipairs(clients.of(bufnr)) do
    for other in pairs(client.attached_buffers) do
      if
        other ~= bufnr
        and not found[other]
        and vim.api.nvim_buf_is_loaded(other)
        and access.buffer(other, ctx.root)
      then
        found[other] = true
        table.insert(open, other)
      end
    end
  end
  table.sort(open)
  return vim.list_slice(open, 1, MAX_OTHERS)
end

--- Adds errors that other open files have had since the edit.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param open integer[] other open files
---@param before table<string, mcp-tools.diagnostics.Finding[]>
---@param answer table
local function add_elsewhere(ctx, bufnr, open, before, answer)
  if #open == 0 then
    answer.of = 'this file'
    return
  end
  fresh.wait_for_others(ctx, clients.of(bufnr), open, REST_MS)
  local rows, pause = {}, time_slice.of(ctx)
  for path, now in vim.spairs(errors_elsewhere(ctx, bufnr)) do
    local new = findings.difference(before[path] or {}, now, pause)
    for _, row in ipairs(findings.rows(new)) do
      table.insert(rows, ('%s:%s'):format(path, row))
    end
  end
  answer.of = ('this file and %d other open files'):format(#open)
  answer.elsewhere = #rows > 0 and vim.list_slice(rows, 1, MAX_ROWS) or nil
  answer.more_elsewhere = #rows > MAX_ROWS and #rows - MAX_ROWS or nil
end

--- Adds diagnostics to the answer of an edit, if requested.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { diagnostics: boolean? }
---@param answer table? nil if the edit has failed
---@param place integer|string the buffer, or the resolved path of a file that may not be open
---@return table? answer
function M.add(ctx, args, answer, place)
  if answer and args.diagnostics then
    local path = type(place) == 'number' and vim.api.nvim_buf_get_name(place) or place --[[@as string]]
    local found, err = target.await(ctx, { path = path }, { load = true })
    if path == '' or not found then
      answer.diagnostics = unknown(path == '' and 'the buffer has no file' or err and err.message)
      return answer
    end
    local open = others(ctx, found.bufnr)
    local before = #open > 0 and errors_elsewhere(ctx, found.bufnr) or {}
    answer.diagnostics = of_file(ctx, found.bufnr, path)
    if answer.diagnostics.checked ~= 'unknown' then
      add_elsewhere(ctx, found.bufnr, open, before, answer.diagnostics)
    end
  end
  return answer
end

return M
