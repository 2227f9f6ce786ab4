--- Names the scripts that define mappings and set options.

--- Returns a function from a script's number and a line to `file:line`. It remembers names, so it serves one call.
---@return fun(sid: integer?, line: integer?): string?
return function()
  local names = {} ---@type table<integer, string>
  return function(sid, line)
    if not sid or sid <= 0 then
      return nil
    elseif not names[sid] then
      local script = vim.fn.getscriptinfo({ sid = sid })[1]
      names[sid] = script and vim.fn.fnamemodify(script.name, ':~') or ''
    end
    return names[sid] ~= '' and ('%s:%d'):format(names[sid], line or 0) or nil
  end
end
