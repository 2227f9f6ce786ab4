--- Lists subclasses, implementers and overrides of a symbol, or what a class derives from.

local args_of = require('mcp-tools.editor.lsp.args')
local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local navigation = require('mcp-tools.editor.lsp.navigation')
local result = require('mcp-tools.editor.result')

local PREPARE = 'textDocument/prepareTypeHierarchy'
local DOWN = { prepare = PREPARE, step = 'typeHierarchy/subtypes' }
local UP = { prepare = PREPARE, step = 'typeHierarchy/supertypes' }
--- Levels of a type hierarchy.
local DEPTH = 10

--- Adds the items of a hierarchy as places.
---@param places table[]
---@param items table[]
local function flatten(places, items)
  for _, item in ipairs(items) do
    table.insert(places, { path = item.path, line = item.line, text = item.name })
    flatten(places, item.children or {})
  end
end

---@param ctx mcp-tools.Ctx
---@param spot mcp-tools.lsp.Spot
---@param kind mcp-tools.lsp.Hierarchy
---@return table?
---@return mcp-tools.Error? err
local function by_types(ctx, spot, kind)
  local tree, err = navigation.hierarchy(ctx, spot, kind, DEPTH)
  if not tree then
    return nil, err
  end
  local found = { total = tree.total, places = {}, incomplete = tree.incomplete }
  flatten(found.places, tree.items)
  return found
end

return {
  name = 'symbol_implementations',
  title = 'Find implementations',
  description = 'Lists subclasses of a class, implementers of an interface, or overrides of a method; with direction'
    .. ' `up` what it derives from.',
  search_hint = 'subclasses, overrides, implements, derived classes, type hierarchy, base class',
  args = args_of.symbol({
    direction = {
      type = 'string',
      enum = { 'down', 'up' },
      description = 'Below it or above it',
      default = 'down',
    },
    limit = arguments.limit('results', 200, 1000),
  }),
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, args)
    local spot = errors.unwrap(find.spot(ctx, args))
    local found, err
    if args.direction == 'up' then
      found, err = by_types(ctx, spot, UP)
      if not found and err and err.code == 'not_found' then
        local text = 'no language server knows what %s derives from; symbol_info shows the line that defines it'
        err = errors.new('not_found', text:format(args_of.word(spot)))
      end
    else
      found, err = navigation.places(ctx, spot, 'textDocument/implementation', args.limit)
      if not found and err and err.code == 'not_found' then
        found, err = by_types(ctx, spot, DOWN)
      end
    end
    local places = {}
    for _, each in ipairs(errors.unwrap(found, err).places) do
      if each.path ~= spot.path or each.line ~= spot.line then -- servers list the asked place, too
        table.insert(places, { path = each.path, line = each.line, text = each.text })
      end
    end
    return {
      of = args_of.word(spot),
      total = found.total - #found.places + #places,
      places = vim.list_slice(places, 1, args.limit),
      withheld = found.withheld,
      incomplete = found.incomplete,
    }
  end,
  render = function(value, args)
    local noun = args.direction == 'up' and 'type above' or 'implementation of'
    local head = ('%d %s %s'):format(value.total, value.total == 1 and noun or noun:gsub('^(%a+)', '%1s', 1), value.of)
    if #value.places < value.total then
      head = ('%s; the first %d shown'):format(head, #value.places)
    end
    head = value.incomplete and ('%s; %s'):format(head, value.incomplete) or head
    local rows, path = { head }, nil
    for _, each in ipairs(value.places) do
      table.insert(rows, each.path ~= path and each.path or nil)
      path = each.path
      table.insert(rows, ('  %d%s'):format(each.line, each.text and ': ' .. each.text or ''))
    end
    return result.longest({
      { text = rows },
      { text = head, without = 'rows' },
    }, 'narrow it with path or limit')
  end,
}
