-- A syntax tree in place of one that a parser makes, for languages whose parser is not installed.

local M = {}

local Node = {}
Node.__index = Node

local function before(row, col, other_row, other_col) return row < other_row or row == other_row and col <= other_col end

function Node:type() return self.spec[1] end

function Node:range() return self.spec[2], self.spec[3], self.spec[4], self.spec[5] end

function Node:start() return self.spec[2], self.spec[3] end

function Node:parent() return self.above end

function Node:prev_sibling() return self.above and self.above.children[self.index - 1] end

function Node:named_child_count() return #self.children end

function Node:named_child(index) return self.children[index + 1] end

function Node:field(name)
  return vim.tbl_filter(function(child) return child.spec.field == name end, self.children)
end

function Node:named_descendant_for_range(row, col, end_row, end_col)
  for _, child in ipairs(self.children) do
    local r, c, er, ec = child:range()
    if before(r, c, row, col) and before(end_row, end_col, er, ec) then
      return child:named_descendant_for_range(row, col, end_row, end_col)
    end
  end
  return self
end

--- Describes a node for `tree`.
---@param kind string
---@param range string first row and column, last row and column
---@param children table[]?
---@param field string? of its parent
---@return table
function M.node(kind, range, children, field)
  local row, col, end_row, end_col = unpack(vim.tbl_map(tonumber, vim.split(range, ' ')))
  return { kind, row, col, end_row, end_col, children, field = field }
end

---@param spec table
---@return TSNode
function M.tree(spec, above, index)
  local node = setmetatable({ spec = spec, above = above, index = index, children = {} }, Node)
  for i, child in ipairs(spec[6] or {}) do
    node.children[i] = M.tree(child, node, i)
  end
  return node
end

return M
