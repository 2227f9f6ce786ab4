--- Names of symbol kinds: `class`, `enum_member` for the numbers of the protocol.

local errors = require('mcp-tools.errors')

local M = {}

---@type table<integer, string>
local names = {}
for number, name in pairs(vim.lsp.protocol.SymbolKind) do
  if type(number) == 'number' then
    names[number] = name:gsub('(%l)(%u)', '%1_%2'):lower()
  end
end

--- Returns the name of a kind.
---@param number integer
---@return string
function M.name(number)
  return names[number] or 'symbol'
end

--- Reads kinds in any spelling: `Method`, `methods`, `EnumMember`.
---@param given string[]
---@param more? string[] kinds that the protocol does not have
---@return string[]?
---@return mcp-tools.Error? err
function M.read(given, more)
  local known = vim.list_extend(vim.tbl_values(names), more or {})
  local list = {}
  for i, text in ipairs(given) do
    local name = text:gsub('(%l)(%u)', '%1_%2'):lower():gsub('[%s-]', '_')
    for _, each in ipairs({ (name:gsub('ies$', 'y')), (name:gsub('es$', '')), (name:gsub('s$', '')), name }) do
      list[i] = vim.list_contains(known, each) and each or list[i]
    end
    if not list[i] then
      table.sort(known)
      local fault = 'kinds: %q is not a kind; kinds are %s'
      return nil, errors.new('validation_error', fault:format(text:sub(1, 100), table.concat(known, ', ')))
    end
  end
  return list
end

return M
