--- Runs agents in terminals of this editor, connected to it by environment variables and flags.

local bridge = require('mcp-tools.bridge')
local agents = require('mcp-tools.agents')
local config = require('mcp-tools.config')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')
local secrets = require('mcp-tools.util.secrets')
local windows = require('mcp-tools.editor.user.windows')

local api, fn = vim.api, vim.fn

local M = {}

--- The name of our server in the agent's configuration, as in `:McpTools endpoint`.
local SERVER = 'nvim-tools'

--- Minimum columns to open a terminal beside the current window: an agent needs 80.
local SIDE_BY_SIDE = 160

--- Delay in ms before <Enter>, which agents otherwise take for a part of the pasted text.
local SUBMIT_MS = 400

--- Size of the parts in which a text is typed, in bytes, and delay between them in ms.
local PART, PART_MS = 4096, 20

---@class mcp-tools.agents.Terminal
---@field name string of the agent
---@field job integer
---@field pid integer?
---@field bufnr integer
---@field parts { text: string, delay: integer }[]? what is being written, with the ms to wait after each

---@type mcp-tools.agents.Terminal[] all that were started
local terminals = {}
local last_used ---@type mcp-tools.agents.Terminal?

--- Writes JSON to a temporary file that only this user can read.
---@param body table
---@return string path
local function write_file(body)
  local path = fn.tempname() .. '.json'
  local ok, fault = private_files.write(path, body)
  if not ok then
    error(fault)
  end
  return path
end

--- Shows a buffer in a window and goes there.
---@param bufnr integer
local function open_window(bufnr)
  local options = config.get('terminal')
  local width = math.max(1, math.floor(vim.o.columns * options.size / 100))
  local height = math.max(1, math.floor(vim.o.lines * options.size / 100))
  local side = options.position
  if side == 'auto' then
    side = vim.o.columns >= SIDE_BY_SIDE and 'right' or 'below'
  end
  local place = { split = side, win = -1 } ---@type vim.api.keyset.win_config
  if side == 'float' then
    place = { relative = 'editor', border = 'rounded' }
    place.row, place.col = (vim.o.lines - height) / 2 - 1, (vim.o.columns - width) / 2 - 1
  end
  place.width, place.height = width, height
  local window = api.nvim_open_win(bufnr, true, place)
  for name, value in pairs({ number = false, relativenumber = false, signcolumn = 'no' }) do -- as 0.11 does
    api.nvim_set_option_value(name, value, { win = window, scope = 'local' })
  end
end

--- Starts a command in a window of this editor.
---@param command string[]
---@param env table<string, string>
---@param cwd string
---@return integer bufnr
local function open_here(command, env, cwd)
  local bufnr = api.nvim_create_buf(true, false)
  local opts, start = { env = env, cwd = cwd }, fn.termopen
  if fn.has('nvim-0.11') == 1 then
    opts.term, start = true, fn.jobstart
  end
  local ok, job = pcall(function()
    open_window(bufnr)
    return start(command, opts)
  end)
  if not ok or job <= 0 then
    api.nvim_buf_delete(bufnr, { force = true })
    error(ok and 'not executable' or job, 0)
  end
  vim.bo[bufnr].filetype = 'mcp-tools-terminal'
  return bufnr
end

--- Moves the user's variables and those with secrets to a private file: `terminal.open` may put variables on a command
--- line, which other users can see.
---@param command string[]
---@param env table<string, string>
---@return string[] command
---@return table<string, string> env the other variables
local function without_secrets(command, env)
  local public, lines = {}, {}
  for name, value in vim.spairs(env) do
    local line = ('export %s='):format(name)
    if not config.get('terminal.env')[name] and secrets.text(log.strip(line .. value)) == line .. value then
      public[name] = value
    else
      table.insert(lines, ("%s'%s'\n"):format(line, value:gsub("'", "'\\''")))
    end
  end
  if #lines == 0 then
    return command, public
  end
  local path = fn.tempname()
  assert(private_files.write_text(path, table.concat(lines)))
  return vim.list_extend({ 'sh', '-c', '. "$0"; exec "$@"', path }, command), public
end

--- Makes Neovim before 0.12.2 paste a long text at once. It pastes in parts, which agents take for several texts.
local function join_pastes()
  if fn.has('nvim-0.12.2') == 1 then
    return
  end
  local paste, parts = vim.paste, {}
  vim.paste = function(lines, phase) -- luacheck: ignore 122
    if phase == -1 or not vim.b.mcp_tools_terminal then
      return paste(lines, phase)
    end
    lines = vim.list_extend({}, lines)
    if phase > 1 and #parts > 0 then
      lines[1] = table.remove(parts) .. (lines[1] or '') -- a part may end within a line
    end
    parts = vim.list_extend(phase > 1 and parts or {}, lines)
    return phase ~= 3 or paste(parts, -1)
  end
end

--- Follows the terminal in a buffer.
---@param name string
---@param bufnr any the buffer, or what the option `terminal.open` returned
local function follow(name, bufnr)
  local job = type(bufnr) == 'number' and api.nvim_buf_is_valid(bufnr) and vim.bo[bufnr].channel or 0
  if job == 0 then
    return -- it runs outside of this editor
  elseif #terminals == 0 then
    join_pastes()
  end
  local has_pid, pid = pcall(fn.jobpid, job)
  local terminal = { name = name, bufnr = bufnr, job = job, pid = has_pid and pid or nil }
  table.insert(terminals, terminal)
  vim.b[bufnr].mcp_tools_terminal = name
  vim.bo[bufnr].bufhidden = 'hide' -- with 'nohidden' the agent would end
  local function enter()
    last_used = terminal
    vim.schedule(function()
      local is_running = fn.jobwait({ job }, 0)[1] == -1 -- otherwise the next key would delete the buffer
      local is_current = is_running and api.nvim_get_current_buf() == bufnr and fn.mode(1) == 'nt'
      if is_current and config.get('terminal.auto_insert') then
        vim.cmd.startinsert()
      end
    end)
  end
  api.nvim_create_autocmd({ 'BufEnter', 'WinEnter' }, { buffer = bufnr, callback = enter })
  api.nvim_create_autocmd('TermClose', {
    buffer = bufnr,
    callback = function()
      if vim.v.event.status == 0 and config.get('terminal.auto_close') then ---@diagnostic disable-line: undefined-field
        vim.schedule(function()
          vim.iter(fn.win_findbuf(bufnr)):each(windows.close)
          pcall(api.nvim_buf_delete, bufnr, { force = true })
        end)
      end
    end,
  })
  if api.nvim_get_current_buf() == bufnr then
    enter()
  end
end

--- Returns the directory in which an agent starts.
---@return string
local function directory()
  local cwd = config.get('terminal').cwd
  if type(cwd) == 'function' then
    cwd = cwd()
  end
  return cwd and vim.fs.normalize(cwd) or fn.getcwd()
end

--- Opens a terminal. The command `mcp-tools` is on PATH there.
---@param name string
---@param command string[]
---@param cwd string
---@param env table<string, string>?
---@return string? fault
local function open(name, command, cwd, env)
  local program = command[1]
  if fn.executable(program) == 0 then
    return ('%s is not installed, or not on $PATH'):format(program)
  end
  local options = config.get('terminal')
  local path = vim.fs.joinpath(project.plugin_dir(), 'bin') .. ':' .. (vim.env.PATH or '')
  env = vim.tbl_extend('force', { PATH = path }, env or {}, options.env)
  local ok, bufnr = pcall(function()
    if not options.open then
      return open_here(command, env, cwd)
    end
    command, env = without_secrets(command, env)
    return options.open(command, env, cwd)
  end)
  if not ok then
    return ('%s cannot be started: %s'):format(program, tostring(bufnr))
  end
  follow(name, bufnr)
end

--- Returns the command that the user has set for an agent.
---@param name string
---@return string[]?
local function own_command(name)
  local own = config.get('terminal.commands')[name]
  if not own then
    return nil
  end
  local command = vim.tbl_map(tostring, type(own) == 'table' and own or { own })
  command[1] = vim.fs.normalize(command[1] or '')
  return command
end

--- Starts a known agent. The bridge must be running.
---@param name string
---@param args string[]
---@param cwd string
---@param permitted string[]?
---@param cb fun(fault: string?)
local function launch(name, args, cwd, permitted, cb)
  local endpoint = bridge.endpoint()
  if not endpoint then
    return cb('the bridge has stopped; see :McpTools log')
  end
  log.hide(endpoint.token)
  local more = {
    server = { name = SERVER, url = endpoint.url, token = endpoint.token, relay = bridge.relay() },
    file = write_file,
  }
  more.server.permitted, more.server.cwd = permitted, cwd
  agents.environment(name, function(environment)
    if not environment or not environment.command then
      return cb(('%s cannot be started in a terminal; see :McpTools log'):format(name))
    end
    local command = own_command(name) or vim.list_extend({}, environment.command)
    vim.list_extend(command, environment.args or {})
    cb(open(name, vim.list_extend(command, args), cwd, environment.env))
  end, more)
end

--- Returns the names of the agents that can be started.
---@return string[]
function M.names()
  local names = vim.list_extend(agents.names(), vim.tbl_keys(config.get('terminal.commands')))
  table.sort(names)
  return fn.uniq(names) --[[@as string[] ]]
end

--- Starts an agent, and first the bridge if needed. A program that only the option `terminal.commands` names gets no
--- tools.
---@param name string
---@param args string[] more arguments of the command
---@param permitted string[]? names of tools that the agent runs without asking
---@param cb fun(fault: string?)
function M.start(name, args, permitted, cb)
  local own, ok, cwd = own_command(name), pcall(directory)
  if not vim.list_contains(M.names(), name) then
    return cb(("unknown agent '%s'; known: %s"):format(name, table.concat(M.names(), ', ')))
  elseif not ok then
    return cb(('%s cannot be started: terminal.cwd: %s'):format(name, cwd))
  elseif own and not vim.list_contains(agents.names(), name) then
    return cb(open(name, vim.list_extend(own, args), cwd))
  elseif bridge.endpoint() then
    return launch(name, args, cwd, permitted, cb)
  end
  bridge.start({
    on_ready = function()
      launch(name, args, cwd, permitted, cb)
    end,
  })
end

--- Returns the running terminals of this editor.
---@param name? string of the agent (default: all)
---@return mcp-tools.agents.Terminal[]
function M.list(name)
  return vim.tbl_filter(function(terminal)
    return (not name or terminal.name == name) and fn.jobwait({ terminal.job }, 0)[1] == -1
  end, terminals)
end

--- Goes to a terminal.
---@param terminal mcp-tools.agents.Terminal
function M.show(terminal)
  local window = fn.bufwinid(terminal.bufnr)
  if window ~= -1 then
    return api.nvim_set_current_win(window)
  end
  open_window(terminal.bufnr)
end

--- Hides the terminals in floating windows, which would cover others.
---@return mcp-tools.agents.Terminal? current the one whose window was the current one
function M.hide_floats()
  local current
  for _, terminal in ipairs(terminals) do
    local window = fn.bufwinid(terminal.bufnr)
    if window ~= -1 and api.nvim_win_get_config(window).relative ~= '' then
      current = window == api.nvim_get_current_win() and terminal or current
      windows.close(window)
    end
  end
  return current
end

--- Shows the terminal that was used last, or hides it if it is visible.
---@param name? string of the agent (default: any)
---@param focus? boolean if it is visible in another window, go there instead of hiding it
---@return boolean found
function M.toggle(name, focus)
  local list = M.list(name)
  local last = vim.list_contains(list, last_used) and last_used or list[#list]
  local window = last and fn.bufwinid(last.bufnr) or -1
  if window ~= -1 and (not focus or window == api.nvim_get_current_win()) then
    local closed, fault = windows.close(window)
    if not closed then -- it is the only one
      notify.warn('the terminal cannot be hidden: ' .. fault)
    end
  elseif last then
    M.show(last)
  end
  return last ~= nil
end

--- Returns the agents whose command is on PATH; all if there is none. Bundled agents are named after their command.
---@return string[]
function M.installed()
  local names = M.names()
  local found = vim.tbl_filter(function(name)
    return fn.executable((own_command(name) or { name })[1]) == 1
  end, names)
  return #found > 0 and found or names
end

--- Returns the terminal in which the agent of a session runs, nil if that is not certain.
---@param session mcp-tools.agents.Session
---@return mcp-tools.agents.Terminal?
function M.of(session)
  local is_known = vim.list_contains(agents.names(), session.client) -- it may use the endpoint of another agent
  local found = vim.tbl_filter(function(terminal)
    local pid = session.data.pid
    if pid then
      return terminal.pid == pid
    end
    return terminal.name == session.client or not is_known and terminal.name == session.agent
  end, M.list())
  return #found == 1 and found[1] or nil
end

--- Writes to a terminal in parts: if its program ends before it has read a longer text, Neovim never returns.
---@param terminal mcp-tools.agents.Terminal
---@param text string
---@param submit boolean? press <Enter> afterwards
---@param wait integer? ms before it
local function write(terminal, text, submit, wait)
  local parts = terminal.parts or {}
  table.insert(parts, { text = '', delay = wait or 0 })
  for first = 1, #text, PART do
    table.insert(parts, { text = text:sub(first, first + PART - 1), delay = PART_MS })
  end
  if submit then
    parts[#parts].delay = SUBMIT_MS
    table.insert(parts, { text = '\r', delay = PART_MS })
  end
  if terminal.parts then
    return -- they are being written
  end
  terminal.parts = parts
  local i = 0
  local function next_part()
    i = i + 1
    local part = parts[i]
    if part and pcall(api.nvim_chan_send, terminal.job, part.text) then -- fails if the program has ended
      vim.defer_fn(next_part, part.delay)
    else
      terminal.parts = nil
    end
  end
  next_part()
end

--- Pastes text into the agent's prompt. Without `submit` the user presses <Enter>.
---@param terminal mcp-tools.agents.Terminal
---@param text string may have several lines
---@param submit? boolean
---@param wait? integer ms before it
function M.type(terminal, text, submit, wait)
  text = text:gsub('[%z\1-\8\11-\31\127]', ' '):gsub('\194[\128-\159]', ' ')
  write(terminal, '\27[200~' .. text .. '\27[201~', submit, wait)
end

return M
