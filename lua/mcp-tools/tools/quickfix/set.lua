--- Creates or changes a quickfix or location list.

local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local quickfix = require('mcp-tools.editor.quickfix')
local sanitize = require('mcp-tools.util.sanitize')

--- Maximum line and column number of Neovim.
local MAX = 2 ^ 31 - 1
local ACTIONS = { append = 'a', replace = 'r' }
local KIND = 'mcp-tools'
--- Maximum number of files without a buffer in a call without approval: Neovim creates a buffer for each.
local MAX_NEW_FILES = 100

--- Converts an entry of the arguments for Neovim.
---@param entry table
---@param i integer
---@return table?
---@return mcp-tools.Error? err
local function item_of(entry, i)
  local function fault(code, text)
    return nil, errors.new(code, ('entries[%d]: %s'):format(i - 1, text))
  end
  if entry.path and entry.bufnr then
    return fault('validation_error', 'give path or bufnr, not both')
  elseif (entry.path or entry.bufnr) and not entry.line then
    return fault('validation_error', 'line: needed beside path and bufnr')
  elseif entry.bufnr and not vim.api.nvim_buf_is_valid(entry.bufnr) then
    local err = buffers.unknown(entry.bufnr)
    return fault(err.code, err.message)
  elseif not entry.path then
    return quickfix.item(entry)
  end
  local path, err = buffers.resolve(entry.path)
  if not path then
    return fault(err.code, err.message)
  end
  return quickfix.item(vim.tbl_extend('force', entry, { path = path }), buffers.of_path(path))
end

--- Returns the list that the arguments mean, and its new entries.
---@param args table
---@return mcp-tools.QuickfixList?
---@return table[]|mcp-tools.Error items_or_err
local function list_and_items(args)
  local list, err = quickfix.find(args)
  if not list then
    return nil, err --[[@as mcp-tools.Error]]
  end
  local items = {}
  for i, entry in ipairs(args.entries) do
    items[i], err = item_of(entry, i)
    if err then
      return nil, err
    end
  end
  local size = args.action == 'append' and quickfix.get({ window = list.window }, { size = 0 }).size or 0
  if size + #items > quickfix.MAX_ENTRIES then
    local text = 'entries: the list already has %d; the maximum is %d; create a new list'
    return nil, errors.new('too_large', text:format(size, quickfix.MAX_ENTRIES))
  end
  return list, items
end

--- Counts the files of entries that have no buffer.
---@param entries table[]
---@return integer
local function count_new_files(entries)
  local count, seen, of_path = 0, {}, buffers.of_paths()
  for _, entry in ipairs(entries) do
    if entry.path and not seen[entry.path] then
      seen[entry.path] = true
      local path = buffers.resolve(entry.path)
      count = count + (path and not of_path(path) and 1 or 0)
    end
  end
  return count
end

return {
  name = 'quickfix_set',
  title = 'Fill the quickfix list',
  description = 'Writes entries to the quickfix list or a location list, so that the user can go through them. A new'
    .. ' list is added on top of the stack; your fourth replaces your first. No window opens and no cursor moves.',
  args = {
    list = { type = 'string', enum = { 'quickfix', 'location' }, description = 'Which list', default = 'quickfix' },
    window = { type = 'integer', description = 'Window of the location list; default: the current one' },
    title = { type = 'string', description = 'Title of the list', maxLength = 200 },
    action = {
      type = 'string',
      enum = { 'new', 'append', 'replace' },
      description = 'new: a new list; append, replace: change the current list',
      default = 'new',
    },
    entries = {
      type = 'array',
      description = 'Entries; one with only text is a heading',
      required = true,
      maxItems = 1000,
      items = {
        type = 'object',
        properties = {
          path = { type = 'string', description = 'Path of the file' },
          bufnr = { type = 'integer', description = 'Buffer number', minimum = 1 },
          line = { type = 'integer', description = 'Line, from 1', minimum = 1, maximum = MAX },
          column = { type = 'integer', description = 'Column in characters, from 1', minimum = 1, maximum = MAX },
          end_line = { type = 'integer', description = 'Last line', minimum = 1, maximum = MAX },
          end_column = {
            type = 'integer',
            description = 'Column after the last character',
            minimum = 1,
            maximum = MAX,
          },
          kind = { type = 'string', enum = { 'error', 'warning', 'info', 'note' }, description = 'Type' },
          text = { type = 'string', description = 'Message', maxLength = 2000 },
        },
      },
    },
  },
  annotations = { read_only = false, destructive = false, idempotent = false },
  needs_approval = function(args)
    if args.action == 'replace' then
      return 'it replaces the entries of a list'
    end
    local list = args.action == 'new' and quickfix.find(args)
    if list and quickfix.is_full(list, KIND) then
      return 'it removes the oldest list from the stack'
    end
    return count_new_files(args.entries or {}) > MAX_NEW_FILES and 'it creates buffers for many files' or false
  end,
  preview = function(args)
    local list, err = list_and_items(args)
    if not list then
      return nil, err
    end
    local about = quickfix.get({ window = list.window }, { nr = 0, size = 0, title = 0 })
    if args.action == 'new' then
      return ('A new list of %d entries.'):format(#args.entries)
    end
    local size = about.size or 0
    local after = (args.action == 'append' and size or 0) + #args.entries
    local text = 'The list "%s" has %d entries now, and %d afterwards.'
    return text:format(sanitize.line(about.title or ''), size, after)
  end,
  execute = function(ctx, args)
    local list, items = list_and_items(args)
    if not list then
      return ctx(nil, items --[[@as mcp-tools.Error]])
    end
    local title = args.title and sanitize.line(args.title) or args.action == 'new' and 'From an assistant' or nil
    local what = { title = title, items = items } ---@type table
    local ok
    if args.action == 'new' then
      ok = quickfix.new(list, what, KIND)
    else
      ok = quickfix.change(list, ACTIONS[args.action], what)
    end
    if not ok then
      return ctx(nil, errors.new('busy', 'the list cannot be changed now; try again'))
    end
    local about = quickfix.get({ window = list.window }, { nr = 0, size = 0, title = 0 })
    ctx({ nr = about.nr, total = about.size, title = about.title, action = args.action })
  end,
}
