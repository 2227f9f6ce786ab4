--- What is offered to clients, and how it came to be.

local KINDS = { 'tools', 'resources', 'templates', 'prompts' }

return {
  name = 'discovery',
  uri = 'nvim://discovery',
  title = 'What was found',
  description = 'Every tool, resource and prompt that is offered, where each comes from, what could not be loaded and'
    .. ' why, and how old the lists of bundled files are.',
  mime_type = 'application/json',
  tags = { 'editor' },
  read = function(ctx)
    local bundled, core = require('mcp-tools.bundled'), require('mcp-tools.core')
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
          file = source.file,
          notes = #entry.lint > 0 and entry.lint or nil,
        })
      end
    end
    for i, failure in ipairs(core.loader_failures()) do
      -- The first line: what follows is a traceback, which is for the log.
      failures[i] = { source = failure.source, error = tostring(failure.error):match('[^\n]*') }
    end
    for _, kind in ipairs({ 'resources', 'prompts' }) do
      local at = bundled.read_at(kind)
      ages[kind] = at and math.floor((vim.uv.hrtime() - at) / 1e6) or nil
    end
    found.failures = failures
    found.cache_age_ms = ages
    found.revisions = registry.revisions
    ctx(found)
  end,
  watch = function(changed)
    return require('mcp-tools.core').get().registry:on_change(function()
      changed()
    end)
  end,
}
