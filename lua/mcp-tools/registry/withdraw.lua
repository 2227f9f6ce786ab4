--- Takes out what one place (a file, a module, a process) gave to the registry and gives no longer.
---
--- Receives: the tools of that place, and the names of those that it still has.
--- Sends: the others out of the registry, unless somebody else has registered the name since.
--- Does not know about: what kind of place it is.

---@param registry mcp-tools.Registry
---@param tools table<string, table> name → what the registry made of it; changed
---@param kept table<string, true>
return function(registry, tools, kept)
  for name, definition in pairs(tools) do
    if not kept[name] then
      tools[name] = nil
      if registry:known('tools', name) == definition then
        registry:remove_tool(name)
      end
    end
  end
end
