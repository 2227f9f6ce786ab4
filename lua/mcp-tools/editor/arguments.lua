--- Schemas of arguments that many tools have.

local M = {}

--- File patterns.
M.GLOBS = {
  type = 'array',
  items = { type = 'string', maxLength = 500 },
  description = 'Such as `*.lua` or `src/**`; `!` excludes',
}

--- Marks arguments that are accepted, but not published.
---@param schema table
---@return table
function M.hidden(schema)
  return vim.tbl_extend('force', schema, { hidden = true })
end

--- Returns the schema of the size of a page.
---@param what string plural, such as `rows`
---@param default integer
---@param maximum integer
---@return table
function M.limit(what, default, maximum)
  local description = 'Maximum number of ' .. what
  return { type = 'integer', description = description, default = default, minimum = 1, maximum = maximum }
end

--- Returns the schema of a maximum size, which is not published.
---@param description string
---@param default integer bytes
---@param maximum integer
---@return table
function M.bytes(description, default, maximum)
  local schema = { type = 'integer', description = description, default = default, maximum = maximum }
  return vim.tbl_extend('error', schema, { minimum = 100, hidden = true })
end

--- Returns the schema of a time limit, which is not published.
---@param default integer ms
---@return table
function M.timeout(default)
  local schema = { type = 'integer', description = 'Maximum time to wait', default = default }
  return vim.tbl_extend('error', schema, { minimum = 0, maximum = 240000, hidden = true })
end

return M
