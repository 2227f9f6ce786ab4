---@param tool table normalised definition
---@return string
local function group_of(tool)
  local source = tool.source or {}
  return source.group or source.origin or 'registered'
end

local HEADINGS = { { 'resources', 'resources' }, { 'templates', 'resource templates' }, { 'prompts', 'prompts' } }

--- What is offered besides tools.
---@param registry mcp-tools.Registry
---@param lines string[]
local function add_others(registry, lines)
  for _, heading in ipairs(HEADINGS) do
    local list = registry:list(heading[1])
    if #list > 0 then
      table.insert(lines, heading[2])
    end
    for _, entry in ipairs(list) do
      local summary = tostring(entry.title or entry.description or entry.name):match('[^\n]*')
      table.insert(lines, ('  %-32s %s'):format(entry.key, summary))
    end
  end
end

---@type mcp-tools.Subcommand
return {
  description = 'list the tools that clients are offered, by group, then resources and prompts',
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
    add_others(core.get().registry, lines)
    for _, failure in ipairs(core.loader_failures()) do
      table.insert(lines, ('failed: %s: %s'):format(failure.source, tostring(failure.error):match('[^\n]*')))
    end
    require('mcp-tools.ui.scratch').show('tools', lines)
  end,
}
