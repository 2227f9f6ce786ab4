--- Health of the addresses that this editor listens at.

local health = vim.health

local M = {}

--- Those of the addresses that are no file and no loopback: whoever reaches one can do all that the person can.
---@param addresses string[] as |serverlist()| gives them
---@return string[]
function M.exposed(addresses)
  return vim.tbl_filter(function(address)
    local host = not address:find('[/\\]') and address:match('^(.*):%d+$')
    host = host and host:gsub('^%[(.*)%]$', '%1')
    return host and not (host:find('^127%.') or host == 'localhost' or host == '::1') or false
  end, addresses)
end

function M.check()
  for _, address in ipairs(M.exposed(vim.fn.serverlist())) do
    health.warn(('this editor listens at %s: whoever reaches that can run anything as you'):format(address), {
      'Close it: `:call serverstop("' .. address .. '")`',
      'To reach the editor from elsewhere: `:help mcp-tools-remote`',
    })
  end
end

return M
