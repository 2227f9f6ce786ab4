--- Prepares a start of the bridge: command, environment, identity and address.

local config = require('mcp-tools.config')
local identity = require('mcp-tools.instances.identity')
local instances = require('mcp-tools.instances.file')
local interpreter = require('mcp-tools.bridge.interpreter')
local project = require('mcp-tools.instances.project')

local M = {}

local IS_WINDOWS = vim.fn.has('win32') == 1

---@class mcp-tools.bridge.Launch
---@field spec mcp-tools.bridge.ProcessSpec
---@field identity mcp-tools.bridge.Identity
---@field socket string address of this editor
---@field host string
---@field source 'command'|'python'|'environment'
---@field key string by which the process identifies itself when it attaches
---@field version? string of Python, if known

--- Makes a fault with general advice, or to install if a Python module is missing.
---@param message string
---@param source? 'command'|'python'|'environment'
---@return mcp-tools.bridge.PythonFault
function M.fault(message, source)
  if source == 'environment' and (message:find('ModuleNotFoundError') or message:find('ImportError')) then
    return { message = message, advice = 'Run :McpTools install' }
  end
  return { message = message, advice = 'See :McpTools log; :McpTools start tries again' }
end

---@param runtime mcp-tools.bridge.Runtime
---@param socket string
---@param port integer
---@param launch string
---@return table<string, string|false>
local function environment(runtime, socket, port, launch)
  local is_ours = runtime.source ~= 'command'
  local path = vim.fs.dirname(project.python_package())
  if vim.env.PYTHONPATH then
    path = path .. (IS_WINDOWS and ';' or ':') .. vim.env.PYTHONPATH
  end
  return {
    NVIM_LISTEN_ADDRESS = socket,
    MCP_PORT = tostring(port),
    -- Other processes can read a process's environment, so the token is sent by stdin.
    MCP_TOOLS_TOKEN_STDIN = '1',
    MCP_TOOLS_LAUNCH = launch,
    MCP_AUTH_TOKEN = false,
    MCP_LOG_FILE = config.get('bridge.log_file') or false,
    MCP_TOOL_TIMEOUT = tostring(config.get('bridge.tool_timeout')),
    MCP_TOOLS_PORT_FALLBACK = '1',
    MCP_TOOLS_INSTANCE_DIR = instances.dir(),
    MCP_TOOLS_HOST = config.get('bridge.host'),
    -- Variables for the user's other Python must not affect the private environment.
    PYTHONPATH = not is_ours and path or false,
    PYTHONHOME = not is_ours and vim.env.PYTHONHOME or false,
  }
end

--- Prepares a start. May call `done` before it returns.
---@param request { nvim_socket?: string, port?: integer }
---@param done fun(prepared: mcp-tools.bridge.Launch?, fault: mcp-tools.bridge.PythonFault?)
function M.prepare(request, done)
  interpreter.resolve(function(runtime, fault)
    if not runtime then
      return done(nil, fault)
    end
    local own_identity, err = identity.load(project.root())
    if not own_identity then
      return done(nil, M.fault(err))
    end
    instances.clean()
    local socket = request.nvim_socket or vim.v.servername
    if socket == '' then
      local started, address = pcall(vim.fn.serverstart)
      if not started then
        return done(nil, M.fault('the bridge cannot reach this editor: ' .. address))
      end
      socket = address
    end
    local port = (request.port or 0) ~= 0 and request.port or own_identity.port
    local launch = vim.fn.sha256(('%d %d'):format(vim.uv.os_getpid(), vim.uv.hrtime())):sub(1, 32)
    done({
      key = launch,
      identity = own_identity,
      socket = socket,
      host = config.get('bridge.host'),
      source = runtime.source,
      version = runtime.version,
      spec = {
        command = runtime.command,
        env = environment(runtime, socket, port, launch),
        stdin = own_identity.token .. '\n',
        -- With `python -m`, the working directory may provide modules, so it must not be the project.
        cwd = project.plugin_dir(),
      },
    })
  end)
end

return M
