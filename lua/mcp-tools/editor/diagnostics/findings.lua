--- Findings: diagnostics as answers, and what is new among them, whatever lines they have moved to.
---
--- Receives: buffers; what was found in them before.
--- Sends: rows of text, guill's items, differences; of files that may not be read only how many.
--- Does not know about: whether they are of the present text (fresh.lua), who found them.

local access = require('mcp-tools.files.access')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.files.redact')
local server_text = require('mcp-tools.editor.lsp.server_text')
local snapshot = require('mcp-tools.editor.diagnostics.snapshot')
local sort = require('mcp-tools.util.sort')
local strings = require('mcp-tools.util.strings')
local target = require('mcp-tools.editor.buffer.target')
local trim = require('mcp-tools.util.trim')

local M = {}

local NAMES = { 'ERROR', 'WARN', 'INFO', 'HINT' }
local SHOWN = { 'error', 'warning', 'info', 'hint' }
local NUMBERS = { error = 1, warn = 2, warning = 2, info = 3, hint = 4 }
--- What `severity` arguments may be; guill's are in capitals.
M.SEVERITIES = { 'error', 'warning', 'info', 'hint', 'ERROR', 'WARN', 'INFO', 'HINT' }
--- Of one message, in characters.
local MAX_MESSAGE = 500
--- Findings between two looks at the clock.
local STEP = 100

---@class mcp-tools.diagnostics.Finding
---@field key string the same wherever it moves
---@field bufnr integer
---@field severity integer
---@field row string `10:29 error code: message [source]`
---@field item table guill's

---@class mcp-tools.diagnostics.FindingFilter
---@field severity string? only this
---@field min_severity string? no milder
---@field source string?

---@param diagnostic vim.Diagnostic
---@param filter mcp-tools.diagnostics.FindingFilter
---@return boolean
local function wanted(diagnostic, filter)
  local severity = diagnostic.severity or 1
  if filter.severity and severity ~= NUMBERS[filter.severity:lower()] then
    return false
  elseif filter.min_severity and severity > NUMBERS[filter.min_severity:lower()] then
    return false
  end
  return not filter.source or (diagnostic.source or ''):lower() == filter.source:lower()
end

---@param diagnostic vim.Diagnostic
---@return mcp-tools.diagnostics.Finding
local function finding(diagnostic)
  local bufnr, severity = diagnostic.bufnr, diagnostic.severity or 1
  local message = position.cut(server_text.text(diagnostic.message), MAX_MESSAGE)
  local column = position.column(bufnr, diagnostic.lnum, diagnostic.col)
  local code = type(diagnostic.code) ~= 'table' and diagnostic.code and tostring(diagnostic.code) or nil
  local loaded = vim.api.nvim_buf_is_loaded(bufnr)
  local line = loaded and vim.api.nvim_buf_get_lines(bufnr, diagnostic.lnum, diagnostic.lnum + 1, false)[1] or ''
  local place = ('%d:%d %s'):format(diagnostic.lnum + 1, column, SHOWN[severity])
  local flat = strings.join_lines(message, ' / '):gsub('\194\160', ' ')
  return {
    key = table.concat({ severity, diagnostic.source or '', code or '', flat, trim(line) }, '\1'),
    bufnr = bufnr,
    severity = severity,
    row = ('%s%s: %s'):format(place, code and ' ' .. code or '', flat),
    item = {
      lnum = diagnostic.lnum + 1,
      col = column,
      message = message,
      severity = NAMES[severity],
      source = diagnostic.source,
      code = code,
    },
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
local function made(all, filter, pause)
  local list, seen = {}, {}
  for i, diagnostic in ipairs(sort(all, is_before, pause)) do
    if wanted(diagnostic, filter) then
      local each = finding(diagnostic)
      local id = each.key .. each.row
      if not seen[id] then -- a server that tells by both ways tells twice
        seen[id] = true
        table.insert(list, each)
      end
    end
    if i % STEP == 0 then
      pause()
    end
  end
  return list
end

--- What is found in a buffer right now, by line.
---@param bufnr integer
---@param filter mcp-tools.diagnostics.FindingFilter
---@param pause fun() called between pieces of work, when there are many
---@return mcp-tools.diagnostics.Finding[] as they were at one moment
---@return boolean steady false: the text has changed meanwhile
function M.of(bufnr, filter, pause)
  if not vim.api.nvim_buf_is_valid(bufnr) then
    return {}, false
  end
  local tick = vim.api.nvim_buf_get_changedtick(bufnr)
  local list = made(snapshot.of(bufnr, pause), filter, pause)
  return list, vim.api.nvim_buf_is_valid(bufnr) and vim.api.nvim_buf_get_changedtick(bufnr) == tick
end

--- Those of a list that are no milder.
---@param list mcp-tools.diagnostics.Finding[]
---@param min_severity string?
---@return mcp-tools.diagnostics.Finding[]
function M.at_least(list, min_severity)
  return vim.tbl_filter(function(each)
    return not min_severity or each.severity <= NUMBERS[min_severity:lower()]
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

---@param list mcp-tools.diagnostics.Finding[]
---@return table<string, integer>
function M.counts(list)
  local counts = {}
  for _, each in ipairs(list) do
    local name = SHOWN[each.severity]
    counts[name] = (counts[name] or 0) + 1
  end
  return next(counts) and counts or vim.empty_dict()
end

--- What is in one list and not in the other.
---@param before mcp-tools.diagnostics.Finding[]
---@param now mcp-tools.diagnostics.Finding[]
---@param pause fun()
---@return mcp-tools.diagnostics.Finding[] new
---@return mcp-tools.diagnostics.Finding[] fixed
---@return mcp-tools.diagnostics.Finding[] remaining
function M.difference(before, now, pause)
  local counts, new, fixed, remaining = {}, {}, {}, {}
  local function each_of(list, look)
    for i, each in ipairs(list) do
      look(each)
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
      table.insert(remaining, each)
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
  return new, fixed, remaining
end

---@param list mcp-tools.diagnostics.Finding[]
---@return integer severity of the worst
local function worst(list)
  local found = math.huge
  for _, each in ipairs(list) do
    found = math.min(found, each.severity)
  end
  return found
end

--- Buffers that have diagnostics and may be read, with their findings, the worst file first.
---@param ctx mcp-tools.Ctx
---@param filter mcp-tools.diagnostics.FindingFilter
---@param pause fun()
---@return { bufnr: integer, path: string, list: mcp-tools.diagnostics.Finding[], worst: integer }[]
---@return { path: string, count: integer, why: string }[]? withheld
function M.everywhere(ctx, filter, pause)
  local files, withheld, of_buffer = {}, {}, {}
  for i, diagnostic in ipairs(snapshot.of(nil, pause)) do
    of_buffer[diagnostic.bufnr] = of_buffer[diagnostic.bufnr] or {}
    table.insert(of_buffer[diagnostic.bufnr], diagnostic)
    if i % STEP == 0 then
      pause()
    end
  end
  redact.refresh(pause)
  for bufnr, all in vim.spairs(of_buffer) do
    if vim.api.nvim_buf_is_valid(bufnr) then
      local path = access.shown(vim.api.nvim_buf_get_name(bufnr), ctx.root)
      local err, why = target.refusal(ctx, bufnr)
      if err then
        table.insert(withheld, { path = path, count = #all, why = why })
      else
        local list = made(all, filter, pause)
        if #list > 0 then
          table.insert(files, { bufnr = bufnr, path = path, list = list, worst = worst(list) })
        end
      end
      pause()
    end
  end
  table.sort(files, function(a, b)
    return a.worst < b.worst or a.worst == b.worst and a.path < b.path
  end)
  return files, #withheld > 0 and withheld or nil
end

return M
