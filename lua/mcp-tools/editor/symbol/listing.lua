--- Symbols that a search has found, as text: the path of a file once, one symbol a line, with its body when asked for.
---
--- Receives: symbols of files.
--- Sends: text that stays within bounds.
--- Does not know about: how they were found.

local fit = require('mcp-tools.editor.result.fit')
local name_path = require('mcp-tools.editor.symbol.name_path')
local outline = require('mcp-tools.editor.symbol.outline')
local symbol = require('mcp-tools.editor.symbol')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

---@class mcp-tools.SymbolListing
---@field shown string
---@field by string
---@field count integer
---@field rows { head: string, body: string }[]

---@param hits mcp-tools.Hits
---@param node mcp-tools.SymbolNode
---@param line_of fun(number: integer): string?
---@param body boolean
local function entry(hits, node, line_of, body)
  local name = name_path.of(node, hits.file.tree)
  local source = not body and outline.is_called(node) and outline.signature(node, line_of) or ''
  return {
    head = ('  %s [%s] %s%s'):format(name, node.kind, outline.lines(node), source ~= '' and ': ' .. source or ''),
    body = body and (utf8.repair(table.concat(hits.lines_of(node.line, node.end_line), '\n'))) or '',
  }
end

--- As much as is asked for, as it is now.
---@param hits mcp-tools.Hits[]
---@param opts { limit: integer, offset: integer, body: boolean? }
---@return mcp-tools.SymbolListing[]
function M.of(hits, opts)
  local list, at = {}, 0
  for _, each in ipairs(hits) do
    local listing = { shown = each.shown, by = symbol.by(each.file), count = #each.nodes, rows = {} }
    local line_of = outline.line_reader(each.lines_of)
    for _, node in ipairs(each.nodes) do
      at = at + 1
      if at > opts.offset and at <= opts.offset + opts.limit then
        table.insert(listing.rows, entry(each, node, line_of, opts.body == true))
      end
    end
    table.insert(list, listing)
  end
  return list
end

---@param list mcp-tools.SymbolListing[]
---@return string? by of all
local function common(list)
  for _, each in ipairs(list) do
    if each.by ~= list[1].by then
      return nil
    end
  end
  return list[1] and list[1].by
end

---@param list mcp-tools.SymbolListing[]
---@param total integer
---@param opts { limit: integer, offset: integer, body: boolean? }
---@param notes string[]
---@return string
function M.text(list, total, opts, notes)
  local by = common(list)
  local head = ('%d symbols%s'):format(total, by and (' (by %s)'):format(by) or '')
  local last = math.min(opts.offset + opts.limit, total)
  if opts.offset > 0 or last < total then
    head = ('%s; %d-%d shown'):format(head, math.min(opts.offset + 1, last), last)
    head = head .. (last < total and (', offset=%d goes on'):format(last) or '')
  end
  head = table.concat({ head, unpack(notes) }, '; ')
  local function rows(body)
    local out = { head }
    for _, each in ipairs(list) do
      if #each.rows > 0 then
        table.insert(out, each.shown .. (by and '' or (' (by %s)'):format(each.by)))
      end
      for _, row in ipairs(each.rows) do
        table.insert(out, row.head)
        if body then
          table.insert(out, row.body)
        end
      end
    end
    return table.concat(out, '\n')
  end
  local variants = {}
  if opts.body then
    table.insert(variants, {
      text = function()
        return rows(true)
      end,
    })
  end
  table.insert(variants, {
    without = opts.body and 'bodies; symbol_read gives one' or nil,
    text = function()
      return rows(false)
    end,
  })
  table.insert(variants, {
    without = 'names, so counts per file',
    text = function()
      local out = { head }
      for _, each in ipairs(list) do
        table.insert(out, ('%s: %d'):format(each.shown, each.count))
      end
      return table.concat(out, '\n')
    end,
  })
  table.insert(variants, {
    without = 'files to be named, so the total',
    text = function()
      return head
    end,
  })
  return fit.longest(variants, 'narrow it with path, kinds or limit')
end

return M
