--- Limits how often a session may do something that needs no approval. Calls of the user's own Lua are not limited.

local errors = require('mcp-tools.errors')
local per_session = require('mcp-tools.util.per_session')

--- Creates a limit: `burst` calls immediately, then `per_second`.
---@param burst integer
---@param per_second number
---@return fun(ctx: mcp-tools.Ctx): mcp-tools.Error? take nil: allowed
return function(burst, per_second)
  local bucket_of = per_session(function()
    return { tokens = burst, at = vim.uv.hrtime() }
  end)
  return function(ctx)
    if ctx.host == 'nvim' or ctx.host == 'command' then
      return nil
    end
    local bucket, now = bucket_of(ctx), vim.uv.hrtime()
    bucket.tokens = math.min(burst, bucket.tokens + (now - bucket.at) / 1e9 * per_second)
    bucket.at = now
    if bucket.tokens >= 1 then
      bucket.tokens = bucket.tokens - 1
      return nil
    end
    local ms = math.ceil((1 - bucket.tokens) / per_second * 1000)
    local err = errors.new('rate_limited', ('too many of these calls in a short time; try again in %d ms'):format(ms))
    err.retry_after_ms = ms
    return err
  end
end
