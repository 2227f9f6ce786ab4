-- How tests written in Python look into the plugin: the global `probe` of every Neovim that they start.
-- A field is one of its modules, loaded at first use. Only this file knows the names of modules.

local MODULES = {
  agent_endpoints = 'mcp-tools.ide.endpoints',
  agents = 'mcp-tools.ide',
  approval = 'mcp-tools.ui.approval',
  audit = 'mcp-tools.trust.audit',
  autostart = 'mcp-tools.bridge.autostart',
  bridge = 'mcp-tools.bridge',
  bundled_files = 'mcp-tools.discovery.bundled_files',
  changes = 'mcp-tools.editor.edit.changes',
  command = 'mcp-tools.command',
  config = 'mcp-tools.config',
  control = 'mcp-tools.bridge.control',
  core = 'mcp-tools.core',
  current = 'mcp-tools.bridge.current',
  dap_client = 'mcp-tools.editor.dap.nvim_dap',
  discovery = 'mcp-tools.discovery',
  identity = 'mcp-tools.bridge.identity',
  install = 'mcp-tools.bridge.install',
  instances = 'mcp-tools.bridge.instances',
  integrations = 'mcp-tools.ide.integrations',
  json = 'mcp-tools.util.json',
  ledger = 'mcp-tools.trust.ledger',
  log = 'mcp-tools.log',
  mounts = 'mcp-tools.mounts',
  notify = 'mcp-tools.notify',
  project = 'mcp-tools.files.project',
  python_process = 'mcp-tools.python.process',
  python_reader = 'mcp-tools.python.reader',
  python_worker = 'mcp-tools.python.host',
  remote = 'mcp-tools.call.remote',
  review = 'mcp-tools.editor.review',
  sanitize = 'mcp-tools.util.sanitize',
  scratch = 'mcp-tools.ui.layout.scratch',
  sessions = 'mcp-tools.editor.companion',
  settings = 'mcp-tools.wire.settings',
  symbol = 'mcp-tools.editor.symbol',
  symbol_nodes = 'mcp-tools.editor.symbol.nodes',
  wire = 'mcp-tools.wire',
  wire_channels = 'mcp-tools.wire.channels',
}

local probe = {}

---The definition of an agent, such as `claude`.
function probe.agent(name)
  return require('mcp-tools.companions.' .. name)
end

---Whether a module was loaded; `name` is a field of the probe.
function probe.is_loaded(name)
  local path = 'lua/' .. MODULES[name]:gsub('%.', '/')
  assert(#vim.api.nvim_get_runtime_file(path .. '.lua', false) + #vim.api.nvim_get_runtime_file(path .. '/', false) > 0)
  return package.loaded[MODULES[name]] ~= nil
end

function probe.registry()
  return require(MODULES.core).get().registry
end

function probe.executor()
  return require(MODULES.core).get().executor
end

function probe.gateway()
  return require(MODULES.core).get().gateway
end

---Calls that run or wait, or whose result was not acknowledged yet.
function probe.calls()
  return probe.executor().calls
end

return setmetatable(probe, {
  __index = function(_, name)
    return require(assert(MODULES[name], 'the probe has no module ' .. name))
  end,
})
