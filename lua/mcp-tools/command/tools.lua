---@param tool table normalised definition
---@return string
local function group_of(tool)
  local source = tool.source or {}
  return source.group or source.origin or 'registered'
end

---@type mcp-tools.Subcommand
return {
  description = 'list the tools that clients are offered, by group',
  run = function()
    local core = require('mcp-tools.core')
    local prefix = require('mcp-tools.config').get('tool_prefix')
    local groups, names = {}, {}
    for _, tool in ipairs(core.get().registry:list('tools')) do
      local group = group_of(tool)
      if not groups[group] then
        groups[group] = {}
        table.insert(names, group)
      end
      local summary = tostring(tool.title or tool.description or ''):match('[^\n]*')
      table.insert(groups[group], ('  %-32s %s'):format(prefix .. tool.name, summary))
    end
    table.sort(names)
    local lines = {}
    for _, name in ipairs(names) do
      table.insert(lines, name)
      vim.list_extend(lines, groups[name])
    end
    if #lines == 0 then
      lines = { 'No tools are on. setup({ tools = "recommended" }) offers the bundled ones.' }
    end
    for _, failure in ipairs(core.loader_failures()) do
      table.insert(lines, ('failed: %s: %s'):format(failure.source, tostring(failure.error):match('[^\n]*')))
    end
    require('mcp-tools.ui.scratch').show('tools', lines)
  end,
}
