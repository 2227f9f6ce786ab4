--- Diagnostics for answers: rows, counts, views, and the difference between two lists.
---
--- Files that clients must not read are only counted. fresh.lua checks whether diagnostics are of the current text.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local excerpt = require('mcp-tools.editor.result.excerpt')
local garbage = require('mcp-tools.util.garbage')
local path_completion = require('mcp-tools.privacy.completion')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local server_text = require('mcp-tools.editor.lsp.server_text')
local sort = require('mcp-tools.util.sort')
local strings = require('mcp-tools.util.strings')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local M = {}

local SEVERITIES = { 'error', 'warning', 'info', 'hint' }
local NUMBERS = { error = 1, warn = 2, warning = 2, info = 3, hint = 4 }
--- Values of `severity` arguments; those in capitals are compatible with guill/mcp-tools.nvim.
M.SEVERITIES = { 'error', 'warning', 'info', 'hint', 'ERROR', 'WARN', 'INFO', 'HINT' }
--- Maximum length of a message in rows, in characters.
local MAX_MESSAGE = 500
--- The same in a view, and number of bytes that are searched for secrets: enough for that number of characters.
local MAX_VIEWED, MAX_SEARCHED = 2000, 9000
--- Maximum length of the line of a finding, bytes: one long line may have thousands of findings.
local MAX_TEXT = 1000
--- Maximum length of a message from which repetitions are removed, bytes.
local MAX_COMPARED = 2000
--- Maximum number of diagnostics in one view.
local MAX_VIEW = 1000
--- Number of findings between two checks of the clock.
local STEP = 100

---@class mcp-tools.diagnostics.Finding
---@field key string does not depend on the line
---@field bufnr integer
---@field severity integer
---@field row string `10:29 error code: message [source]`
---@field source string?
---@field line integer
---@field text string of the line, without indentation; at most its beginning

---@class mcp-tools.diagnostics.FindingFilter
---@field severity string? only this one
---@field min_severity string? this one and more severe ones
---@field source string?

---@param each { severity: integer?, source: string? }
---@param filter mcp-tools.diagnostics.FindingFilter
---@return boolean
local function wanted(each, filter)
  local severity = each.severity or 1
  return (not filter.severity or severity == NUMBERS[filter.severity:lower()])
    and (not filter.min_severity or severity <= NUMBERS[filter.min_severity:lower()])
    and (not filter.source or (each.source or ''):lower() == filter.source:lower())
end

---@class mcp-tools.DiagnosticItem
---@field path string? relative to the root
---@field bufnr integer
---@field line integer
---@field column integer
---@field end_line integer
---@field end_column integer
---@field severity 'error'|'warning'|'info'|'hint'
---@field message string
---@field source string?
---@field code (string|integer)?

---@param diagnostic vim.Diagnostic
---@param path string?
---@param known mcp-tools.position.Known
---@return mcp-tools.DiagnosticItem
local function item_of(diagnostic, path, known)
  local bufnr, message = diagnostic.bufnr, diagnostic.message
  if type(message) == 'string' then
    message = message:sub(1, MAX_SEARCHED)
  end
  local end_row, end_byte = diagnostic.end_lnum or diagnostic.lnum, diagnostic.end_col or diagnostic.col
  return {
    path = path,
    bufnr = bufnr,
    line = diagnostic.lnum + 1,
    column = position.column(bufnr, diagnostic.lnum, diagnostic.col, known),
    end_line = end_row + 1,
    end_column = position.column(bufnr, end_row, end_byte, known),
    severity = SEVERITIES[diagnostic.severity or 1],
    message = position.cut(server_text.text(message), MAX_VIEWED),
    source = type(diagnostic.source) == 'string' and diagnostic.source or nil,
    code = type(diagnostic.code) ~= 'table' and diagnostic.code or nil,
  }
end

--- Joins the lines of a message. Omits lines that quote only names from lines before, which type checkers often add.
---@param message string
---@return string
local function flat_of(message)
  if #message > MAX_COMPARED then
    return (message:gsub('\n', ' / '))
  end
  local parts = {}
  for line in vim.gsplit(message, '\n', { plain = true }) do
    local before, has_names, is_new = table.concat(parts, ' / '), false, false
    for name in line:gmatch('["\'][^"\']*["\']') do
      has_names, is_new = true, is_new or not before:find(name, 1, true)
    end
    if line:find('%S') and (is_new or not has_names or #parts == 0) then
      table.insert(parts, trim(line))
    end
  end
  return table.concat(parts, ' / ')
end

---@param diagnostic vim.Diagnostic
---@param known mcp-tools.position.Known
---@return mcp-tools.diagnostics.Finding
local function finding(diagnostic, known)
  local bufnr, item = diagnostic.bufnr, item_of(diagnostic, nil, known)
  local line = trim((position.line(bufnr, diagnostic.lnum, known) or ''):sub(1, MAX_TEXT))
  local flat = flat_of((position.cut(item.message, MAX_MESSAGE):gsub('\194\160', ' ')))
  local code = item.code and ' ' .. tostring(item.code) or ''
  return {
    key = table.concat({ item.severity, item.source or '', code, flat, line }, '\1'),
    bufnr = bufnr,
    severity = (diagnostic.severity or 1) --[[@as integer]],
    row = ('%d:%d %s%s: %s'):format(item.line, item.column, item.severity, code, flat),
    source = item.source,
    line = item.line,
    text = line,
  }
end

---@param a vim.Diagnostic
---@param b vim.Diagnostic
local function is_before(a, b)
  return a.lnum < b.lnum or a.lnum == b.lnum and a.col < b.col
end

---@param all vim.Diagnostic[] of one buffer
---@param filter mcp-tools.diagnostics.FindingFilter
---@param pause fun()
---@return mcp-tools.diagnostics.Finding[] by line
local function findings_of(all, filter, pause)
  local list, seen, known = {}, {}, position.known()
  for _, diagnostic in ipairs(sort(all, is_before, pause)) do
    if wanted(diagnostic, filter) then
      local each = finding(diagnostic, known)
      local id = each.key .. each.row
      if not seen[id] then -- a server that publishes and answers requests reports everything twice
        seen[id] = true
        table.insert(list, each)
      end
    end
    pause()
  end
  return list
end

--- Returns a consistent copy of the diagnostics of a buffer. Copying takes long, so it pauses after each severity; if
--- the diagnostics change during a pause, all are copied again at once.
---@param bufnr integer
---@param pause fun()
---@return vim.Diagnostic[]
local function copied(bufnr, pause)
  local list, has_changed = {}, false
  local hook = api.nvim_create_autocmd('DiagnosticChanged', {
    buffer = bufnr,
    once = true, -- not deleted if the call ends during a pause
    desc = 'mcp-tools: diagnostics that change while they are read',
    callback = function()
      has_changed = true
    end,
  })
  for severity = 1, NUMBERS.hint do
    pause()
    if has_changed or not api.nvim_buf_is_valid(bufnr) then
      break
    end
    vim.list_extend(list, garbage.without(vim.diagnostic.get, bufnr, { severity = severity }))
  end
  if has_changed then
    return api.nvim_buf_is_valid(bufnr) and garbage.without(vim.diagnostic.get, bufnr) or {}
  end
  pcall(api.nvim_del_autocmd, hook) -- fails if the buffer was deleted
  return list
end

--- Returns the findings of a buffer, by line.
---@param bufnr integer
---@param filter mcp-tools.diagnostics.FindingFilter
---@param pause fun() called between pieces of work, when there are many
---@return mcp-tools.diagnostics.Finding[] all from one moment
---@return boolean steady false: the text has changed in the meantime
function M.of(bufnr, filter, pause)
  if not api.nvim_buf_is_valid(bufnr) then
    return {}, false
  end
  local tick = api.nvim_buf_get_changedtick(bufnr)
  local list = findings_of(copied(bufnr, pause), filter, pause)
  return list, api.nvim_buf_is_valid(bufnr) and api.nvim_buf_get_changedtick(bufnr) == tick
end

--- Returns the findings that a filter accepts.
---@param list mcp-tools.diagnostics.Finding[]
---@param filter mcp-tools.diagnostics.FindingFilter
---@return mcp-tools.diagnostics.Finding[]
function M.filtered(list, filter)
  return vim.tbl_filter(function(each)
    return wanted(each, filter)
  end, list)
end

---@param list mcp-tools.diagnostics.Finding[]
---@param limit? integer
---@return string[]
function M.rows(list, limit)
  local rows = {}
  for i = 1, math.min(#list, limit or #list) do
    rows[i] = list[i].row
  end
  return rows
end

---@param counts table<string, integer>
---@param list { severity: integer? }[]
local function add_counts(counts, list)
  for _, each in ipairs(list) do
    local name = SEVERITIES[each.severity or 1]
    counts[name] = (counts[name] or 0) + 1
  end
end

---@param list mcp-tools.diagnostics.Finding[]
---@return table<string, integer>
function M.counts(list)
  local counts = {}
  add_counts(counts, list)
  return next(counts) and counts or vim.empty_dict()
end

--- Compares two lists, ignoring line numbers.
---@param before mcp-tools.diagnostics.Finding[]
---@param now mcp-tools.diagnostics.Finding[]
---@param pause fun()
---@return mcp-tools.diagnostics.Finding[] new
---@return mcp-tools.diagnostics.Finding[] fixed
function M.difference(before, now, pause)
  local counts, new, fixed = {}, {}, {}
  local function each_of(list, fn)
    for i, each in ipairs(list) do
      fn(each)
      if i % STEP == 0 then
        pause()
      end
    end
  end
  each_of(before, function(each)
    counts[each.key] = (counts[each.key] or 0) + 1
  end)
  each_of(now, function(each)
    if (counts[each.key] or 0) > 0 then
      counts[each.key] = counts[each.key] - 1
    else
      table.insert(new, each)
    end
  end)
  each_of(before, function(each)
    if (counts[each.key] or 0) > 0 then
      counts[each.key] = counts[each.key] - 1
      table.insert(fixed, each)
    end
  end)
  return new, fixed
end

--- Calls `fn` for the buffers that have diagnostics and that clients may read.
---@param ctx mcp-tools.Ctx
---@param bufnr integer? nil: all
---@param max_severity integer highest number to include: 1 is an error, 4 a hint
---@param pause fun()
---@param fn fun(path: string?, list: vim.Diagnostic[])
---@return { path: string, count: integer, why: string }[]? withheld
local function each_file(ctx, bufnr, max_severity, pause, fn)
  local withheld = {}
  redact.refresh(pause)
  for _, number in ipairs(bufnr and { bufnr } or api.nvim_list_bufs()) do
    local count = 0
    for severity, each in pairs(api.nvim_buf_is_valid(number) and vim.diagnostic.count(number) or {}) do
      count = count + (severity <= max_severity and each or 0)
    end
    if count > 0 then
      local name = api.nvim_buf_get_name(number)
      local path = name ~= '' and access.shown(name, ctx.root) or nil
      local err, why = target.refusal(ctx, number)
      if err then
        table.insert(withheld, { path = path or '', count = count, why = why })
      else
        fn(path, garbage.without(vim.diagnostic.get, number, { severity = { min = max_severity } }))
      end
      pause()
    end
  end
  return #withheld > 0 and withheld or nil
end

--- Returns the findings of all buffers that clients may read, the most severe file first.
---@param ctx mcp-tools.Ctx
---@param filter mcp-tools.diagnostics.FindingFilter
---@param pause fun()
---@return { bufnr: integer, path: string, list: mcp-tools.diagnostics.Finding[], worst: integer }[]
---@return { path: string, count: integer, why: string }[]? withheld
function M.everywhere(ctx, filter, pause)
  local files = {}
  local withheld = each_file(ctx, nil, NUMBERS.hint, pause, function(path, all)
    local list = findings_of(all, filter, pause)
    local worst = vim.iter(list):fold(math.huge, function(least, each)
      return math.min(least, each.severity)
    end)
    if #list > 0 then
      table.insert(files, { bufnr = list[1].bufnr, path = path or '', list = list, worst = worst })
    end
  end)
  table.sort(files, function(a, b)
    return a.worst < b.worst or a.worst == b.worst and a.path < b.path
  end)
  return files, withheld
end

---@class mcp-tools.DiagnosticsView
---@field diagnostics mcp-tools.DiagnosticItem[] the most severe first in each file
---@field total integer of readable files; more than listed if the list was cut
---@field counts table<string, integer> by severity
---@field withheld { path: string, count: integer, why: string }[]?

---@param a vim.Diagnostic
---@param b vim.Diagnostic
---@return boolean
local function is_worse(a, b)
  return a.severity < b.severity or a.severity == b.severity and is_before(a, b)
end

--- Returns the diagnostics of one buffer or of all, for prompts and resources.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param bufnr? integer
---@param severity? 'error'|'warning'|'info'|'hint' minimum severity
---@return mcp-tools.DiagnosticsView
function M.view(ctx, bufnr, severity)
  local pause = time_slice.of(ctx)
  local view, known = { diagnostics = {}, total = 0, counts = {} }, position.known()
  view.withheld = each_file(ctx, bufnr, NUMBERS[severity or 'hint'], pause, function(path, all)
    view.total = view.total + #all
    add_counts(view.counts, all)
    all = #view.diagnostics < MAX_VIEW and sort(all, is_worse, pause) or {}
    for i = 1, math.min(#all, MAX_VIEW - #view.diagnostics) do
      if api.nvim_buf_is_valid(all[i].bufnr) then
        table.insert(view.diagnostics, item_of(all[i], path, known))
      end
      pause()
    end
  end)
  view.counts = next(view.counts) and view.counts or vim.empty_dict()
  return view
end

--- Returns the number of diagnostics by severity in files that clients may read, without copying them.
---@param root string
---@return table<string, integer>
function M.counts_open(root)
  local counts = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local found = vim.diagnostic.count(bufnr)
    if next(found) and access.buffer(bufnr, root) then
      for severity, count in pairs(found) do
        local kind = SEVERITIES[severity]
        counts[kind] = (counts[kind] or 0) + count
      end
    end
  end
  return next(counts) and counts or vim.empty_dict()
end

-- Prompts: diagnostics with the code around them ------------------------------------------------------------------

--- Maximum number of diagnostics with code in a prompt.
local MAX_IN_PROMPT = 40
--- Number of lines of code before and after each.
local AROUND = 3

---@param item mcp-tools.DiagnosticItem
---@return string
local function entry(item)
  local from = { item.source, item.code and tostring(item.code) }
  local head = ('%s:%d:%d: %s: %s'):format(
    item.path or ('buffer ' .. item.bufnr),
    item.line,
    item.column,
    item.severity,
    strings.join_lines(item.message, ' / ')
  )
  if next(from) then
    head = ('%s [%s]'):format(head, table.concat(vim.tbl_values(from), ' '))
  end
  if not vim.api.nvim_buf_is_loaded(item.bufnr) then
    return head
  end
  local code = excerpt.numbered_of(item.bufnr, item.line - AROUND, item.line + AROUND, item.line)
  return head .. '\n' .. excerpt.fenced(code)
end

--- Returns the diagnostics for a prompt.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { path: string?, severity: string? }
---@return string? text
---@return string? fault
local function prompt_text(ctx, args)
  local bufnr
  if args.severity and not vim.list_contains(SEVERITIES, args.severity) then
    return nil, ('severity must be one of %s'):format(table.concat(SEVERITIES, ', '))
  end
  if args.path then
    local place, why = access.path(args.path, ctx.root)
    if not place then
      return nil, ('%s is %s'):format(args.path, why)
    end
    bufnr = buffers.of_path(place)
    if not bufnr then
      return nil, args.path .. ' is not open in the editor, so it has no diagnostics'
    end
  end
  local view = M.view(ctx, bufnr, args.severity)
  local parts = {}
  for i = 1, math.min(#view.diagnostics, MAX_IN_PROMPT) do
    parts[i] = entry(view.diagnostics[i])
  end
  if #parts == 0 then
    parts[1] = 'There are no diagnostics here.'
  elseif view.total > #parts then
    table.insert(parts, ('… and %d more; the resource nvim://diagnostics has them.'):format(view.total - #parts))
  end
  for _, hidden in ipairs(view.withheld or {}) do
    table.insert(
      parts,
      ('%s has %d more, which are not shown: it is %s.'):format(hidden.path, hidden.count, hidden.why)
    )
  end
  return (utf8.repair(table.concat(parts, '\n\n')))
end

--- Creates a prompt about diagnostics.
---@param fields { name: string, title: string, description: string }
---@param task string what to do with the diagnostics
---@return mcp-tools.Prompt
function M.prompt(fields, task)
  return vim.tbl_extend('error', fields, {
    args = {
      {
        name = 'path',
        description = 'File that is open; default: the whole project',
        complete = path_completion.buffers,
      },
      {
        name = 'severity',
        description = 'Minimum severity: error, warning, info or hint',
        complete = function(ctx, prefix)
          ctx(vim.tbl_filter(function(value)
            return vim.startswith(value, prefix:lower())
          end, SEVERITIES))
        end,
      },
    },
    run = function(ctx, args)
      local text, fault = prompt_text(ctx, args)
      if not text then
        return ctx:fail('not_found', fault)
      end
      ctx(task .. '\n\n' .. text)
    end,
  })
end

return M
