--- A native server for MCP Hub, made from the registry.
---
--- Follows https://ravitemer.github.io/mcphub.nvim/mcp/native, which has no way to cancel a call.

local assistant = require('mcp-tools.callers.assistant')

local M = {}

local HOST = 'mcphub'

---@param exposed mcp-tools.ExposedTool
---@param opts mcp-tools.AssistantOpts
---@return table tool
local function tool_of(exposed, opts)
  local tool = {
    name = exposed.name,
    description = exposed.description,
    inputSchema = exposed.parameters,
    needs_confirmation_window = false, -- this plugin asks for approval
    handler = function(req, res)
      assistant.start(HOST, exposed.name, req.params or vim.empty_dict(), opts, {}, function(outcome)
        res:send({ content = outcome.content, isError = not outcome.ok or nil })
      end)
    end,
  }
  return vim.tbl_extend('force', tool, exposed.extras)
end

--- Returns a server for `native_servers = { nvim = … }` in MCP Hub's `setup()`, or for its `add_server('nvim', …)`. It
--- has the current tools. This plugin asks for approval of each call.
---@param opts? mcp-tools.AssistantOpts
---@return table definition
function M.server(opts)
  opts = opts or {}
  local tools = vim.tbl_map(function(exposed)
    return tool_of(exposed, opts)
  end, assistant.offered(HOST, opts))
  return { name = 'nvim', displayName = 'Neovim', capabilities = { tools = tools } }
end

return M
