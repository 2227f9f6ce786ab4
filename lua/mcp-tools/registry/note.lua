--- What is noted of a definition that the registry takes in.
---
--- Receives: a definition that was found good.
--- Sends: to the log what is to be said of it; to the definition where it comes from.
--- Does not know about: the registry.

local log = require('mcp-tools.log')

---@param handler function
---@return string?
local function file_of(handler)
  local source = debug.getinfo(handler, 'S').source
  return source:sub(1, 1) == '@' and source:sub(2) or nil
end

---@param what string
---@param normalised table
---@param old table? what it replaces
---@param source mcp-tools.Source?
return function(what, normalised, old, source)
  if old then
    log.info('%s registered again; the new definition replaces the old one', what)
  end
  for _, note in ipairs(vim.list_extend(vim.list_slice(normalised.repairs), normalised.lint)) do
    log.info('%s: %s', what, note)
  end
  normalised.source = source or { origin = 'registered' }
  normalised.source.file = normalised.source.file or file_of(normalised.handler)
end
