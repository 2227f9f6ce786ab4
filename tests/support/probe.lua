-- The global `probe` of every Neovim that Python tests start: gives access to modules of the plugin.
-- A field is a module, loaded at first use. Only this file has the names of modules.

local MODULES = {
  agents = 'mcp-tools.agents',
  approval = 'mcp-tools.ui.approval',
  audit = 'mcp-tools.approval.audit',
  autostart = 'mcp-tools.bridge',
  background = 'mcp-tools.editor.background',
  bridge = 'mcp-tools.bridge',
  bundled = 'mcp-tools.loading.bundled',
  changes = 'mcp-tools.editor.edit.history',
  command = 'mcp-tools.command',
  config = 'mcp-tools.config',
  control = 'mcp-tools.bridge.control',
  core = 'mcp-tools.core',
  current = 'mcp-tools.bridge.current',
  dap_client = 'mcp-tools.editor.dap.nvim_dap',
  discovery = 'mcp-tools.loading',
  identity = 'mcp-tools.instances.identity',
  install = 'mcp-tools.bridge.install',
  instances = 'mcp-tools.instances.file',
  integrations = 'mcp-tools.agents.integrations',
  json = 'mcp-tools.util.json',
  ledger = 'mcp-tools.approval.ledger',
  log = 'mcp-tools.log',
  mounts = 'mcp-tools.mounts',
  notify = 'mcp-tools.notify',
  project = 'mcp-tools.instances.project',
  python_reader = 'mcp-tools.python_worker.reader',
  python_worker = 'mcp-tools.python_worker.worker',
  remote = 'mcp-tools.calls.remote',
  review = 'mcp-tools.editor.review',
  sanitize = 'mcp-tools.util.sanitize',
  sessions = 'mcp-tools.editor.agents',
  settings = 'mcp-tools.rpc.settings',
  symbol = 'mcp-tools.editor.symbol',
  symbol_nodes = 'mcp-tools.editor.symbol_tree',
  wire = 'mcp-tools.rpc',
  wire_channels = 'mcp-tools.rpc.channels',
}

local probe = {}

---The definition of an agent, such as `claude`.
function probe.agent(name) return require('mcp-tools.agents.known.' .. name) end

---Whether a module was loaded; `name` is a field of the probe.
function probe.is_loaded(name)
  local path = 'lua/' .. MODULES[name]:gsub('%.', '/')
  assert(#vim.api.nvim_get_runtime_file(path .. '.lua', false) + #vim.api.nvim_get_runtime_file(path .. '/', false) > 0)
  return package.loaded[MODULES[name]] ~= nil
end

function probe.registry() return require(MODULES.core).get().registry end

function probe.executor() return require(MODULES.core).get().executor end

function probe.gateway() return require(MODULES.core).get().gateway end

---Calls that run or wait, or whose result was not acknowledged yet.
function probe.calls() return probe.executor().calls end

return setmetatable(probe, {
  __index = function(_, name) return require(assert(MODULES[name], 'the probe has no module ' .. name)) end,
})
