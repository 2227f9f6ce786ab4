--- Runs agents in terminals of this editor, connected to it by environment variables and flags.

local bridge = require('mcp-tools.bridge')
local agents = require('mcp-tools.agents')
local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')

local api, fn = vim.api, vim.fn

local M = {}

--- The name of our server in the agent's configuration, as in `:McpTools endpoint`.
local SERVER = 'nvim-tools'

--- Minimum columns to open a terminal beside the current window: an agent needs 80.
local SIDE_BY_SIDE = 160

---@class mcp-tools.agents.Terminal
---@field name string of the agent
---@field job integer
---@field pid integer
---@field bufnr integer

---@type mcp-tools.agents.Terminal[]
local terminals = {}

---@param body table
---@return string path
local function file(body)
  local path = fn.tempname() .. '.json'
  local ok, fault = private_files.write(path, body)
  if not ok then
    error(fault)
  end
  return path
end

--- The command `mcp-tools` is on PATH in these terminals.
---@param command string[]
---@param env table<string, string>?
---@param on_exit fun()
---@return integer job
local function run(command, env, on_exit)
  local path = vim.fs.joinpath(project.plugin_dir(), 'bin') .. ':' .. (vim.env.PATH or '')
  local opts = { env = vim.tbl_extend('keep', env or {}, { PATH = path }), on_exit = on_exit }
  if fn.has('nvim-0.11') == 1 then
    opts.term = true
    return fn.jobstart(command, opts)
  end
  return fn.termopen(command, opts)
end

---@param name string
---@param command string[]
---@param env table<string, string>?
---@return string? fault
local function open(name, command, env)
  if fn.executable(command[1]) == 0 then
    return ('%s is not installed, or not on $PATH'):format(command[1])
  end
  vim.cmd(vim.o.columns >= SIDE_BY_SIDE and 'botright vnew' or 'botright new')
  local terminal = { name = name, bufnr = api.nvim_get_current_buf() }
  local ok, job = pcall(run, command, env, function()
    terminals = vim.tbl_filter(function(other)
      return other ~= terminal
    end, terminals)
  end)
  if not ok or job <= 0 then
    api.nvim_buf_delete(terminal.bufnr, { force = true })
    return ('%s cannot be started: %s'):format(command[1], ok and 'not executable' or tostring(job))
  end
  terminal.job, terminal.pid = job, fn.jobpid(job)
  table.insert(terminals, terminal)
  vim.cmd.startinsert()
end

--- Starts a known agent. The bridge must be running.
---@param name string
---@param args string[]
---@param permitted string[]?
---@param cb fun(fault: string?)
local function launch(name, args, permitted, cb)
  local endpoint = bridge.endpoint()
  if not endpoint then
    return cb('the bridge has stopped; see :McpTools log')
  end
  log.hide(endpoint.token)
  local more = {
    server = { name = SERVER, url = endpoint.url, token = endpoint.token, relay = bridge.relay() },
    file = file,
  }
  more.server.permitted = permitted
  agents.environment(name, function(environment)
    if not environment or not environment.command then
      return cb(('%s cannot be started in a terminal; see :McpTools log'):format(name))
    end
    local command = vim.list_extend({}, environment.command)
    vim.list_extend(command, environment.args or {})
    cb(open(name, vim.list_extend(command, args), environment.env))
  end, more)
end

--- Starts an agent, and first the bridge if needed.
---@param name string
---@param args string[] more arguments of the command
---@param permitted string[]? names of tools that the agent runs without asking
---@param cb fun(fault: string?)
function M.start(name, args, permitted, cb)
  local names = agents.names()
  if not vim.list_contains(names, name) then
    return cb(("unknown agent '%s'; known: %s"):format(name, table.concat(names, ', ')))
  elseif bridge.endpoint() then
    return launch(name, args, permitted, cb)
  end
  bridge.start({
    on_ready = function()
      launch(name, args, permitted, cb)
    end,
  })
end

--- Returns the terminal in which the agent of a session runs, nil if that is not certain.
---@param session mcp-tools.agents.Session
---@return mcp-tools.agents.Terminal?
function M.of(session)
  local found = vim.tbl_filter(function(terminal)
    local pid = session.data.pid
    if pid then
      return terminal.pid == pid
    end
    return terminal.name == session.agent or terminal.name == session.client
  end, terminals)
  return #found == 1 and found[1] or nil
end

--- Pastes text into the agent's prompt. The user presses Enter.
---@param terminal mcp-tools.agents.Terminal
---@param text string
function M.type(terminal, text)
  api.nvim_chan_send(terminal.job, '\27[200~' .. text:gsub('[%c\127]', ' ') .. '\27[201~')
end

return M
