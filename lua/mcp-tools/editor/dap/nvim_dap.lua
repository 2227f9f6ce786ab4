--- Interface to nvim-dap, the debug adapter client. Only this file loads its modules.
---
--- Only these functions and fields are used, which doubles in tests implement: `run`, `session()`, `sessions()`,
--- `listeners`, `adapters`, `configurations` and `defaults`; `get`, `set`, `remove` and `clear` of `dap.breakpoints`;
--- `notify` of `dap.utils`; `getconfigs` of `dap.ext.vscode`; `request`, `set_breakpoints`, `disconnect` and the fields
--- of a session. Do not call them in the coroutine of a tool, because nvim-dap would yield in it.

local errors = require('mcp-tools.errors')
local notify = require('mcp-tools.notify')
local optional = require('mcp-tools.util.optional')

local M = {}

--- Key of our listeners.
M.KEY = 'mcp-tools'

--- Returns nvim-dap if it is loaded.
---@return table? dap
function M.loaded()
  local dap = package.loaded.dap
  return type(dap) == 'table' and dap or nil
end

--- nvim-dap's `notify`, while it is replaced.
---@type function?
local own_notify

---@param message any
---@param level? integer
local function relay(message, level)
  notify.relay('nvim-dap', level or vim.log.levels.INFO, tostring(message))
end

--- Replaces nvim-dap's `notify` until `release_messages`: a long message, such as that of a failed launch, would block
--- the main thread until the user presses a key.
function M.relay_messages()
  local utils = optional.load('dap.utils')
  if type(utils) == 'table' and utils.notify ~= relay then
    own_notify, utils.notify = utils.notify, relay
  end
end

--- Restores nvim-dap's `notify`.
function M.release_messages()
  local utils = package.loaded['dap.utils']
  if own_notify and type(utils) == 'table' and utils.notify == relay then
    utils.notify = own_notify
  end
  own_notify = nil
end

--- Loads nvim-dap if it is installed, and returns it.
---@return table? dap
---@return mcp-tools.Error? err
function M.get()
  local dap = optional.load('dap')
  if type(dap) == 'table' then
    return dap
  end
  local text = 'nvim-dap is not installed in this editor; the user has to add the plugin mfussenegger/nvim-dap'
  return nil, errors.new('not_found', text)
end

--- Returns the configurations of a launch.json file.
---@param path string
---@return table[]? configs
---@return string? fault
function M.launch_json(path)
  local vscode = optional.load('dap.ext.vscode')
  if type(vscode) ~= 'table' or not vscode.getconfigs then
    return nil, 'it requires nvim-dap 0.8 or later'
  end
  local ok, configs = pcall(vscode.getconfigs, path)
  if not ok then
    return nil, tostring(configs):match('[^\n]*')
  end
  return configs
end

--- Returns nvim-dap's module for breakpoints.
---@return table
function M.store()
  return (assert(optional.load('dap.breakpoints')))
end

--- Returns all sessions, child sessions included.
---@return table<integer, table>
function M.sessions()
  local dap, list = M.loaded(), {}
  local function add(session)
    if not list[session.id] then
      list[session.id] = session
      for _, child in pairs(session.children or {}) do
        add(child)
      end
    end
  end
  for _, session in pairs(dap and dap.sessions() or {}) do
    add(session)
  end
  local focused = dap and dap.session()
  if focused then
    add(focused)
  end
  return list
end

--- Returns the session that the user has focused.
---@return table?
function M.focused()
  local dap = M.loaded()
  return dap and dap.session()
end

--- Starts a program. The listeners receive the results.
---@param config table
---@return string? fault
function M.run(config)
  M.relay_messages()
  local ok, fault = pcall(M.loaded().run, config, { new = true, filetype = config.type })
  return not ok and tostring(fault):gsub('^[^:]*:%d+: ', '') or nil
end

--- Returns an error of an adapter as text.
---@param err any as nvim-dap passes it
---@return string?
function M.fault(err)
  if err == nil then
    return nil
  elseif type(err) ~= 'table' then
    return tostring(err)
  end
  local about = type(err.body) == 'table' and err.body.error or {}
  local text = type(about) == 'table' and about.format
  if type(text) == 'string' then
    return (
      text:gsub('{([%w_]+)}', function(name)
        return tostring((about.variables or {})[name] or '{' .. name .. '}')
      end)
    )
  end
  return type(err.message) == 'string' and err.message or vim.inspect(err)
end

---@param session table
---@param thread integer
---@param stopped boolean
local function mark(session, thread, stopped)
  session.stopped_thread_id = stopped and thread or nil
  local known = (session.threads or {})[thread]
  if known then
    known.stopped = stopped
  end
  if not stopped and session.sign_group then
    vim.fn.sign_unplace(session.sign_group)
  end
end

--- Resumes a stopped thread. nvim-dap's own functions would use the count that the user typed last, or open a menu.
---@param session table
---@param command 'continue'|'next'|'stepIn'|'stepOut'
---@param arguments table with its threadId
---@param cb fun(fault: string?)
function M.resume(session, command, arguments, cb)
  local thread = arguments.threadId
  local type_defaults = M.loaded().defaults[session.config.type] or {}
  if command ~= 'continue' and (session.capabilities or {}).supportsSteppingGranularity then
    arguments.granularity = type_defaults.stepping_granularity
  end
  mark(session, thread, false)
  session:request(command, arguments, function(err, body)
    if err then
      mark(session, thread, true)
    elseif command == 'continue' and (body or {}).allThreadsContinued ~= false then
      for _, other in pairs(session.threads or {}) do
        other.stopped = false
      end
    end
    cb(M.fault(err))
  end)
end

--- Marks the stopped line for the user if the file is open: with nvim-dap's sign, without its jump.
---@param session table
---@param bufnr integer
---@param line integer
function M.show_stop(session, bufnr, line)
  local group = session.sign_group
  if group and not session.closed and #vim.fn.sign_getdefined('DapStopped') > 0 then
    vim.fn.sign_unplace(group)
    pcall(vim.fn.sign_place, 0, group, 'DapStopped', bufnr, { lnum = line, priority = 22 })
  end
end

---@class mcp-tools.dap.Breakpoint
---@field line integer
---@field condition string?
---@field hitCondition string?
---@field logMessage string?

--- Returns breakpoints by buffer.
---@param bufnr? integer
---@return table<integer, mcp-tools.dap.Breakpoint[]>
function M.breakpoints(bufnr)
  if not M.loaded() or bufnr and not vim.api.nvim_buf_is_valid(bufnr) then
    return {}
  end
  local by_buffer = M.store().get(bufnr)
  for _, list in pairs(by_buffer) do
    table.sort(list, function(a, b)
      return a.line < b.line
    end)
  end
  return by_buffer
end

return M
