--- A diff as an answer that fits: with context, else without, else as counts per file, else as a total.
---
--- Receives: what is compared with what; how many bytes the answer may have.
--- Sends: the fields of the answer, which say what was left out and which argument narrows it.
--- Does not know about: which tool it is for.

local diff = require('mcp-tools.editor.git.diff')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Arguments of tools that answer with a diff.
M.ARGS = {
  path = { type = 'string', description = 'Only this file or folder; relative ones count from the working directory' },
  bufnr = { type = 'integer', description = 'Only the file of this buffer; 0 = the current one', minimum = 0 },
  context = { type = 'integer', description = 'Lines around each change', default = 3, minimum = 0, maximum = 100 },
  max_bytes = {
    type = 'integer',
    description = 'Bytes of diff; more comes without context, then as counts per file',
    default = 65536,
    minimum = 1000,
    maximum = 262144,
  },
}

--- Names of withheld files that are told.
local MAX_NAMES = 50

---@param names string[]
---@return string[]? list nil when there are none
function M.names(names)
  local list = vim.list_slice(names, 1, MAX_NAMES)
  for i, name in ipairs(list) do
    list[i] = utf8.repair(name)
  end
  if #names > MAX_NAMES then
    table.insert(list, ('… and %d more'):format(#names - MAX_NAMES))
  end
  return #list > 0 and list or nil
end

---@param files mcp-tools.git.Changed[]
---@return string lines such as "+3 -1 lua/a.lua"
local function counts_of(files)
  local lines = {}
  for i, file in ipairs(files) do
    local name = (utf8.repair(file.path)):gsub('%c', '?')
    lines[i] = file.added and ('+%d -%d %s'):format(file.added, file.deleted, name) or 'binary ' .. name
  end
  return table.concat(lines, '\n')
end

---@param files mcp-tools.git.Changed[]
---@return integer added, integer deleted
local function totals(files)
  local added, deleted = 0, 0
  for _, file in ipairs(files) do
    added, deleted = added + (file.added or 0), deleted + (file.deleted or 0)
  end
  return added, deleted
end

local NARROW = 'give path (a file or folder), or a larger max_bytes'

--- The text, or what stands for it. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param command string[]
---@param found mcp-tools.git.Files
---@param args { context: integer, max_bytes: integer }
---@return table? fields
---@return string? fault
local function text_of(ctx, command, found, args)
  local tries = { { 'full', args.context } }
  if args.context > 0 then
    table.insert(tries, { 'without context', 0 })
  end
  for _, try in ipairs(found.cut and {} or tries) do
    local text, cut = diff.text(ctx, command, found.files, args.max_bytes, try[2])
    if not text then
      return nil, cut --[[@as string]]
    elseif not cut then
      local whole, lossy = redacted_text.file(ctx, text)
      return { diff = whole, shown = try[1], narrow = try[1] ~= 'full' and NARROW or nil, lossy = lossy or nil }
    end
  end
  local counts = counts_of(found.files)
  if #counts <= args.max_bytes then
    return { counts = counts, shown = 'counts per file', narrow = NARROW }
  end
  return { shown = 'total', narrow = NARROW }
end

--- The fields of the answer. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param command string[] `diff` or `show` with what is compared
---@param args { context: integer, max_bytes: integer }
---@param path? string resolved
---@return table? fields
---@return string? fault
function M.of(ctx, command, args, path)
  local found, fault = diff.files(ctx, command, path)
  if not found then
    return nil, fault
  end
  local fields, bad = text_of(ctx, command, found, args)
  if not fields then
    return nil, bad
  end
  fields.files = found.total
  fields.more_files = found.cut or nil
  fields.added, fields.deleted = totals(found.files)
  fields.withheld = M.names(found.withheld)
  return fields
end

return M
