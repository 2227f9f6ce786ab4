--- `:checkhealth mcp-tools`.
---
--- An error in one section must not affect the others, so each section loads its modules itself.

local health = vim.health

local M = {}

local function bridge_status()
  return require('mcp-tools.bridge').status()
end

--- Returns the TCP addresses other than loopback: access to one gives full control of the editor.
---@param addresses string[] from |serverlist()|
---@return string[]
function M.exposed_addresses(addresses)
  return vim.tbl_filter(function(address)
    local host = not address:find('[/\\]') and address:match('^(.*):%d+$')
    host = host and host:gsub('^%[(.*)%]$', '%1')
    return host and not (host:find('^127%.') or host == 'localhost' or host == '::1') or false
  end, addresses)
end

local function neovim()
  local version = vim.version()
  local text = ('Neovim %d.%d.%d'):format(version.major, version.minor, version.patch)
  if vim.fn.has('nvim-0.10') == 1 then
    health.ok(text)
  else
    health.error(text .. ': 0.10 or newer is required', 'Install a newer Neovim')
  end
  if not jit then
    health.error('this Neovim has no LuaJIT, which mcp-tools.nvim requires', 'Install a Neovim with LuaJIT')
  end
  if vim.fn.executable('rg') == 0 then
    health.info(
      'ripgrep is not installed: searches use git, and `file_replace` does not support regular expression groups'
    )
  end
  local config = require('mcp-tools.config')
  local refusal, blocker = config.refusal(), require('mcp-tools.bridge').blocker()
  if refusal then
    health.error('setup() was refused and has no effect:\n' .. refusal, 'Correct these options')
  elseif blocker then
    local advice = config.is_setup() and ':McpTools start'
      or 'Add `require("mcp-tools").setup({ tools = "recommended" })` to your configuration'
    health.info(('the bridge does not start automatically: %s'):format(blocker))
    health.info(('to start it: %s'):format(advice))
  end
  for _, address in ipairs(M.exposed_addresses(vim.fn.serverlist())) do
    health.warn(('this editor listens at %s: anyone with access to it can run anything as you'):format(address), {
      'Close it: `:call serverstop("' .. address .. '")`',
      'To reach the editor from elsewhere: `:help mcp-tools-remote`',
    })
  end
end

local function python()
  local config, interpreter = require('mcp-tools.config'), require('mcp-tools.bridge.interpreter')
  local install = require('mcp-tools.bridge.install')
  local status = bridge_status()
  local version = status.python_version and ('Python %s'):format(status.python_version)
  if install.is_running() then
    return health.info('the environment is being installed. The bridge starts automatically when it is finished')
  elseif install.last_error() then
    health.warn(
      'the last installation failed: ' .. install.last_error(),
      'See :McpTools log, then run :McpTools install'
    )
  end
  if config.get('bridge.command') ~= nil then
    health.info('bridge.command is set, so the private Python environment is not used')
  elseif config.get('bridge.python') ~= nil then
    health.info('bridge.python: ' .. config.get('bridge.python'))
  else
    local fault = interpreter.environment_fault()
    if fault and fault.under_way then
      return health.info(('%s. %s'):format(fault.message, fault.advice))
    elseif fault then
      return health.error(fault.message, fault.advice)
    end
    local dir = interpreter.environment_dir()
    health.ok('environment: ' .. dir)
    health.info('If packages are broken: `:McpTools install` repairs, `:McpTools install!` rebuilds the environment')
    version = version or ('Python %s'):format(interpreter.environment_version(dir) or 'of unknown version')
  end
  health.info(version or 'the version of Python is known after the bridge has started')
end

---@param status mcp-tools.bridge.Status
local function report_port(status)
  if status.wanted_port and status.wanted_port ~= status.port then
    local ours = status.port_holder == 'ours'
    local holder = ours and 'another editor of yours' or 'another process'
    local advice = {
      ('Clients with a fixed configuration use port %d; the bridge listens on it as soon as it is free'):format(
        status.wanted_port
      ),
      ('To see which process has it: ss -ltnp "sport = :%d"'):format(status.wanted_port),
    }
    if not ours then
      table.insert(advice, 'Choose a free port: `setup({ bridge = { port = … } })`')
    end
    health.warn(('it listens on port %d, as %d is used by %s'):format(status.port, status.wanted_port, holder), advice)
  end
end

---@param versions table<string, string>
local function report_versions(versions)
  local parts = {}
  for _, name in ipairs({ 'bridge', 'python', 'sdk', 'aiohttp', 'msgpack' }) do
    if versions[name] then
      table.insert(parts, ('%s %s'):format(name == 'sdk' and 'MCP SDK' or name, versions[name]))
    end
  end
  if #parts > 0 then
    health.info('versions: ' .. table.concat(parts, ', '))
  end
end

local INFO = {
  starting = 'it is starting; run :checkhealth mcp-tools again in a moment',
  stopping = 'it is stopping',
  stopped = 'it is not running; start it with :McpTools start',
}

---@param status mcp-tools.bridge.Status
local function report_state(status)
  local state, fault = status.state, status.fault or {}
  local why = status.last_error or fault.message or 'unknown reason'
  if state == 'ready' then
    health.ok('ready: ' .. status.url)
    if not status.attached then
      health.warn('it is not attached to this editor', 'Run :McpTools restart')
    end
    report_port(status)
  elseif state == 'waiting' then
    health.warn(('it crashed and will be restarted (attempt %d): %s'):format(status.tries, why), 'See :McpTools log')
  elseif state == 'failed' and (fault.under_way or require('mcp-tools.bridge.install').is_running()) then
    health.info('it is not running yet: the Python environment is being installed')
  elseif state == 'failed' then
    health.error('it is not running: ' .. why, status.to_do)
  else
    health.info(INFO[state])
  end
end

--- Returns the user's current file if it is outside of the bridge's project.
---@param root string
---@return string? path, string? other root of its project, if any
local function file_of_other_project(root)
  local current = require('mcp-tools.editor.buffer').current()
  local path = current and vim.api.nvim_buf_get_name(current) or ''
  if path == '' then
    return nil
  end
  local project = require('mcp-tools.instances.project')
  local paths = require('mcp-tools.files.paths')
  local marked = project.marked(vim.fs.dirname(path))
  if marked and marked ~= root then
    return path, marked
  elseif not paths.inside((paths.resolve(path)), root) then
    return path
  end
end

---@param root string
local function report_project(root)
  local path, other = file_of_other_project(root)
  if not other and not require('mcp-tools.files.paths').is_project(root) then
    local advice = 'Choose one with `:McpTools restart DIR`, or start Neovim in one'
    return health.warn(('%s is not a project root; tools ask before touching any file'):format(root), advice)
  end
  health.info('project: ' .. root)
  if path then
    local where = other and ('in another project, ' .. other) or 'outside of the project'
    health.warn(('the current file, %s, is %s; tools ask before touching it'):format(path, where), {
      ("To use tools in its project: `:McpTools restart %s`, with that project's port and token"):format(
        other or vim.fs.dirname(path)
      ),
      'To work on both projects: open the file in another Neovim',
    })
  end
end

local function bridge()
  local status = bridge_status()
  report_state(status)
  if status.root then
    report_project(status.root)
  end
  report_versions(status.versions)
  if status.state ~= 'failed' and status.state ~= 'waiting' and status.last_error then
    health.warn('last error: ' .. status.last_error, 'See :McpTools log')
  end
  if status.note then
    health.warn(status.note, 'Update the token in clients with a fixed configuration')
  end
  if status.blocked then
    health.warn(
      ("the editor kept a call waiting too long, in mode '%s'"):format(tostring(status.blocked.mode)),
      'Press <Esc> or finish the pending key, then let the client retry'
    )
  end
  local sessions = status.sessions
  if sessions then
    local names = table.concat(require('mcp-tools.bridge.current').client_names(), ', ')
    local who = names ~= '' and (' (%s)'):format(names) or ''
    health.info(require('mcp-tools.util.sanitize').line(('sessions: %d%s'):format(sessions.count or 0, who)))
  end
  health.info(('calls running: %d'):format(#require('mcp-tools.core').get().executor:pending()))
end

local function files()
  local private_files, project = require('mcp-tools.files.private_json'), require('mcp-tools.instances.project')
  local audit, log = require('mcp-tools.approval.audit'), require('mcp-tools.log')
  local paths = {
    { project.state_dir(), 'directory' },
    { vim.fs.joinpath(project.state_dir(), 'projects'), 'directory' },
    { vim.fs.joinpath(project.state_dir(), 'ledger'), 'directory' },
    { audit.path(), 'file' },
    { require('mcp-tools.instances.file').dir(), 'directory' },
    { log.path(), 'file' },
  }
  local identity_file = bridge_status().identity_file
  if identity_file then
    table.insert(paths, { identity_file, 'file' })
  end
  local faults = 0
  for _, path in ipairs(paths) do
    local fault = private_files.fault(path[1], path[2])
    if fault then
      faults = faults + 1
      local message, advice = fault:match('^(.*); (.*)$')
      health.error(message or fault, advice)
    end
  end
  if faults == 0 then
    health.ok('only you can change the files of the plugin')
  end
  local gateway = require('mcp-tools.core').get().gateway
  local _, ledger_fault = gateway.ledger:list(gateway:project())
  if ledger_fault then
    health.error(
      'earlier decisions on tools cannot be read, so every call needs approval: ' .. ledger_fault,
      'Check that file, then run :McpTools trust reset'
    )
  end
  for what, file in pairs({ ['audit log'] = audit, log = log }) do
    if file.failure() then
      local advice = 'Check the permissions of ' .. file.path()
      health.warn(('the %s cannot be written: %s'):format(what, file.failure()), advice)
    end
  end
  health.info('log: ' .. log.path())
end

--- Title, and function, or its name in health/registered.lua.
---@type { [1]: string, [2]: string|fun() }[]
local SECTIONS = {
  { 'Neovim', neovim },
  { 'Python environment', python },
  { 'Bridge', bridge },
  { 'Files', files },
  { 'Tools', 'tools' },
  { 'Resources and prompts', 'resources_and_prompts' },
  { 'Tools of other plugins', 'found' },
  { 'Terminal agents', 'terminal_agents' },
  { 'Assistants', 'assistants' },
  { 'Tools written in Python', 'python' },
  { 'Mounted servers', 'mounts' },
}

function M.check()
  for _, section in ipairs(SECTIONS) do
    health.start('mcp-tools: ' .. section[1])
    local ok, err = xpcall(function()
      local run = section[2] --[[@as any]]
      run = type(run) == 'string' and require('mcp-tools.health.registered')[run] or run
      run()
    end, debug.traceback)
    if not ok then
      require('mcp-tools.log').error('health: %s', err)
      health.error(
        ('this check failed: %s'):format(tostring(err):match('[^\n]*')),
        'Report it with the text of :McpTools log'
      )
    end
  end
end

return M
