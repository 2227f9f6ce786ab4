--- Diagnostics of files for answers: listed, awaited after a change, and added to the answers of edits.

local access = require('mcp-tools.privacy.access')
local buffer_target = require('mcp-tools.editor.buffer.target')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local findings = require('mcp-tools.editor.diagnostics.findings')
local fresh = require('mcp-tools.editor.diagnostics.fresh')
local lsp = require('mcp-tools.editor.lsp')
local per_session = require('mcp-tools.util.per_session')
local redact = require('mcp-tools.privacy.redact')
local server_state = require('mcp-tools.editor.lsp.server_state')
local time_slice = require('mcp-tools.util.time_slice')
local watched_files = require('mcp-tools.editor.lsp.watched_files')

local M = {}

--- Note for a page after the last one.
local BEYOND = 'offset: %d is beyond the end (total %d)'

--- How certain the answer of `diagnostics_wait` is.
local CHECKED = {
  yes = 'yes: version %d, %.1f s',
  assumed = 'assumed: the servers published nothing new; this does not mean that there are no errors',
  no = 'no: the rows may be of an older text',
}

--- What a list for the whole project covers.
local CHECKED_OPEN = '%d open files only; closed files were not checked: give path to check one'

--- Maximum number of remaining rows; the new ones matter more.
local MAX_REMAINING = 50
--- Number of attempts to list diagnostics while the user types.
local TRIES = 3

--- Findings that each session received last, by file.
---@type fun(ctx: mcp-tools.Ctx): table<string, mcp-tools.diagnostics.Finding[]>
local seen_of = per_session(function()
  return {}
end)

---@param bufnr integer
---@return string
local function name_of(bufnr)
  return vim.api.nvim_buf_get_name(bufnr)
end

--- Returns the findings before the call read the disk.
---@param ctx mcp-tools.Ctx
---@param args { path: string?, bufnr: integer? }
---@return mcp-tools.diagnostics.Finding[]?
local function before_call(ctx, args)
  local found = buffers.find(args, { current = true })
  return found and found.bufnr and (findings.of(found.bufnr, {}, time_slice.of(ctx))) or nil
end

-- List ---------------------------------------------------------------------------------------------------------

---@param ctx mcp-tools.Ctx
---@param args table
---@return table
local function project(ctx, args)
  local pause = time_slice.of(ctx)
  -- Before the list: what a server publishes during a pause is not in it.
  local unsure, open = { unknown = {}, stale = {} }, 0
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    local listed = vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == '' and name_of(bufnr) ~= ''
    listed = listed and access.buffer(bufnr, ctx.root)
    open = open + (listed and 1 or 0)
    local list = listed and unsure[fresh.state(bufnr)]
    if list and #list < 20 then
      table.insert(list, access.shown(name_of(bufnr), ctx.root))
    end
  end
  local files, withheld = findings.everywhere(ctx, args, pause)
  local checked = CHECKED_OPEN:format(open)
  local answer = { checked = checked, total = 0, files = {}, withheld = withheld }
  local all, left, skip = {}, args.limit, args.offset
  for _, file in ipairs(files) do
    vim.list_extend(all, file.list)
    local part = vim.list_slice(file.list, skip + 1, skip + left)
    skip = math.max(0, skip - #file.list)
    if #part > 0 then
      left = left - #part
      table.insert(answer.files, { path = file.path, diagnostics = findings.rows(part) })
    end
  end
  answer.total, answer.counts = #all, findings.counts(all)
  if args.offset + args.limit < #all then
    answer.next_offset = args.offset + args.limit
  end
  if args.offset > 0 and args.offset >= #all then
    answer.why = BEYOND:format(args.offset, #all)
  end
  answer.unknown = #unsure.unknown > 0 and unsure.unknown or nil
  answer.stale = #unsure.stale > 0 and unsure.stale or nil
  return answer
end

---@param bufnr integer
---@param outcome mcp-tools.diagnostics.Checked
---@param why string?
---@return 'yes'|'assumed'|'stale'|'unknown'
---@return string?
local function checked(bufnr, outcome, why)
  if outcome ~= 'no' then
    return outcome, why
  end
  local state = fresh.state(bufnr)
  return state == 'yes' and 'stale' or state, why
end

--- Waits for the servers of a buffer and their diagnostics.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param ms number
---@return mcp-tools.diagnostics.Checked
---@return string? why
---@return mcp-tools.Error? err there is no server
local function freshen(ctx, bufnr, ms)
  local list, err = lsp.clients(ctx, bufnr)
  if not list then
    return 'no', err and err.message, err
  end
  watched_files.notify_servers(ctx)
  return fresh.wait(ctx, bufnr, list, ms)
end

--- Lists diagnostics.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
function M.list(ctx, args)
  server_state.ensure_listening()
  if args.project then
    return project(ctx, args)
  end
  local target, err = lsp.target(ctx, args)
  if not target then
    return nil, err
  end
  local outcome, why = freshen(ctx, target.bufnr, args.wait_ms)
  local pause = time_slice.of(ctx)
  redact.refresh(pause)
  local list, steady, state, reason
  for _ = 1, TRIES do
    -- Before the list: what is published during a pause is not in it.
    state, reason = checked(target.bufnr, outcome, why)
    list, steady = findings.of(target.bufnr, args, pause)
    if steady then
      break
    end
    outcome = 'no' -- the servers have checked another text
  end
  if not steady then
    return nil, errors.new('busy', ('%s keeps changing; try again'):format(target.shown))
  end
  if not args.severity and not args.min_severity and not args.source then
    seen_of(ctx)[name_of(target.bufnr)] = list
  end
  local part = vim.list_slice(list, args.offset + 1, math.min(#list, args.offset + args.limit))
  if not args.path and state == 'yes' and #part > 0 then -- an empty list would not show that the file was checked
    return vim.tbl_map(function(each)
      return each.item
    end, part)
  elseif args.offset > 0 and args.offset >= #list then
    reason = BEYOND:format(args.offset, #list) .. (reason and '; ' .. reason or '')
  end
  return {
    path = target.shown,
    checked = state,
    why = reason,
    total = #list,
    counts = findings.counts(list --[[@as mcp-tools.diagnostics.Finding[] ]]),
    diagnostics = findings.rows(part),
    next_offset = args.offset + #part < #list and args.offset + #part or nil,
  }
end

-- Wait --------------------------------------------------------------------------------------------------------

--- Waits for diagnostics of the current text and compares them with the previous ones.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
function M.wait(ctx, args)
  server_state.ensure_listening()
  local begun = vim.uv.hrtime()
  local seen, before = seen_of(ctx), before_call(ctx, args)
  local target, err = lsp.target(ctx, args)
  if not target then
    return nil, err
  end
  local bufnr = target.bufnr
  before = seen[name_of(bufnr)] or before or {}
  local outcome, why, missing = freshen(ctx, bufnr, args.timeout_ms)
  if missing then
    return nil, missing
  elseif not vim.api.nvim_buf_is_loaded(bufnr) then
    return nil, errors.new('not_found', target.shown .. ' was closed')
  end
  local pause = time_slice.of(ctx)
  redact.refresh(pause)
  local all, steady = findings.of(bufnr, {}, pause)
  if not steady then
    outcome, why = 'no', 'the text changed during the check'
  end
  if outcome ~= 'no' then
    seen[name_of(bufnr)] = all
  end
  local text = CHECKED[outcome]
  if outcome == 'yes' then
    local version = vim.lsp.util.buf_versions[bufnr] or vim.api.nvim_buf_get_changedtick(bufnr)
    text = text:format(version, (vim.uv.hrtime() - begun) / 1e9)
  end
  before = findings.at_least(before, args.min_severity)
  local now = findings.at_least(all, args.min_severity)
  local new, fixed, old = findings.difference(before, now, pause) -- the buffer may be closed after this
  return {
    path = target.shown,
    settled = outcome == 'yes',
    why = why,
    new = findings.rows(new, args.limit),
    fixed = findings.rows(fixed, args.limit),
    remaining = findings.rows(old, MAX_REMAINING),
    total = #now,
    checked = text,
  }
end

-- After an edit ------------------------------------------------------------------------------------------------

--- Maximum wait for the file, ms: the edit is done and its answer waits.
local WAIT_MS = 5000
--- Maximum wait for other open files afterwards, ms.
local REST_MS = 2000
--- Maximum number of rows for this file, and for others.
local MAX_ROWS = 20
--- Maximum number of other open files.
local MAX_OTHERS = 50

--- Argument of tools that edit.
M.EDIT_ARG = { type = 'boolean', description = 'Add fresh diagnostics, and new errors in other open files' }

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
  local answer, err = M.list(ctx, { path = path, wait_ms = WAIT_MS, offset = 0, limit = MAX_ROWS })
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
---@param except integer a buffer to skip
---@return table<string, mcp-tools.diagnostics.Finding[]>
local function errors_elsewhere(ctx, except)
  local by_path = {}
  for _, file in ipairs((findings.everywhere(ctx, { severity = 'error' }, time_slice.of(ctx)))) do
    if file.bufnr ~= except then
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
function M.after_edit(ctx, args, answer, place)
  if answer and args.diagnostics then
    local path = type(place) == 'number' and vim.api.nvim_buf_get_name(place) or place --[[@as string]]
    local found, err = buffer_target.await(ctx, { path = path }, { load = true })
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
