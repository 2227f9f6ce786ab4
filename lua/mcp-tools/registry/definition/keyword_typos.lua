--- Keywords of a schema that look like slips of known ones: `minimun`. Others are annotations, and pass.
---
--- Receives: a schema that was found good. Sends: what was meant, to `add`. Does not know about definitions.

local common = require('mcp-tools.registry.definition.common')
local keywords = require('mcp-tools.schema.keywords')

--- Known ones that may have any value.
local ANY = { default = true, const = true }

local candidates = vim.list_extend(vim.tbl_keys(keywords.shapes), vim.tbl_keys(ANY))

---@param schema any
---@param add fun(path: string, message: string)
return function(schema, add)
  local seen = {}
  local function walk(node, path)
    if type(node) ~= 'table' or seen[node] then
      return
    end
    seen[node] = true
    for keyword in pairs(node) do
      local is_known = keywords.shapes[keyword] or ANY[keyword] or keywords.unsupported[keyword]
      local meant = not is_known and type(keyword) == 'string' and common.slip(keyword, candidates)
      if meant then
        add(keywords.join(path, keyword), ('did you mean %s?'):format(meant))
      end
    end
    keywords.children(node, path, walk)
  end
  walk(schema, '')
end
