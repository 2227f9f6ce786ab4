--- Checks the options of `setup()`: returns faults by path, and unknown keys.

---@param word string
---@param candidates string[]
---@return string?
local function nearest(word, candidates)
  return (require('mcp-tools.util.suggest')(word, candidates)) -- start-up cost: only for mistakes
end

---@param parent string
---@param key string|number
---@return string
local function join(parent, key)
  return parent == '' and tostring(key) or parent .. '.' .. tostring(key)
end

---@param value any
---@param kind string
---@return boolean
local function is_a(value, kind)
  if kind == 'integer' then
    return type(value) == 'number' and value % 1 == 0
  elseif kind == 'list' then
    return type(value) == 'table' and vim.islist(value)
  elseif kind == 'map' then
    return type(value) == 'table'
  elseif kind == 'function' then
    return vim.is_callable(value)
  end
  return type(value) == kind
end

---@param value any
---@param kinds string|string[]
---@return boolean
local function is_any(value, kinds)
  for _, kind in ipairs(type(kinds) == 'table' and kinds or { kinds }) do
    if is_a(value, kind) then
      return true
    end
  end
  return false
end

---@param value any
---@return string
local function show(value)
  return type(value) == 'string' and ('"%s"'):format(value) or tostring(value)
end

---@param parts string[]
---@return string
local function either(parts)
  local last = table.remove(parts)
  return #parts > 0 and ('%s or %s'):format(table.concat(parts, ', '), last) or last
end

--- Describes the values that an option accepts: `"auto", a list such as { "claude" } or a boolean`.
---@param kinds string|string[]
---@param enum? string[] allowed strings
---@param example? string of a list
---@return string
local function expected(kinds, enum, example)
  local parts = {}
  for _, kind in ipairs(type(kinds) == 'table' and kinds or { kinds }) do
    if kind == 'string' and enum then
      vim.list_extend(parts, vim.tbl_map(show, enum))
    elseif kind == 'list' then
      table.insert(parts, 'a list' .. (example and ' such as ' .. example or ''))
    elseif kind == 'integer' then
      table.insert(parts, 'an integer')
    else
      table.insert(parts, kind == 'map' and 'a table' or 'a ' .. kind)
    end
  end
  return either(parts)
end

local check_fields ---@type fun(fields: mcp-tools.Option[], place: string, item: table, faults: string[])

--- Appends the faults of one value to `faults`, as `path: fault`.
---@param option mcp-tools.Option
---@param value any
---@param faults string[]
local function check_option(option, value, faults)
  local path = option.path
  if not is_any(value, option.type) then
    local allowed = expected(option.type, option.enum, option.example)
    table.insert(faults, ('%s: expected %s, got %s'):format(path, allowed, type(value)))
    return
  end
  if option.enum and type(value) == 'string' and not vim.list_contains(option.enum, value) then
    local near = nearest(value, option.enum)
    local hint = near and (' (did you mean "%s"?)'):format(near) or ''
    local allowed = expected(option.type, option.enum, option.example)
    table.insert(faults, ('%s: expected %s, got "%s"%s'):format(path, allowed, value, hint))
  end
  if type(value) == 'number' and (value < (option.min or value) or value > (option.max or value)) then
    local range = option.max and ('%d to %d'):format(option.min, option.max) or ('%d or more'):format(option.min)
    table.insert(faults, ('%s: expected %s, got %s'):format(path, range, tostring(value)))
  end
  if type(value) == 'table' and option.items then
    for key, item in pairs(value) do
      local place = type(key) == 'number' and ('%s[%d]'):format(path, key) or join(path, key)
      if not is_any(item, option.items) then
        local allowed = expected(option.items, option.item_enum)
        table.insert(faults, ('%s: expected %s, got %s'):format(place, allowed, type(item)))
      elseif option.item_enum and not vim.list_contains(option.item_enum, item) then
        local allowed = either(vim.tbl_map(show, option.item_enum))
        table.insert(faults, ('%s: expected %s, got %s'):format(place, allowed, show(item)))
      elseif option.fields then
        check_fields(option.fields, place, item, faults)
      end
    end
  end
end

--- Suggests what was probably meant by an unknown key.
---@param node mcp-tools.OptionNode
---@param parent string
---@param key string|number
---@return string?
local function suggestion(node, parent, key)
  local keys, option = vim.split(tostring(key), '.', { plain = true }), node
  for _, part in ipairs(keys) do
    option = option and option.children[part]
  end
  if option and option.option then -- a dotted path as a key
    return table.concat(keys, ' = { ') .. ' = …' .. (' }'):rep(#keys - 1)
  end
  local near = nearest(tostring(key), vim.tbl_keys(node.children))
  return near and join(parent, near)
end

--- Appends the faults of one item of a map with known fields.
function check_fields(fields, place, item, faults)
  local known = {}
  for _, field in ipairs(fields) do
    known[field.path] = field
  end
  for key, value in pairs(item) do
    local path = join(place, key)
    if known[key] then
      check_option(setmetatable({ path = path }, { __index = known[key] }), value, faults)
    else
      local near = nearest(tostring(key), vim.tbl_keys(known))
      local hint = near and (' (did you mean %s?)'):format(near) or ''
      table.insert(faults, ('%s: unknown field%s'):format(path, hint))
    end
  end
end

--- Checks a table of options.
---@param node mcp-tools.OptionNode
---@param given table
---@param parent string
---@param faults string[]
---@param unknown string[]
local function check(node, given, parent, faults, unknown)
  for key, value in pairs(given) do
    local child, path = node.children[key], join(parent, key)
    if child and child.option then
      check_option(child.option, value, faults)
    elseif child and type(value) == 'table' then
      check(child, value, path, faults, unknown)
    elseif child then
      table.insert(faults, ('%s: expected a table, got %s'):format(path, type(value)))
    else
      local hint = suggestion(node, parent, key)
      table.insert(unknown, ("'%s'"):format(join(parent, key)) .. (hint and (' (did you mean %s?)'):format(hint) or ''))
    end
  end
end

--- Checks options.
---@param given table
---@param tree mcp-tools.OptionNode
---@return string[] faults `path: fault`
---@return string[] unknown keys, with suggestions
return function(given, tree)
  local faults, unknown = {}, {}
  check(tree, given, '', faults, unknown)
  table.sort(faults)
  table.sort(unknown)
  return faults, unknown
end
