--- MCP Hub as a host: a native server of it, made from the registry.
---
--- Follows https://ravitemer.github.io/mcphub.nvim/mcp/native. It has no way to say that a call is called off.

local assistant = require('mcp-tools.callers.assistant')

local M = {}

local HOST = 'mcphub'

---@param offered mcp-tools.Offered
---@param opts mcp-tools.AssistantOpts
---@return table tool
local function tool_of(offered, opts)
  local tool = {
    name = offered.name,
    description = offered.description,
    inputSchema = offered.parameters,
    needs_confirmation_window = false, -- this plugin asks
    handler = function(req, res)
      assistant.start(HOST, offered.name, req.params or vim.empty_dict(), opts, {}, function(outcome)
        res:send({ content = outcome.content, isError = not outcome.ok or nil })
      end)
    end,
  }
  return vim.tbl_extend('force', tool, offered.extras)
end

--- A server for `native_servers = { nvim = … }` in its `setup()`, or for its `add_server('nvim', …)`. Whether a call
--- may run is asked by this plugin. It has the tools that there are now.
---@param opts? mcp-tools.AssistantOpts
---@return table definition
function M.server(opts)
  opts = opts or {}
  local tools = vim.tbl_map(function(offered)
    return tool_of(offered, opts)
  end, assistant.offered(HOST, opts))
  return { name = 'nvim', displayName = 'Neovim', capabilities = { tools = tools } }
end

return M
