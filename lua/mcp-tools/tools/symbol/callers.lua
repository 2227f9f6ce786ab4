--- Lists the callers of a function, or the functions that it calls.

local args_of = require('mcp-tools.editor.lsp.args')
local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local navigation = require('mcp-tools.editor.lsp.navigation')
local result = require('mcp-tools.editor.result')

local PREPARE = 'textDocument/prepareCallHierarchy'
local KINDS = {
  incoming = { prepare = PREPARE, step = 'callHierarchy/incomingCalls', item = 'from' },
  outgoing = { prepare = PREPARE, step = 'callHierarchy/outgoingCalls', item = 'to' },
}

--- Adds a row for each item and, indented, those below it.
---@param rows string[]
---@param items table[]
---@param indent string
local function add_rows(rows, items, indent)
  for _, item in ipairs(items) do
    local calls = item.lines and (', calls in line %s'):format(table.concat(item.lines, ', ')) or ''
    table.insert(rows, ('%s%s:%d: %s%s'):format(indent, item.path, item.line, item.name, calls))
    add_rows(rows, item.children or {}, indent .. '  ')
  end
end

return {
  name = 'symbol_callers',
  title = 'Find callers',
  description = 'Lists who calls a function, and who calls those callers, up to `depth`; or, with direction `outgoing`,'
    .. ' what it calls.',
  search_hint = 'call hierarchy, who calls, callees, impact of a change',
  args = args_of.symbol({
    depth = { type = 'integer', description = 'Levels', default = 1, minimum = 1, maximum = 5 },
    direction = {
      type = 'string',
      enum = { 'incoming', 'outgoing' },
      description = 'Callers or what it calls',
      default = 'incoming',
    },
    limit = arguments.limit('rows', 200, 200),
  }),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, args)
    local spot = errors.unwrap(find.spot(ctx, args))
    return navigation.hierarchy(ctx, spot, KINDS[args.direction], args.depth)
  end,
  render = function(value, args)
    local rows = {}
    add_rows(rows, value.items, '')
    local what = args.direction == 'outgoing' and 'function called by' or 'caller of'
    local head = ('%d %s %s'):format(value.total, value.total == 1 and what or what:gsub('^(%a+)', '%1s', 1), value.of)
    head = value.truncated and head .. '; there may be more' or head
    head = value.incomplete and ('%s; %s'):format(head, value.incomplete) or head
    local shown = vim.list_slice(rows, 1, args.limit)
    if #shown < #rows then
      head = ('%s; the first %d shown'):format(head, #shown)
    end
    return result.longest({
      { text = vim.list_extend({ head }, shown) },
      { text = head, without = 'rows' },
    }, 'less depth or limit')
  end,
}
