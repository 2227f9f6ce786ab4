--- Returns what tells the client of a call from others: its session, otherwise its name; of callers inside Neovim, the
--- host. Nil: an MCP client without session and name.
---@param ctx { session: string?, client: { name: string? }?, host: string? }
---@return string?
return function(ctx)
  local name = ctx.client and ctx.client.name or ''
  return ctx.session or name ~= '' and 'client ' .. name or ctx.host ~= 'mcp' and ctx.host or nil
end
