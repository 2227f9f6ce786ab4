--- One argument of a public function: is it what it should be?
---
--- Receives: a name, a value, the type that it must have.
--- Sends: an error that names both, raised at the public function's caller.
--- `vim.validate` changed its form between 0.10 and 0.11; this is the same on all.

--- Raises unless `value` has the type.
---@param name string
---@param value any
---@param kind type|'callable'
---@param optional? boolean nil is fine too
return function(name, value, kind, optional)
  if (value == nil and optional) or type(value) == kind or (kind == 'callable' and vim.is_callable(value)) then
    return
  end
  error(('%s: expected %s%s, got %s'):format(name, kind, optional and ' or nil' or '', type(value)), 3)
end
