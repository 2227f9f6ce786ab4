--- Lists the diagnostics of the current text of files, and what is new or fixed since the client last listed them.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local findings = require('mcp-tools.editor.diagnostics.findings')
local fresh = require('mcp-tools.editor.diagnostics.fresh')
local lsp = require('mcp-tools.editor.lsp')
local position = require('mcp-tools.editor.position')
local per_session = require('mcp-tools.util.session').keep
local redact = require('mcp-tools.privacy.redact')
local result = require('mcp-tools.editor.result')
local server_state = require('mcp-tools.editor.lsp.server_state')
local time_slice = require('mcp-tools.util.time_slice')
local watched_files = require('mcp-tools.editor.lsp.watched_files')

local M = {}

--- Explanations of the values of `checked` other than `yes`.
local CHECKED = {
  assumed = 'the servers published nothing new; this does not mean that there are no errors',
  stale = 'the rows may be of an older text',
  unknown = 'no server has checked the text',
}

--- Note of an answer for all open files.
local OPEN_ONLY = 'closed files were not checked: give path to check one'
--- Note for an offset beyond the last row.
local BEYOND = 'offset: %d is beyond the end (total %d)'

--- Maximum number of open files to wait for.
local MAX_WAITED = 50
--- Maximum number of listed files whose text was not checked.
local MAX_UNCHECKED = 20
--- Maximum number of rows for which source lines are added, and length of a source line in characters.
local MAX_SOURCES, SOURCE_WIDTH = 20, 100
--- Number of attempts to list diagnostics while the user types.
local TRIES = 3

--- The latest findings that each session has received, by file.
---@type fun(ctx: mcp-tools.Ctx|mcp-tools.Call): table<string, mcp-tools.diagnostics.Finding[]>, boolean
local seen_of = per_session(function()
  return {}
end)

---@param bufnr integer
---@return string
local function name_of(bufnr)
  return vim.api.nvim_buf_get_name(bufnr)
end

--- Returns the current findings of a file, before the call reads changes from disk.
---@param ctx mcp-tools.Ctx
---@param args { path: string?, bufnr: integer? }
---@return mcp-tools.diagnostics.Finding[]?
local function findings_before(ctx, args)
  local found = buffers.find(args, { current = true })
  return found and found.bufnr and (findings.of(found.bufnr, {}, time_slice.of(ctx))) or nil
end

--- Waits for the servers of a buffer and their diagnostics.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@param ms number
---@return mcp-tools.diagnostics.Checked
---@return string? why
local function wait_for_servers(ctx, bufnr, ms)
  local list, err = lsp.clients(ctx, bufnr)
  if not list then
    return 'no', err and err.message
  end
  watched_files.notify_servers(ctx)
  return fresh.wait(ctx, bufnr, list, ms)
end

---@param bufnr integer
---@param outcome mcp-tools.diagnostics.Checked
---@return 'yes'|'assumed'|'stale'|'unknown'
local function certainty(bufnr, outcome)
  if outcome ~= 'no' then
    return outcome
  end
  local state = fresh.state(bufnr)
  return state == 'yes' and 'stale' or state
end

--- Returns the source lines of findings.
---@param list mcp-tools.diagnostics.Finding[]
---@param pause fun()
---@return string[]
local function sources_of(list, pause)
  return vim.tbl_map(function(each)
    return (redact.quoted(position.cut(each.text, SOURCE_WIDTH), pause))
  end, list)
end

--- Returns the diagnostics of one file for its current text, and what has changed since the last listing.
---@param ctx mcp-tools.Ctx
---@param args table
---@return table?
---@return mcp-tools.Error? err
local function of_file(ctx, args)
  local seen, is_known = seen_of(ctx)
  local before = findings_before(ctx, args)
  local target, err = lsp.target(ctx, args)
  if not target then
    return nil, err
  end
  local bufnr = target.bufnr
  local was_listed = is_known and seen[name_of(bufnr)] ~= nil
  before = was_listed and seen[name_of(bufnr)] or before or {}
  local outcome, why = wait_for_servers(ctx, bufnr, args.timeout_ms)
  if not vim.api.nvim_buf_is_loaded(bufnr) then
    return nil, errors.new('not_found', target.shown .. ' was closed')
  end
  local pause = time_slice.of(ctx)
  redact.refresh(pause)
  local all, steady, state = {}, false, nil
  for _ = 1, TRIES do
    -- Determined before the list is read: diagnostics that are published in the meantime may not be in it.
    state = certainty(bufnr, outcome)
    all, steady = findings.of(bufnr, {}, pause)
    if steady then
      break
    end
    outcome = 'no' -- the servers have checked an older text
  end
  if not steady then
    return nil, errors.new('busy', ('%s keeps changing; try again'):format(target.shown))
  end
  if state == 'yes' or state == 'assumed' then
    seen[name_of(bufnr)] = all
  end
  local list = findings.filtered(all, args)
  -- Without a session, another client may have seen the findings in `seen`. For an edit, `before` is always valid.
  local compares = is_known or args.is_edit
  local new, fixed = findings.difference(compares and findings.filtered(before, args) or list, list, pause)
  local part = vim.list_slice(list, args.offset + 1, math.min(#list, args.offset + args.limit))
  if args.offset > 0 and args.offset >= #list then
    why = BEYOND:format(args.offset, #list) .. (why and '; ' .. why or '')
  end
  return {
    path = target.shown,
    checked = state,
    why = why,
    total = #list,
    counts = findings.counts(list),
    diagnostics = findings.rows(part),
    sources = #part <= MAX_SOURCES and sources_of(part, pause) or {},
    new = findings.rows(new, args.limit),
    fixed = findings.rows(fixed, args.limit),
    was_listed = args.is_edit and was_listed or nil,
    next_offset = args.offset + #part < #list and args.offset + #part or nil,
  }
end

--- Waits for the diagnostics of all open files.
---@param ctx mcp-tools.Ctx
---@param ms number
---@return table<string, string[]> unchecked certainty → paths
---@return integer open number of open files
local function wait_for_all(ctx, ms)
  local deadline, waited, open = vim.uv.hrtime() + ms * 1e6, 0, 0
  local unchecked = { assumed = {}, stale = {}, unknown = {} }
  watched_files.notify_servers(ctx)
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    local is_file = vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == '' and name_of(bufnr) ~= ''
    if is_file and access.buffer(bufnr, ctx.root) then
      open = open + 1
      local served = clients.of(bufnr)
      local outcome = 'no' ---@type mcp-tools.diagnostics.Checked
      if #served > 0 then
        disk.await(ctx, bufnr)
        waited = waited + 1
        if waited <= MAX_WAITED and vim.api.nvim_buf_is_loaded(bufnr) then
          outcome = fresh.wait(ctx, bufnr, served, math.max((deadline - vim.uv.hrtime()) / 1e6, 1))
        end
      end
      local list = vim.api.nvim_buf_is_valid(bufnr) and unchecked[certainty(bufnr, outcome)]
      if list and #list < MAX_UNCHECKED then
        table.insert(list, access.shown(name_of(bufnr), ctx.root))
      end
    end
  end
  return unchecked, open
end

--- Returns the diagnostics of all open files, and what has changed since the last listing.
---@param ctx mcp-tools.Ctx
---@param args table
---@return table
local function of_open_files(ctx, args)
  local unchecked, open = wait_for_all(ctx, args.timeout_ms)
  local seen, is_known = seen_of(ctx)
  local pause = time_slice.of(ctx)
  local files, withheld = findings.everywhere(ctx, {}, pause)
  local answer = { note = OPEN_ONLY, open = open, files = {}, new = 0, fixed = 0, withheld = withheld }
  local all, left, skip, listed = {}, args.limit, args.offset, {}
  local function add(path, name, now, before)
    local list = findings.filtered(now, args)
    local new, fixed = findings.difference(is_known and findings.filtered(before, args) or list, list, pause)
    vim.list_extend(all, list)
    local part = vim.list_slice(list, skip + 1, skip + left)
    skip, left = math.max(0, skip - #list), left - #part
    answer.new, answer.fixed = answer.new + #new, answer.fixed + #fixed
    if #part + #new + #fixed > 0 then
      table.insert(answer.files, {
        path = path,
        diagnostics = findings.rows(part),
        new = findings.rows(new, args.limit),
        fixed = findings.rows(fixed, args.limit),
      })
    end
    seen[name], listed[name] = now, true
  end
  for _, file in ipairs(files) do
    local name = name_of(file.bufnr)
    add(file.path, name, file.list, seen[name] or {})
  end
  for name, before in vim.spairs(seen) do -- files that no longer have findings
    if not listed[name] and #before > 0 then
      add(access.shown(name, ctx.root), name, {}, before)
    end
  end
  answer.total, answer.counts = #all, findings.counts(all)
  if args.offset + args.limit < #all then
    answer.next_offset = args.offset + args.limit
  end
  if args.offset > 0 and args.offset >= #all then
    answer.why = BEYOND:format(args.offset, #all)
  end
  for state, list in pairs(unchecked) do
    answer[state] = #list > 0 and list or nil
  end
  return answer
end

--- Lists the diagnostics of a file or of all open files for their current texts.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
function M.list(ctx, args)
  server_state.ensure_listening()
  args.min_severity = args.min_severity or not args.severity and 'warning' or nil
  if (args.path or args.bufnr) and not args.project then
    return of_file(ctx, args)
  end
  return of_open_files(ctx, args)
end

--- Adds the rows of a file, with source lines.
---@param rows string[]
---@param file { diagnostics: string[], sources: string[]?, new: string[], fixed: string[] }
---@param before string prefix of each row
---@param marks_new boolean append `(new)` to new rows
local function add_rows(rows, file, before, marks_new)
  local is_new = {}
  for _, row in ipairs(marks_new and file.new or {}) do
    is_new[row] = true
  end
  for i, row in ipairs(file.diagnostics) do
    table.insert(rows, before .. row .. (is_new[row] and ' (new)' or ''))
    table.insert(rows, file.sources and file.sources[i] and '  ' .. file.sources[i] or nil)
  end
  for _, row in ipairs(file.fixed) do
    table.insert(rows, ('fixed: %s%s'):format(before, row))
  end
end

--- Returns an answer of `list` as text.
---@param answer table
---@param args { min_severity: string?, severity: string?, source: string? }
---@return string
function M.text(answer, args)
  local counts = {}
  for _, severity in ipairs({ 'error', 'warning', 'info', 'hint' }) do
    if answer.counts[severity] then
      table.insert(counts, result.count(answer.counts[severity], severity == 'info' and 'note' or severity))
    end
  end
  local new = type(answer.new) == 'table' and #answer.new or answer.new
  local fixed = type(answer.fixed) == 'table' and #answer.fixed or answer.fixed
  local nothing = (args.severity or args.source) and 'no such diagnostics'
    or args.min_severity == 'error' and 'no errors'
    or 'no errors or warnings'
  local head = #counts > 0 and table.concat(counts, ', ') or nothing
  local is_unknown = answer.path and answer.checked ~= 'yes' or #(answer.unknown or {}) >= (answer.open or math.huge)
  if #counts == 0 and is_unknown then
    head = 'diagnostics unknown'
  end
  head = ('%s in %s'):format(head, answer.path or result.count(answer.open, 'open file'))
  local all_new = new > 0 and new == answer.total and fixed == 0
  if new + fixed > 0 then
    head = head .. (all_new and '; all new' or ('; %d new, %d fixed'):format(new, fixed))
  end
  if CHECKED[answer.checked] then
    head = ('%s; checked: %s: %s'):format(head, answer.checked, answer.why or CHECKED[answer.checked])
  elseif answer.why then
    head = ('%s; %s'):format(head, answer.why)
  end
  local rows = { head }
  if answer.path then
    add_rows(rows, answer, '', not all_new)
  end
  for _, file in ipairs(answer.files or {}) do
    add_rows(rows, file, file.path .. ':', not all_new)
  end
  for _, state in ipairs({ 'assumed', 'stale', 'unknown' }) do
    if answer[state] then
      table.insert(rows, ('%s (%s): %s'):format(state, CHECKED[state], table.concat(answer[state], ', ')))
    end
  end
  for _, each in ipairs(answer.withheld or {}) do
    table.insert(rows, ('%s: %s withheld (%s)'):format(each.path, result.count(each.count, 'diagnostic'), each.why))
  end
  if answer.next_offset then
    table.insert(rows, ('offset=%d continues'):format(answer.next_offset))
  end
  table.insert(rows, answer.note)
  return table.concat(rows, '\n')
end

return M
