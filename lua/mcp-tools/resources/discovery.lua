--- What is offered to clients, and how it came to be.

local KINDS = { 'tools', 'resources', 'templates', 'prompts' }

return {
  name = 'discovery',
  uri = 'nvim://discovery',
  title = 'What was found',
  description = 'Every tool, resource and prompt that is offered, where each comes from, what other plugins were found'
    .. ' to bring along, what could not be loaded and why, and how old what is known is.',
  mime_type = 'application/json',
  tags = { 'editor' },
  read = function(ctx)
    local bundled, core = require('mcp-tools.discovery.bundled'), require('mcp-tools.core')
    local registry = core.get().registry
    local found, failures, ages = {}, {}, {}
    for _, kind in ipairs(KINDS) do
      found[kind] = {}
      for _, entry in ipairs(registry:list(kind)) do
        local source = entry.source or {}
        table.insert(found[kind], {
          name = entry.key or entry.name,
          origin = source.origin,
          group = source.group,
          file = source.found_in or source.file,
          notes = #entry.lint > 0 and entry.lint or nil,
        })
      end
    end
    for i, failure in ipairs(core.loader_failures()) do
      -- The first line: what follows is a traceback, which is for the log.
      failures[i] = { source = failure.source, error = tostring(failure.error):match('[^\n]*') }
    end
    for _, kind in ipairs({ 'tools', 'resources', 'prompts' }) do
      local at = bundled.read_at(kind)
      ages[kind] = at and math.floor((vim.uv.hrtime() - at) / 1e6) or nil
    end
    found.failures = failures
    found.sources = vim.tbl_map(function(source)
      source.failures = nil -- they are among the others
      return source
    end, require('mcp-tools.discovery').report())
    found.cache_age_ms = ages
    found.revisions = registry.revisions
    ctx(found)
  end,
  watch = function(changed)
    local stop_registry = require('mcp-tools.core').get().registry:on_change(function()
      changed()
    end)
    local stop_looks = require('mcp-tools.discovery').on_look(changed)
    return function()
      stop_registry()
      stop_looks()
    end
  end,
}
