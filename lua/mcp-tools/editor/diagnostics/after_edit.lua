--- Adds diagnostics to the answers of tools that edit: of the edited files, and new errors in other open files.

local access = require('mcp-tools.privacy.access')
local buffer_target = require('mcp-tools.editor.buffer.target')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local findings = require('mcp-tools.editor.diagnostics.findings')
local fresh = require('mcp-tools.editor.diagnostics.fresh')
local list = require('mcp-tools.editor.diagnostics.list')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Maximum wait for the edited files, and afterwards for other open files, ms. It delays the answer.
local WAIT_MS, REST_MS = 5000, 2000
--- Maximum number of rows for the edited files, and for others.
local MAX_ROWS = 20
--- Maximum number of edited files, and of other open files.
local MAX_FILES, MAX_OTHERS = 10, 50

--- Argument of tools that edit.
M.ARG = {
  type = 'boolean',
  description = 'Add diagnostics of the new text',
  default = true,
  hidden = true,
}

---@class mcp-tools.EditDiagnostics of one file
---@field path string
---@field checked 'yes'|'assumed'|'unknown'
---@field why string? why it is not checked
---@field total integer?
---@field rows string[]? `line:column severity code: message`; of new ones if `only_new`, else of errors
---@field only_new boolean?

--- Returns why no server can report soon; '' if the buffer has no server.
---@param bufnr integer
---@return string?
local function why_no_server(bufnr)
  local starting = clients.starting(bufnr)
  if #starting == 0 and #clients.of(bufnr) == 0 then
    return ''
  end
  for _, client in ipairs(starting) do
    if not client.initialized and not clients.is_stopped(client) then
      return client.name .. ' is still starting'
    end
  end
end

---@param ctx mcp-tools.Ctx inside a coroutine
---@param found mcp-tools.Target
---@param ms number
---@return mcp-tools.EditDiagnostics? diagnostics nil: the file has no server
local function of_file(ctx, found, ms)
  local why = why_no_server(found.bufnr)
  if why == '' then
    return nil
  elseif why then
    return { path = found.shown, checked = 'unknown', why = why }
  end
  local was_open = not buffers.is_unseen(found.bufnr)
  local answer, err =
    list.list(ctx, { bufnr = found.bufnr, timeout_ms = ms, offset = 0, limit = MAX_ROWS, is_edit = true })
  if not answer then
    return { path = found.shown, checked = 'unknown', why = err and err.message }
  elseif answer.checked == 'yes' then
    -- If the file was not listed before, an old row whose line has moved would be reported as new.
    local only_new = was_open and answer.was_listed == true
    local rows = only_new and answer.new
      or vim.tbl_filter(function(row)
        return row:find('^%d+:%d+ error') ~= nil
      end, answer.diagnostics)
    return { path = found.shown, checked = 'yes', total = answer.total, rows = rows, only_new = only_new }
  end -- without rows and total: they are of an older text
  local checked = answer.checked == 'assumed' and 'assumed' or 'unknown'
  return { path = found.shown, checked = checked, why = answer.why }
end

--- Returns errors of other files by path.
---@param ctx mcp-tools.Ctx
---@param skipped table<integer, true> buffers
---@return table<string, mcp-tools.diagnostics.Finding[]>
local function errors_elsewhere(ctx, skipped)
  local by_path = {}
  for _, file in ipairs((findings.everywhere(ctx, { severity = 'error' }, time_slice.of(ctx)))) do
    if not skipped[file.bufnr] then
      by_path[file.path] = file.list
    end
  end
  return by_path
end

--- Returns other open files of the servers of the edited ones.
---@param ctx mcp-tools.Ctx
---@param edited table<integer, true>
---@return integer[] open
---@return vim.lsp.Client[] servers
local function others(ctx, edited)
  local found, open, servers, known = {}, {}, {}, {}
  for bufnr in vim.spairs(edited) do
    for _, client in ipairs(vim.api.nvim_buf_is_loaded(bufnr) and clients.of(bufnr) or {}) do
      if not known[client.id] then
        known[client.id] = true
        table.insert(servers, client)
        for other in pairs(client.attached_buffers) do
          local is_open = vim.api.nvim_buf_is_loaded(other) and not edited[other] and not found[other]
          if is_open and access.buffer(other, ctx.root) then
            found[other] = true
            table.insert(open, other)
          end
        end
      end
    end
  end
  table.sort(open)
  return vim.list_slice(open, 1, MAX_OTHERS), servers
end

--- Adds `diagnostics` of the edited files, and rows `elsewhere` for new errors in other open files, to the answer of an
--- edit.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { diagnostics: boolean? }
---@param answer table
---@param places (integer|string)[] edited buffers, and resolved paths of files that may not be open
function M.add(ctx, args, answer, places)
  if not args.diagnostics or not next(vim.lsp.get_clients()) then
    return
  end
  local targets, edited = {}, {}
  for i = 1, math.min(#places, MAX_FILES) do
    local place = places[i]
    local asked = type(place) == 'number' and { bufnr = place } or { path = place }
    local found = buffer_target.await(ctx, asked, { load = true })
    if found and found.path then
      table.insert(targets, found)
      edited[found.bufnr] = true
    end
  end
  answer.unchecked = #places > MAX_FILES and #places - MAX_FILES or nil
  local open, servers = others(ctx, edited)
  local skipped = vim.deepcopy(edited)
  for _, bufnr in ipairs(open) do
    -- Errors in a file that no server has checked yet are not new when they are published.
    local is_unchecked = fresh.state(bufnr) ~= 'yes' and not next(vim.diagnostic.count(bufnr))
    skipped[bufnr] = skipped[bufnr] or is_unchecked or nil
  end
  local before = #open > 0 and errors_elsewhere(ctx, skipped) or {}
  local deadline, diagnostics, is_checked = vim.uv.hrtime() + WAIT_MS * 1e6, {}, false
  for _, found in ipairs(targets) do
    local one = of_file(ctx, found, math.max((deadline - vim.uv.hrtime()) / 1e6, 1))
    table.insert(diagnostics, one)
    is_checked = is_checked or one ~= nil and one.checked ~= 'unknown'
  end
  answer.diagnostics = #diagnostics > 0 and diagnostics or nil
  if #open == 0 or not is_checked then
    return
  end
  fresh.wait_for_others(ctx, servers, open, REST_MS)
  local rows, files, pause = {}, 0, time_slice.of(ctx)
  for path, now in vim.spairs(errors_elsewhere(ctx, skipped)) do
    local new = findings.rows((findings.difference(before[path] or {}, now, pause)))
    files = files + (#new > 0 and 1 or 0)
    for _, row in ipairs(new) do
      table.insert(rows, ('%s:%s'):format(path, row))
    end
  end
  if #rows > 0 then
    answer.elsewhere = { total = #rows, files = files, rows = vim.list_slice(rows, 1, MAX_ROWS) }
  end
end

return M
