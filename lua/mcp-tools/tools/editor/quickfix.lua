--- Reads the quickfix list or a location list, or fills it.

local arguments = require('mcp-tools.editor.arguments')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')
local quickfix = require('mcp-tools.editor.quickfix')
local redact = require('mcp-tools.privacy.redact')
local result = require('mcp-tools.editor.result')
local sanitize = require('mcp-tools.util.sanitize')
local time_slice = require('mcp-tools.util.time_slice')

--- Maximum line and column number of Neovim.
local MAX = 2 ^ 31 - 1
local ACTIONS = { append = 'a', replace = 'r' }
local KIND = 'mcp-tools'
--- Maximum number of files without a buffer in a call without approval: Neovim creates a buffer for each.
local MAX_NEW_FILES = 100
--- Maximum size of all paths and texts of a call.
local MAX_BYTES = 256 * 1024

-- Filling -------------------------------------------------------------------------------------------------------------

--- Returns a place as an entry: `path:line`, `path:line:column` or `path:first-last`, then `: text`.
---@param place string|table
---@return table
local function entry_of(place)
  if type(place) == 'table' then
    return place
  end
  local path, line, rest = place:match('^(.-):(%d+)(.*)$')
  if not path then
    return { path = place }
  end
  local last, after_last = rest:match('^%-(%d+)(.*)$')
  local column, after_column = rest:match('^:(%d+)(.*)$')
  local text = (after_last or after_column or rest):match('^:?%s*(.*)$')
  return { path = path, line = tonumber(line), column = tonumber(column), end_line = tonumber(last), text = text }
end

--- Checks the places of a call, without resolving their paths.
---@param list mcp-tools.QuickfixList
---@param args table
---@return mcp-tools.Error?
local function fault_of(list, args)
  local bytes = 0
  for i, place in ipairs(args.places) do
    bytes = bytes + (type(place) == 'table' and #(place.path or '') + #(place.text or '') or #place)
    if bytes > MAX_BYTES then
      local text = 'places: together longer than %d bytes; use several calls with action "append"'
      return errors.new('too_large', text:format(MAX_BYTES))
    end
    local entry = entry_of(place)
    if entry.path and not entry.line then
      local text = "places[%d]: no line; write it as 'path:line: text'"
      return errors.new('validation_error', text:format(i - 1))
    elseif math.max(entry.line or 0, entry.column or 0, entry.end_line or 0, entry.end_column or 0) > MAX then
      return errors.new('validation_error', ('places[%d]: a number is too large'):format(i - 1))
    end
  end
  local size = args.action == 'append' and quickfix.get({ window = list.window }, { size = 0 }).size or 0
  if size + #args.places > quickfix.MAX_ENTRIES then
    local text = 'places: the list already has %d; the maximum is %d; create a new list'
    return errors.new('too_large', text:format(size, quickfix.MAX_ENTRIES))
  end
end

--- Returns the items for the places of a call.
---@param args table
---@param pause fun()
---@return table[]?
---@return mcp-tools.Error? err
local function items_of(args, pause)
  local items, of_path = {}, buffers.of_paths()
  local known = {} ---@type table<string, { bufnr: integer, loaded: integer? }>
  for i, place in ipairs(args.places) do
    local entry = entry_of(place)
    local name = entry.path
    if name and not known[name] then
      local path = errors.unwrap(buffers.resolve(name, ('places[%d]'):format(i - 1)))
      local loaded = of_path(path)
      local ok, bufnr = pcall(vim.fn.bufadd, path) -- each name that Neovim looks up takes 0.1 ms
      if not loaded and not ok then
        return nil, errors.new('validation_error', ('places[%d]: is not a valid path'):format(i - 1))
      end
      known[name] = {
        bufnr = loaded or bufnr --[[@as integer]],
        loaded = loaded,
      }
    end
    local found = known[name] or {}
    items[i] = quickfix.item(entry, found.loaded)
    items[i].bufnr, items[i].filename = found.bufnr, nil
    pause()
  end
  return items
end

--- Returns whether places name more files without a buffer than a call may add without approval. Paths with too many
--- components to resolve are not counted further.
---@param places (string|table)[]
---@return boolean
local function has_many_new_files(places)
  local count, seen, of_path, walked = 0, {}, buffers.of_paths(), paths.walked()
  for _, place in ipairs(places) do
    local name = entry_of(place).path
    if name and not seen[name] then
      seen[name] = true
      local path = paths.resolve(name, walked)
      count = count + (of_path(path) and 0 or 1)
      if count > MAX_NEW_FILES or walked.left < 0 then
        return true
      end
    end
  end
  return false
end

---@param ctx mcp-tools.Ctx
---@param list mcp-tools.QuickfixList
---@param args table
---@return table?
---@return mcp-tools.Error? err
local function fill(ctx, list, args)
  errors.check(fault_of(list, args))
  local items = errors.unwrap(items_of(args, time_slice.of(ctx)))
  local title = args.title and sanitize.line(args.title) or args.action == 'new' and 'From an assistant' or nil
  local what = { title = title, items = items }
  local action = ACTIONS[args.action]
  local ok = action and quickfix.change(list, action, what) or not action and quickfix.new(list, what, KIND)
  if not ok then
    return nil, errors.new('busy', 'the list cannot be changed now; try again')
  end
  local about = quickfix.get({ window = list.window }, { nr = 0, size = 0, title = 0 })
  return { nr = about.nr, total = about.size, title = about.title, action = args.action }
end

-- Reading -------------------------------------------------------------------------------------------------------------

---@param ctx mcp-tools.Ctx
---@param list mcp-tools.QuickfixList
---@param args table
---@return table?
---@return mcp-tools.Error? err
local function read(ctx, list, args)
  local about = quickfix.get(list, { id = 0, nr = args.nr, title = 0, idx = 0, size = 0 })
  local stack = quickfix.get({ window = list.window, nr = '$' } --[[@as table]], {}).nr
  if args.nr > stack then
    return nil, errors.new('not_found', ('nr: there is no list %d, there are %d'):format(args.nr, stack))
  end
  local pause = time_slice.of(ctx)
  local last = math.min(about.size, args.offset + args.limit)
  local items = quickfix.items(list, about.id, args.offset + 1, last, pause)
  return {
    title = (about.title or '') ~= '' and redact.line(about.title, pause) or nil,
    nr = about.nr,
    lists = stack,
    entries = quickfix.entries(items, ctx.root, pause),
    total = about.size,
    current = about.size > 0 and about.idx or nil,
  }
end

---@param number integer
---@return string
local function entries(number)
  return result.count(number, 'entry', 'entries')
end

---@param entry mcp-tools.QuickfixEntry
---@return string
local function row_of(entry)
  local place = {}
  if entry.path or entry.line then
    local lines = entry.end_line and entry.end_line ~= entry.line and '-' .. entry.end_line or ''
    place = { ('%s%s%s'):format(entry.path or '?', entry.line and ':' .. entry.line or '', lines) }
  end
  vim.list_extend(place, { entry.kind })
  if entry.text ~= '' then
    table.insert(place, entry.text or ('withheld (%s)'):format(entry.withheld))
  end
  return table.concat(place, ': ')
end

return {
  name = 'editor_quickfix',
  title = 'Quickfix list',
  description = "Reads the user's quickfix list, or fills it with places for the user to step through.",
  search_hint = 'list of places, todo list of lines, navigate, location list, cnext, copen',
  args = {
    places = {
      type = 'array',
      description = 'Places, each as `path:line: text`; without them the list is read',
      maxItems = 1000,
      items = {
        type = { 'string', 'object' },
        maxLength = 6000,
        properties = {
          path = { type = 'string', description = 'File path', hidden = true },
          line = { type = 'integer', description = '1-based line number', minimum = 1, hidden = true },
          column = { type = 'integer', description = '1-based column in characters', minimum = 1, hidden = true },
          end_line = { type = 'integer', description = 'Last line', minimum = 1, hidden = true },
          end_column = { type = 'integer', description = 'Column after the range', minimum = 1, hidden = true },
          kind = {
            type = 'string',
            enum = { 'error', 'warning', 'info', 'note' },
            description = 'Type of the entry',
            hidden = true,
          },
          text = { type = 'string', description = 'Text', maxLength = 2000, hidden = true },
        },
      },
    },
    title = { type = 'string', description = 'Title of the new list', maxLength = 200 },
    list = {
      type = 'string',
      enum = { 'quickfix', 'location' },
      description = 'Which list; `location`: that of the current window',
      default = 'quickfix',
      hidden = true,
    },
    action = {
      type = 'string',
      enum = { 'new', 'append', 'replace' },
      description = 'How to fill: a new list, or a change of the current one',
      default = 'new',
      hidden = true,
    },
    nr = { type = 'integer', description = 'Position on the stack', default = 0, minimum = 0, hidden = true },
    limit = arguments.hidden(arguments.limit('entries', 100, 1000)),
    offset = { type = 'integer', description = 'Number of entries to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = false, destructive = false, idempotent = false },
  recommended = true,
  needs_approval = function(args)
    if not args.places then
      return false
    elseif args.action == 'replace' then
      return 'it replaces the entries of a list'
    elseif args.action == 'new' and quickfix.is_full(quickfix.find(args), KIND) then
      return 'it removes the oldest list from the stack'
    end
    local is_valid = not fault_of(quickfix.find(args), args)
    return is_valid and has_many_new_files(args.places) and 'it creates buffers for many files' or false
  end,
  preview = function(args)
    local list = quickfix.find(args)
    errors.check(fault_of(list, args))
    local count = #args.places
    if args.action == 'new' then
      return ('A new list of %s.'):format(entries(count))
    end
    local about = quickfix.get({ window = list.window }, { size = 0, title = 0 })
    local size = about.size or 0
    local text = 'The list "%s" has %d entries now, and %d afterwards.'
    return text:format(sanitize.line(about.title or ''), size, (args.action == 'append' and size or 0) + count)
  end,
  run = function(ctx, args)
    local list = quickfix.find(args)
    if args.places then
      return fill(ctx, list, args)
    end
    return read(ctx, list, args)
  end,
  render = function(value, args)
    local name = ('%s list%s'):format(args.list, value.title and (" '%s'"):format(value.title) or '')
    if args.places then
      return ('The %s has %s.'):format(name, entries(value.total))
    elseif value.total == 0 then
      return ('The %s is empty.'):format(name)
    end
    local head = ('%s: %s, the user is at %d'):format(name, entries(value.total), value.current)
    local rows = vim.tbl_map(row_of, value.entries)
    return result.longest({
      { text = vim.list_extend({ result.with_range(head, args, value.total) }, rows) },
    }, 'read it with limit and offset')
  end,
}
