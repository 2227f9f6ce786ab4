--- Pagination of a list: some of many, and where the next page begins.
---
--- Receives: a list, `limit` and `offset`.
--- Sends: the items of one page, how many there are of all, and the next offset when there are more.
--- Does not know about: what the items are.

---@class mcp-tools.ListPage
---@field total integer
---@field next_offset integer?

---@param list any[]
---@param args { limit: integer, offset: integer }
---@return any[] items
---@return mcp-tools.ListPage about
return function(list, args)
  local items = vim.list_slice(list, args.offset + 1, math.min(#list, args.offset + args.limit))
  local behind = args.offset + #items
  return items, { total = #list, next_offset = #items > 0 and behind < #list and behind or nil }
end
