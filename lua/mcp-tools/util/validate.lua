--- Validates arguments of public functions.

--- Raises unless `value` has the type.
---@param name string
---@param value any
---@param kind type|'callable'
---@param optional? boolean nil is allowed
return function(name, value, kind, optional)
  if (value == nil and optional) or type(value) == kind or (kind == 'callable' and vim.is_callable(value)) then
    return
  end
  error(('%s: expected %s%s, got %s'):format(name, kind, optional and ' or nil' or '', type(value)), 3)
end
