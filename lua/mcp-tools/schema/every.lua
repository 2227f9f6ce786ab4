--- Every check of a list, as one: all are run when faults are wanted, else as far as the first that fails.
---
--- Receives: checks, and which values they are for. Sends: a check. Does not know about: schemas.

---@param checks mcp-tools.schema.Check[]
---@param applies? fun(v: any): boolean other values fit
---@return mcp-tools.schema.Check
return function(checks, applies)
  local n = #checks
  return function(v, report)
    if applies and not applies(v) then
      return true
    end
    local ok = true
    for i = 1, n do
      if not checks[i](v, report) then
        if not report then
          return false
        end
        ok = false
      end
    end
    return ok
  end
end
