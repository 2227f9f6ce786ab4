--- The tools that agents may run without asking the user, for rules in their own permission settings.

local config = require('mcp-tools.config')
local project = require('mcp-tools.instances.project')
local rules = require('mcp-tools.approval.rules')

local M = {}

--- Returns the published names of the bundled tools that only read, except those that need approval in this editor.
---@param registry mcp-tools.Registry with all definitions loaded
---@return string[]? names
---@return string? err why no tool may be allowed
function M.names(registry)
  local options, names = config.get(), {}
  if options.approval.default == 'allow' then
    return nil, 'approval.default is "allow", so neither the agent nor Neovim would ask you. Set it to "ask" first'
  end
  for _, tool in ipairs(registry:list('tools')) do
    local only_reads = tool.annotations and tool.annotations.read_only and not tool.needs_approval
    if only_reads and tool.source and tool.source.origin == 'bundled' then
      local decision = rules.by_options(tool, project.root())
      if not decision or decision.action == 'allow' then
        table.insert(names, options.tool_prefix .. tool.name)
      end
    end
  end
  table.sort(names)
  if #names == 0 then
    return nil, 'no bundled tool that only reads is switched on (:help mcp-tools-option-tools)'
  end
  return names
end

return M
