local notifications = require('notifications')
local t = require('helpers')
local config = require('mcp-tools.config')

describe('config', function()
  before_each(function()
    config.reset()
    notifications.collect()
  end)

  after_each(notifications.restore)

  it('has a description, a known type and a valid default for every option', function()
    local kinds = { 'string', 'boolean', 'integer', 'function', 'list', 'map' }
    for _, option in ipairs(config.schema) do
      t.ok(option.description:match('%.$') or option.description:match('^fun%('), option.path .. ': a sentence')
      for _, kind in ipairs(type(option.type) == 'table' and option.type or { option.type }) do
        t.ok(vim.list_contains(kinds, kind), option.path .. ': ' .. kind)
      end
    end
    -- The defaults are valid options themselves.
    local given = vim.deepcopy(config.get())
    config.setup(given)
    t.eq('', notifications.text())
  end)

  it('reads by dotted path, and returns nil for an unknown one', function()
    t.eq('127.0.0.1', config.get('bridge.host'))
    t.eq({ 300000, nil }, { config.get('bridge.tool_timeout'), (config.get('bridge.host.x')) })
    t.eq({ nil, 'recommended' }, { config.get('a.b.c'), (config.get('tools')) })
  end)

  it('merges a second setup into the first', function()
    config.setup({ bridge = { port = 4000 }, tools = { lsp = true } })
    config.setup({ bridge = { autostart = false }, tools = { dap = true }, roots = { markers = { '.root' } } })
    t.eq({ 4000, false }, { config.get('bridge.port'), (config.get('bridge.autostart')) })
    t.eq({ 'recommended', lsp = true, dap = true }, config.get('tools'))
    t.eq({ '.root' }, config.get('roots.markers'))
  end)

  it('reports all faults with their paths, and changes nothing then', function()
    local bad = { tool_prefix = 1, limits = { calls = 0 }, roots = { markers = { 1 } }, on_ready = 5, sensitive = true }
    bad.bridge = { port = 99999, log_level = 'inof', autostart = 'yes' }
    bad.approval = { tools = { rm = 'never' }, default = 'ask' }
    bad.agents, bad.review = 'claude', { when = true }
    local err = t.raises('none of its options were applied', function() config.setup(bad) end)
    for _, line in ipairs({
      'tool_prefix: expected a string, got number',
      'bridge.port: expected 0 to 65535, got 99999',
      'bridge.log_level: expected "debug", "info", "warn" or "error", got "inof" (did you mean "info"?)',
      'bridge.autostart: expected a boolean, got string',
      'limits.calls: expected 1 or more, got 0',
      'approval.tools.rm: expected "allow", "ask" or "deny", got "never"',
      'roots.markers[1]: expected a string, got number',
      'on_ready: expected a function, got number',
      'sensitive: expected a table, got boolean',
      'agents: expected "auto", a list such as { "claude", "gemini" } or a boolean, got "claude"',
      'review.when: expected "ask", "after" or "never", got boolean',
    }) do
      t.ok(err:find(line, 1, true), 'missing: ' .. line .. '\nin: ' .. err)
    end
    t.eq({ 'nvim_', false }, { config.get('tool_prefix'), (config.is_setup()) })
  end)
  it('shows the faults in the status of the bridge', function()
    t.raises('none of its options were applied', function() config.setup({ review = { when = true } }) end)
    local status = require('mcp-tools.bridge').status()
    t.matches('review%.when: expected', status.refusal)
    t.ok(not status.refusal:find('\n'))
    t.matches('Correct these options', status.to_do)
    config.setup({})
    status = require('mcp-tools.bridge').status()
    t.eq({ refusal = nil, to_do = ':McpTools start' }, { refusal = status.refusal, to_do = status.to_do })
  end)

  it('reports unknown options with the nearest known one, and applies the others', function()
    config.setup({ bridge = { prot = 4000, host = '::1' }, limit = { calls = 1 } })
    notifications.wait('unknown options')
    t.matches("bridge%.prot' %(did you mean bridge%.port%?%)", notifications.text())
    t.matches("limit' %(did you mean limits%?%)", notifications.text())
    t.eq({ '::1', nil }, { config.get('bridge.host'), (config.get('limit')) })
  end)

  it('ignores a path where a key belongs, and tells how to write it', function()
    config.setup({ ['approval.default'] = 'deny', bridge = { ['a.b'] = 1 } })
    notifications.wait('unknown options')
    t.matches("approval%.default' %(did you mean approval = { default = … }%?%)", notifications.text())
    t.matches('bridge%.a%.b', notifications.text())
    t.eq({ 'ask', nil }, { config.get('approval.default'), config.get()['approval.default'] })
  end)

  it('accepts the options of guill/mcp-tools.nvim, and reports unknown integrations once', function()
    local options = {
      tools = { dap = true, diagnostics = true, lsp = true, undo = true, test = true, interview = true },
      integrations = { opencode = true, ampcode = true, made_up = false, other = true },
      bridge = { command = nil, port = 0, log_level = 'info', log_file = '/tmp/x.log', tool_timeout = 0 },
      on_ready = function() end,
      on_stop = function() end,
    }
    config.setup(options)
    config.setup(options)
    notifications.wait('integrations (other)')
    local _, count = notifications.text():gsub('integrations', '')
    t.eq({ 1, true }, { count, (config.get('tools.dap')) })
  end)

  it('reads every form of tools', function()
    local function selection(tools)
      config.reset()
      config.setup({ tools = tools })
      return require('mcp-tools.loading.selection').selection('tools')
    end
    t.eq({ names = {}, on = {}, off = {}, definitions = {} }, selection(false))
    t.eq({ { 'recommended' }, { 'recommended' } }, { selection(nil).names, selection('recommended').names })
    t.eq({ 'git', 'debug' }, selection({ 'git', 'dap' }).names)
    t.eq({ 'recommended', 'symbol', 'code' }, selection({ lsp = true }).names) -- a group of guill/mcp-tools.nvim
    local map = selection({ git = true, dap = false })
    t.eq({ 'recommended', 'git' }, map.names)
    t.eq({ { recommended = true, git = true }, { debug = true } }, { map.on, map.off })
    local def, mount, remote = { name = 'x', description = 'd' }, { command = { 'server' } }, { url = 'http://x' }
    local mixed = selection({ 'lsp_hover', def, mount, remote, dap = true })
    t.eq({ { 'lsp_hover', 'debug' }, { def } }, { mixed.names, mixed.definitions })
  end)

  it('refuses a tools string that is neither recommended nor all', function()
    local text = 'tools: expected "recommended", "all", a boolean, a list such as .* or a table,'
      .. ' got "recomended" %(did you mean "recommended"%?%)'
    t.raises(text, function() config.setup({ tools = 'recomended' }) end)
  end)

  it('accepts functions where they are allowed', function()
    local function rule() end
    config.setup({ instructions = rule, approval = { rule = rule } })
    t.eq(rule, config.get('approval.rule'))
    local callable = setmetatable({}, { __call = t.returns('Called.') })
    config.setup({ instructions = callable, approval = { rule = callable } })
    t.ok(rawequal(callable, config.get('approval.rule')))
    t.matches('\nCalled%.$', require('mcp-tools.rpc.settings').get().instructions)
    t.raises('setup%(%) requires a table, got string', function() config.setup('lsp') end)
  end)
end)

describe('options that mix a list and a map', function()
  after_each(config.reset)

  it('do not grow when the same options are set again', function()
    for _ = 1, 3 do
      config.setup({ tools = { 'lsp', dap = false }, mounts = { '.mcp.json' } })
    end
    t.eq({ { 'lsp', dap = false }, { '.mcp.json' } }, { config.get('tools'), (config.get('mounts')) })
  end)

  it('replace list items by list items, and keep the rest', function()
    config.setup({ tools = { 'lsp', dap = false } })
    config.setup({ tools = { 'git', file = true } })
    t.eq({ 'git', dap = false, file = true }, config.get('tools'))
    config.setup({ tools = { lsp = true } })
    t.eq({ 'git', dap = false, file = true, lsp = true }, config.get('tools'))
  end)
end)
