--- Inspects syntax trees: nodes around a position, and captures of a query. Queries that would block the main thread
--- are refused.

local errors = require('mcp-tools.errors')
local result = require('mcp-tools.editor.result')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local treesitter = require('mcp-tools.editor.treesitter')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local M = {}

--- Maximum length of a node's text, bytes.
local MAX_TEXT = 120
--- Maximum number of captures that are counted.
local MAX_COUNTED = 100000

local WITHOUT = 'without query, the nodes around start_line are listed'

---@param bufnr integer
---@param tick integer
local function changed(bufnr, tick)
  return not api.nvim_buf_is_loaded(bufnr) or api.nvim_buf_get_changedtick(bufnr) ~= tick
end

--- Returns a file with its syntax tree.
---@param ctx mcp-tools.Ctx
---@param args { path: string?, bufnr: integer? }
---@return mcp-tools.Target?
---@return TSNode|mcp-tools.Error root_or_err
---@return string? lang
local function tree_of(ctx, args)
  local file, err = target.await(ctx, args, { load = true, current = true })
  if not file then
    return nil, err --[[@as mcp-tools.Error]]
  end
  local lang, why = treesitter.language(vim.bo[file.bufnr].filetype)
  if not lang then
    local text = '%s: %s'
    return nil, errors.new('not_found', text:format(file.shown, why))
  end
  local root
  root, why = treesitter.parse(ctx, file.bufnr, lang)
  if not root then
    return nil, errors.new('tool_error', ('%s: %s'):format(file.shown, why))
  elseif not api.nvim_buf_is_loaded(file.bufnr) then
    return nil, errors.new('not_found', ('%s was closed'):format(file.shown))
  end
  return file, root, lang
end

--- Returns a function that formats nodes of a buffer while its text does not change.
---@param bufnr integer
---@return fun(node: TSNode): string
local function shower(bufnr)
  local starts, ends, count = position.known(), position.known(), api.nvim_buf_line_count(bufnr)
  local function length(row)
    return #(api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or '')
  end
  return function(node)
    local row, col, end_row, end_col = node:range()
    if row >= count then -- an empty node after the last line
      row, col = count - 1, length(count - 1)
    end
    if end_row >= count or end_col == 0 and end_row > row then
      end_row = math.min(end_row, count) - 1
      end_col = length(end_row)
    end
    local stop = row == end_row and end_col or length(row)
    -- More than is shown, so that `…` is added.
    local text = api.nvim_buf_get_text(bufnr, row, col, row, math.min(stop, col + 2 * MAX_TEXT), {})[1]
    text = row == end_row and text or text .. ' …'
    text = redact.quoted((utf8.repair(utf8.cut(text:gsub('%c', ' '), MAX_TEXT))))
    local column = position.column(bufnr, row, col, starts)
    -- The end is its last character.
    local last = math.max(position.column(bufnr, end_row, end_col, ends) - 1, row == end_row and column or 1)
    return ('%d:%d-%d:%d %s'):format(row + 1, column, end_row + 1, last, text)
  end
end

--- Returns the nodes around a position.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { path: string?, bufnr: integer?, start_line: integer, column: integer?, limit: integer }
---@return string?
---@return mcp-tools.Error? err
function M.scope(ctx, args)
  local file, root = tree_of(ctx, args)
  if not file then
    return nil, root --[[@as mcp-tools.Error]]
  end
  local count = api.nvim_buf_line_count(file.bufnr)
  if args.start_line > count then
    local text = 'start_line: %d is beyond the end (%d lines)'
    return nil, errors.new('validation_error', text:format(args.start_line, count))
  end
  local row = args.start_line - 1
  local line = api.nvim_buf_get_lines(file.bufnr, row, row + 1, false)[1]
  local byte = args.column and vim.fn.byteidxcomp((line:gsub('%z', '\n')), args.column - 1) or #line:match('^%s*')
  if byte < 0 then
    local text = 'column: %d is beyond the end of line %d (%d characters)'
    return nil, errors.new('validation_error', text:format(args.column, args.start_line, position.characters(line)))
  end
  local node = root:named_descendant_for_range(row, byte, row, math.min(byte + 1, #line))
  local tick, pause = api.nvim_buf_get_changedtick(file.bufnr), time_slice.of(ctx)
  redact.refresh(pause)
  local rows, shown = {}, shower(file.bufnr)
  while node and #rows < args.limit do
    pause()
    if changed(file.bufnr, tick) then
      return nil, errors.new('busy', ('%s has changed; try again'):format(file.shown))
    end
    local name = treesitter.field(node, 'name')
    local label = name and (' %s'):format(utf8.cut(vim.treesitter.get_node_text(name, file.bufnr), 80)) or ''
    table.insert(rows, ('%s%s %s'):format(node:type(), label, shown(node)))
    node = node:parent()
  end
  if #rows == 0 then
    rows = { 'there is no node' }
  end
  table.insert(rows, 1, file.shown)
  return result.longest({ { text = rows } }, 'lower limit')
end

--- Limits of a query, and of the levels of a tree. One step that cannot be interrupted tries all combinations: with
--- several quantifiers, 100 nodes, or 20000 levels, it takes seconds. Code written by hand is rarely that deep.
local MAX_QUANTIFIERS, MAX_NODES, MAX_NESTED = 1, 30, 8
local MAX_DEPTH = 1000
--- Nodes with fewer bytes are skipped: no language has ten levels for each byte.
local MIN_BYTES = MAX_DEPTH / 10

--- Returns why a query may take too long.
---@param query string
---@return string?
local function excess_of(query)
  local bare = query:gsub('\\.', ''):gsub('"[^"\n]*"', '"'):gsub(';[^\n]*', ''):gsub('#[%w_.-]+[?!]?', '')
  local _, quantifiers = bare:gsub('[*+?]', '')
  if quantifiers > MAX_QUANTIFIERS then
    return 'more than one *, + or ? takes too long on long lists of nodes'
  end
  local _, nodes = bare:gsub('[("]', '')
  local _, wildcards = bare:gsub('%f[%w_@(]_+%f[^%w_]', '')
  local depth, nested = 0, 0
  for sign in bare:gmatch('[()]') do
    depth = depth + (sign == '(' and 1 or -1)
    nested = math.max(nested, depth)
  end
  if nodes + wildcards > MAX_NODES or nested > MAX_NESTED then
    return ('more than %d nodes, or %d nested ones, take too long'):format(MAX_NODES, MAX_NESTED)
  end
end

--- Predicates that take time proportional to the text of a node. Others run patterns or code of plugins, in one step
--- that cannot be interrupted.
local PREDICATES = { 'eq', 'any-of', 'contains', 'has-parent', 'has-ancestor' }

--- Returns the first predicate or directive of a query that is not allowed.
---@param query vim.treesitter.Query
---@return string? name
local function forbidden_in(query)
  for _, predicates in pairs(query.info.patterns) do
    for _, predicate in ipairs(predicates) do
      local name = tostring(predicate[1])
      local plain = name:match('^(.*)%?$') or ''
      plain = plain:gsub('^not%-', '')
      if not vim.list_contains(PREDICATES, plain) and not vim.list_contains(PREDICATES, (plain:gsub('^any%-', ''))) then
        return name
      end
    end
  end
end

--- Whether a tree has too many levels for a query.
---@param root TSNode
---@param is_old fun(): boolean whether the text has changed, which ends the check
---@param pause fun()
---@return boolean
local function is_too_deep(root, is_old, pause)
  local levels = { root:iter_children() }
  while #levels > 0 and #levels <= MAX_DEPTH and not is_old() do
    local child = levels[#levels]()
    if child and child:byte_length() >= MIN_BYTES then
      levels[#levels + 1] = child:iter_children()
    elseif not child then
      levels[#levels] = nil
    end
    pause()
  end
  return #levels > MAX_DEPTH
end

--- Returns the captures of a query.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { query: string, path: string?, bufnr: integer?, start_line: integer, end_line: integer?, limit: integer,
---  offset: integer }
---@return string?
---@return mcp-tools.Error? err
function M.query(ctx, args)
  local file, root, lang = tree_of(ctx, args)
  if not file then
    return nil, root --[[@as mcp-tools.Error]]
  end
  ---@cast root TSNode
  local excess = excess_of(args.query)
  if excess then
    return nil, errors.new('validation_error', ('query: %s; split it into smaller queries'):format(excess))
  end
  local ok, query = pcall(vim.treesitter.query.parse, lang, args.query)
  if not ok then
    local why = tostring(query):gsub('^.-:%d+: ', '')
    return nil, errors.new('validation_error', ('query: invalid for the grammar of %s: %s'):format(lang, why))
  end
  local forbidden = forbidden_in(query)
  if forbidden then
    local text = 'query: #%s is not allowed; allowed are #%s? and their not- and any- forms'
    return nil, errors.new('validation_error', text:format(forbidden, table.concat(PREDICATES, '?, #')))
  end
  local tick, pause = api.nvim_buf_get_changedtick(file.bufnr), time_slice.of(ctx)
  redact.refresh(pause)
  local function is_old()
    return changed(file.bufnr, tick)
  end
  if treesitter.is_wide(root, pause) then
    local text = '%s: a syntax error makes its tree too wide for a query; %s'
    return nil, errors.new('tool_error', text:format(file.shown, WITHOUT))
  elseif is_too_deep(root, is_old, pause) then
    local text = '%s: its tree has more than %d levels; %s'
    return nil, errors.new('tool_error', text:format(file.shown, MAX_DEPTH, WITHOUT))
  elseif is_old() then
    return nil, errors.new('busy', ('%s has changed; try again'):format(file.shown))
  end
  local rows, count, shown = {}, 0, shower(file.bufnr)
  local captures = query:iter_captures(root, file.bufnr, args.start_line - 1, args.end_line or -1)
  local fine, thrown = pcall(function()
    while not is_old() and count < MAX_COUNTED do
      -- With a limit it would return after a match that does not fit, instead of continuing to one that does.
      local id, node = captures(-1)
      if not node then
        break
      end
      local name = id and query.captures[id] or '_'
      if name:sub(1, 1) ~= '_' then
        count = count + 1
        if count > args.offset and #rows < args.limit then
          table.insert(rows, ('@%s %s'):format(name, shown(node)))
        end
      end
      pause()
    end
  end)
  if not fine then
    return nil, errors.new('tool_error', ('query failed: %s'):format(tostring(thrown)))
  elseif is_old() then
    return nil, errors.new('busy', ('%s has changed; try again'):format(file.shown))
  end
  local head = ('%s: %d%s captures'):format(file.shown, count, count >= MAX_COUNTED and ' or more' or '')
  head = result.with_range(head, args, count)
  table.insert(rows, 1, head)
  return result.longest(
    { { text = rows }, { text = head, without = 'captures, only the total' } },
    'narrow it with limit, start_line and end_line'
  )
end

return M
