--- Diffs by git, requested only for files that clients may read.

local access = require('mcp-tools.privacy.access')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local result = require('mcp-tools.editor.result')
local revision = require('mcp-tools.editor.git.revision')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of files in one diff, for the length of the command line.
local MAX_FILES = 2000

local ESCAPES = { ['"'] = '\\"', ['\\'] = '\\\\', ['\a'] = '\\a', ['\b'] = '\\b', ['\t'] = '\\t', ['\n'] = '\\n' }
ESCAPES['\v'], ESCAPES['\f'], ESCAPES['\r'] = '\\v', '\\f', '\\r'

--- Quotes a name as git does in the header of a diff.
---@param name string
---@return string
local function quoted(name)
  local escaped, n = name:gsub('[%c"\\]', function(char)
    return ESCAPES[char] or ('\\%03o'):format(char:byte())
  end)
  return n > 0 and '"' .. escaped .. '"' or name
end

--- Returns the parts of a diff for these files. A directory that replaced a file would add its contents.
---@param text string
---@param files string[]
---@return string
local function parts_about(text, files)
  local heads = {}
  for _, name in ipairs(files) do
    heads[('diff --git %s %s'):format(quoted('a/' .. name), quoted('b/' .. name))] = true
    heads[('diff --cc %s'):format(quoted(name))] = true -- of an unfinished merge
  end
  local kept, start = {}, 1
  local merging = text:find('diff --cc ', 1, true) ~= nil
  while start <= #text do
    local stop = text:find('\ndiff --git ', start, true) or #text
    stop = merging and math.min(stop, text:find('\ndiff --cc ', start, true) or stop) or stop
    local part = text:sub(start, stop)
    local head, rest = part:match('^([^\n]*)\n(.*)$')
    if rest and rest ~= '' and heads[head] then -- only a header: the file was touched without a change
      kept[#kept + 1] = part
    end
    start = stop + 1
  end
  return table.concat(kept)
end

---@class mcp-tools.git.Changed
---@field path string relative to the project
---@field added integer? nil: a binary file
---@field deleted integer?

---@class mcp-tools.git.Files
---@field files mcp-tools.git.Changed[]
---@field withheld string[] changed files that must not be shown
---@field total integer
---@field cut boolean there are more files than were checked

--- Lists the files that differ and checks access to each. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@param command string[] `diff` or `show` with what is compared
---@param path? string resolved; only this file or directory
---@return mcp-tools.git.Files?
---@return string? fault
function M.files(ctx, command, path)
  local args = vim.list_extend(vim.list_slice(command), { '--no-renames', '--numstat', '-z', '--relative', '--', path })
  local listed = revision.ask(ctx, args)
  if not listed.ok then
    return nil, listed.fault
  end
  local readable, seen, pause = access.files(ctx.root), {}, time_slice.of(ctx)
  local found = { files = {}, withheld = {}, total = 0, cut = listed.cut }
  for entry in revision.each(listed.stdout) do
    local added, deleted, name = entry:match('^\n?([%d-]+)\t([%d-]+)\t(.+)$')
    if name and not seen[name] then -- an unmerged file is listed twice
      seen[name] = true
      found.total = found.total + 1
      if found.total > MAX_FILES then
        found.cut = true
      elseif readable(name) then
        table.insert(found.files, { path = name, added = tonumber(added), deleted = tonumber(deleted) })
      else
        table.insert(found.withheld, name)
      end
    end
    pause()
  end
  return found
end

--- Returns the diff of these files. They are named one by one, so that git does not read withheld files. Call it in a
--- coroutine.
---@param ctx mcp-tools.Ctx
---@param command string[] as for `files`
---@param files mcp-tools.git.Changed[]
---@param limit integer bytes
---@param context? integer lines around each change
---@return string? text
---@return boolean|string|nil cut or the fault
function M.text(ctx, command, files, limit, context)
  if #files == 0 then
    return '', false
  end
  local names = {}
  for i, file in ipairs(files) do
    names[i] = file.path
  end
  local args = vim.list_extend(vim.list_slice(command), { '--no-renames', '--relative' })
  if context then
    table.insert(args, '--unified=' .. context)
  end
  table.insert(args, '--')
  local done = revision.ask(ctx, vim.list_extend(args, names), limit)
  if not done.ok then
    return nil, done.fault
  end
  return parts_about(done.stdout, names), done.cut
end

--- Arguments of tools that return a diff.
M.ARGS = {
  path = { type = 'string', description = 'File or directory' },
  bufnr = { type = 'integer', description = 'Only the file of this buffer; 0 = current', minimum = 0, hidden = true },
  context = {
    type = 'integer',
    description = 'Lines around each change',
    default = 3,
    minimum = 0,
    maximum = 100,
    hidden = true,
  },
  max_bytes = {
    type = 'integer',
    description = 'Maximum bytes; a larger diff is shortened',
    default = 65536,
    minimum = 1000,
    maximum = 262144,
    hidden = true,
  },
}

--- Maximum number of withheld files that are named.
local MAX_NAMES = 50

---@param names string[]
---@return string[]? list nil if there are none
local function names_of(names)
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

local NARROW = 'give path, or a larger max_bytes'

--- Returns the diff, or a shorter form of it. Call it in a coroutine.
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
    local text, cut = M.text(ctx, command, found.files, args.max_bytes, try[2])
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

--- Returns the fields of an answer with a diff. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@param command string[] `diff` or `show` with what is compared
---@param args { context: integer, max_bytes: integer }
---@param path? string resolved
---@return table? fields
---@return string? fault
function M.answer(ctx, command, args, path)
  local found, fault = M.files(ctx, command, path)
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
  fields.withheld = names_of(found.withheld)
  return fields
end

--- Returns an answer with a diff as text.
---@param fields table
---@return string
function M.render(fields)
  local head = result.count(fields.files, 'file') .. (fields.more_files and ' or more' or '')
  head = fields.files == 0 and 'no changes' or ('%s +%d -%d'):format(head, fields.added, fields.deleted)
  local rows = { fields.narrow and ('%s; %s: %s'):format(head, fields.shown, fields.narrow) or head }
  if fields.withheld then
    table.insert(rows, 'withheld: ' .. table.concat(fields.withheld, ', '))
  end
  if fields.unsaved then
    table.insert(rows, 'unsaved in the editor, so not compared: ' .. table.concat(fields.unsaved, ', '))
  end
  table.insert(rows, fields.diff ~= '' and fields.diff or fields.counts)
  return table.concat(rows, '\n')
end

return M
