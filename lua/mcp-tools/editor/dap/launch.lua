--- Finds launch configurations, and starts sessions from them or from arguments.

local buffers = require('mcp-tools.editor.buffer')
local canonical_json = require('mcp-tools.util.canonical_json')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local control = require('mcp-tools.editor.dap.control')
local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')
local lru = require('mcp-tools.util.lru')
local suggest = require('mcp-tools.util.suggest')
local timer = require('mcp-tools.util.timer')
local sessions = require('mcp-tools.editor.dap.sessions')
local trusted = require('mcp-tools.privacy.trusted')
local utf8 = require('mcp-tools.util.utf8')
local variables = require('mcp-tools.editor.dap.variables')

local M = {}

--- Maximum wait for a session to begin, ms.
local SESSION_MS = 15000

M.LAUNCH_JSON = '.vscode/launch.json'

--- Returns the configurations of launch.json, as nvim-dap parses it.
---@param root string
---@return table[]
---@return string? withheld why the file is not used
local function of_launch_json(root)
  local path = vim.fs.joinpath(root, M.LAUNCH_JSON)
  if not vim.uv.fs_stat(path) then
    return {}
  end
  local text, why = trusted.read(path)
  if not text then
    return {}, why
  end
  local configs, fault = nvim_dap.launch_json(path)
  if not configs then
    return {}, 'invalid list of configurations: ' .. fault
  elseif trusted.read(path) ~= text then
    return {}, 'it has changed during the check'
  end
  -- Copies without the metatable with which nvim-dap would ask the user for inputs.
  return vim.tbl_map(function(config)
    return type(config) == 'table' and vim.tbl_extend('force', {}, config)
  end, configs)
end

--- nvim-dap's own providers, which are skipped: `dap.configurations` and launch.json are read here.
local BUILT_IN = { ['dap.global'] = true, ['dap.launch.json'] = true }

--- Returns configurations that a plugin provides for the current file (nvim-dap 0.8 and later). A provider runs in its
--- own coroutine; if it waits, such as for the user, its result is ignored.
---@param provider fun(bufnr: integer): table[]
---@return any configs
local function provided_by(provider)
  local thread = coroutine.create(provider)
  local ok, configs = coroutine.resume(thread, buffers.current() or vim.api.nvim_get_current_buf())
  return ok and coroutine.status(thread) == 'dead' and configs
end

--- Returns all configurations.
---@param root string
---@return table[]
---@return string? withheld why those of launch.json are missing
function M.all(root)
  local list, dap = {}, nvim_dap.get() or {}
  local function add(configs)
    for _, config in ipairs(type(configs) == 'table' and configs or {}) do
      table.insert(list, type(config) == 'table' and config or nil)
    end
  end
  for _, configs in vim.spairs(dap.configurations or {}) do
    add(configs)
  end
  for name, provider in vim.spairs((dap.providers or {}).configs or {}) do
    if not BUILT_IN[name] then
      add(provided_by(provider))
    end
  end
  local found, withheld = of_launch_json(root)
  add(found)
  return list, withheld
end

--- Returns the names of fields for which nvim-dap would ask the user.
---@param config table
---@return string[]
local function interactive_fields(config)
  local names = {}
  --- Fields whose functions usually compute a value, such as the path of an interpreter, and do not ask.
  local computed = { pythonPath = true, python = true, cwd = true, env = true }
  local function visit(key, value, top)
    if type(value) == 'table' then
      for _, item in pairs(value) do
        visit(key, item, false)
      end
    elseif
      (type(value) == 'function' or type(value) == 'thread') and not (top and computed[key])
      or type(value) == 'string' and (value:find('${input:', 1, true) or value:find('${command:', 1, true))
    then
      names[key] = true
    end
  end
  for key, value in pairs(config) do
    visit(key, value, true)
  end
  local list = vim.tbl_keys(names)
  table.sort(list)
  return list
end

--- Maximum number of configurations that a message names.
local MAX_NAMES = 20

--- Returns the names of configurations for a message.
---@param all table[]
---@return string
function M.names(all)
  local names = {}
  for i = 1, math.min(#all, MAX_NAMES) do
    names[i] = ("'%s'"):format(variables.text(tostring(all[i].name), 80))
  end
  return #all == 0 and 'none' or table.concat(names, ', ') .. (#all > MAX_NAMES and ', …' or '')
end

--- Returns the configuration that arguments name.
---@param args table
---@param root string
---@return table? config
---@return mcp-tools.Error? err
local function of_name(args, root)
  local all, withheld = M.all(root)
  local found = vim.tbl_filter(function(known)
    return known.name == args.configuration
  end, all)
  for _, known in ipairs(found) do
    if #found == 1 or not (args.options or {}).type or known.type == args.options.type then
      return vim.deepcopy(known)
    end
  end
  local text = ("configuration: there is no '%s'; there are: %s"):format(
    utf8.cut(args.configuration, 200),
    M.names(all)
  )
  if withheld then
    text = ('%s (%s: %s)'):format(text, M.LAUNCH_JSON, withheld)
  end
  return nil, errors.new('not_found', text)
end

--- Replaces variables such as `${file}` and `${workspaceFolder}`.
---@param value any
---@param known table<string, string>
---@return any
local function expanded(value, known)
  if type(value) == 'table' then
    local copy = setmetatable({}, getmetatable(value))
    for key, item in pairs(value) do
      copy[key] = expanded(item, known)
    end
    return copy
  elseif type(value) ~= 'string' then
    return value
  end
  return (value:gsub('%${(%w+)}', known))
end

---@param root string
---@return table<string, string>
local function known_places(root)
  local bufnr = buffers.current()
  local file = bufnr and vim.api.nvim_buf_get_name(bufnr) or ''
  local known = { workspaceFolder = root, workspaceFolderBasename = vim.fs.basename(root), workspaceRoot = root }
  if file ~= '' then
    known.file, known.fileBasename, known.fileDirname = file, vim.fs.basename(file), vim.fs.dirname(file)
    known.fileBasenameNoExtension = vim.fn.fnamemodify(file, ':t:r')
    known.relativeFile = vim.startswith(file, root .. '/') and file:sub(#root + 2) or file
  end
  return known
end

--- Common names of adapters, by filetype; '' is the filetype of executables.
local ADAPTERS = {
  python = { 'python', 'debugpy' },
  javascript = { 'pwa-node', 'node2', 'node' },
  typescript = { 'pwa-node', 'node2', 'node' },
  go = { 'go', 'delve' },
  [''] = { 'codelldb', 'lldb', 'lldb-dap', 'gdb', 'cppdbg' },
}

---@param dap table
---@return string[] names
---@return string listed
local function adapters(dap)
  local names = vim.tbl_keys(dap.adapters)
  table.sort(names)
  return names, #names > 0 and table.concat(names, ', ') or 'none'
end

--- Returns a configuration for a program: the first `launch` configuration of its filetype that asks the user only for
--- program and arguments, otherwise one with an adapter of the filetype.
---@param program string
---@return table? config
---@return mcp-tools.Error? err
local function for_program(program)
  local dap, missing = nvim_dap.get()
  if not dap then
    return nil, missing
  end
  local filetype = vim.filetype.match({ filename = program }) or ''
  for _, config in ipairs(dap.configurations[filetype] or {}) do
    local asks = vim.tbl_filter(function(field)
      return field ~= 'program' and field ~= 'args'
    end, interactive_fields(config))
    if config.request == 'launch' and not config.module and #asks == 0 and dap.adapters[config.type] then
      return vim.tbl_extend('force', vim.deepcopy(config), { args = {} })
    end
  end
  for _, name in ipairs(vim.list_extend({ filetype }, ADAPTERS[filetype] or {})) do
    if dap.adapters[name] then
      return { type = name, request = 'launch' }
    end
  end
  local text = "program: nvim-dap has no adapter for the filetype '%s'; set options.type (there are: %s)"
  local _, listed = adapters(dap)
  return nil, errors.new('not_found', text:format(filetype, listed))
end

--- Returns the configuration for nvim-dap.
---@param args { configuration: string?, program: string?, args: string[]?, options: table? }
---@param root string
---@return table? config
---@return mcp-tools.Error? err
function M.configuration(args, root)
  local options, config, err = args.options or {}, {}, nil ---@type table, table?, mcp-tools.Error?
  if args.configuration then
    config, err = of_name(args, root)
    if config then
      config.console = nil -- `integratedTerminal` would open a window, and its output could not be read
    end
  elseif not options.type and args.program then
    config, err = for_program(args.program)
  elseif not options.type then
    local all = M.all(root)
    local text = 'program, test or configuration: required (configurations: %s)'
    err = errors.new('validation_error', text:format(M.names(all)))
  end
  if not config or err then
    return nil, err
  end
  config = vim.tbl_extend('force', config, { program = args.program, args = args.args }, options)
  config.request = config.request or 'launch'
  config.name = config.name or vim.fs.basename(args.program or config.type)
  if config.request == 'launch' then
    config.console = config.console or 'internalConsole'
  end
  for _, field in ipairs({ 'type', 'request', 'name' }) do
    if type(config[field]) ~= 'string' then
      return nil, errors.new('validation_error', ('options.%s: must be a string'):format(field))
    end
  end
  if config.request ~= 'launch' and config.request ~= 'attach' then
    return nil, errors.new('validation_error', "options.request: must be 'launch' or 'attach'")
  end
  local asks = interactive_fields(config)
  if #asks > 0 then
    local text = 'options: the configuration would ask the user for %s; set it here'
    return nil, errors.new('validation_error', text:format(table.concat(asks, ', ')))
  end
  config = expanded(config, known_places(root))
  for _, field in ipairs({ 'program', 'cwd' }) do
    if type(config[field]) == 'string' and not config[field]:find('${', 1, true) then
      config[field] = paths.resolve(config[field])
    end
  end
  if config.request == 'launch' and config.cwd == nil then
    config.cwd = root
  end
  return config
end

---@param path string
---@return boolean
local function is_directory(path)
  return (vim.uv.fs_stat(path) or {}).type == 'directory'
end

--- Returns the error of a configuration that is certain to fail.
---@param config table
---@return mcp-tools.Error?
function M.refusal(config)
  local dap, err = nvim_dap.get()
  if not dap then
    return err
  end
  local adapter = dap.adapters[config.type]
  if not adapter then
    local names, listed = adapters(dap)
    local near = suggest(config.type, names)
    local text = ("options.type: nvim-dap has no adapter '%s' (there are: %s)%s"):format(
      config.type,
      listed,
      near and (", did you mean '%s'?"):format(near) or ''
    )
    return errors.new('not_found', text)
  elseif
    type(adapter) == 'table'
    and adapter.type == 'executable'
    and vim.fn.executable(adapter.command or '') ~= 1
  then
    local text = ("options.type: the command of the adapter '%s' was not found: %s"):format(
      config.type,
      adapter.command
    )
    return errors.new('not_found', text)
  elseif config.request ~= 'launch' then
    return nil
  end
  for field, exists in pairs({ program = vim.uv.fs_stat, cwd = is_directory }) do
    local path = config[field]
    if type(path) == 'string' and path:sub(1, 1) == '/' and not exists(path) then
      local what = field == 'cwd' and 'directory' or 'file'
      return errors.new('not_found', ('%s: no such %s: %s'):format(field, what, path))
    end
  end
end

--- Configurations that were shown for approval, by the arguments of the call.
local previewed = lru(20)

--- Returns a configuration as text, for the user who approves it.
---@param args table
---@param config table
---@return string
function M.preview(args, config)
  local text = vim.inspect(config)
  previewed:set(canonical_json.text(args), text)
  return text
end

--- Returns an error if a configuration differs from the one shown for approval: the value of `${file}` or launch.json
--- has changed.
---@param args table
---@param config table
---@return mcp-tools.Error?
function M.has_changed(args, config)
  local key = canonical_json.text(args)
  local before = previewed:get(key)
  previewed:set(key, nil)
  if before and before ~= vim.inspect(config) then
    local text = 'configuration: it has changed since it was shown for approval; call again'
    return errors.new('stale', text)
  end
end

---@param ctx mcp-tools.Ctx
---@param config table
---@param expected mcp-tools.dap.Expected
---@return mcp-tools.dap.Entry?
---@return mcp-tools.Error?
local function begin(ctx, config, expected)
  local is_requested = false
  ctx:on_cancel(function()
    if expected.entry then
      control.abandon(expected.entry)
    elseif is_requested then -- the adapter is starting
      expected.unwanted = control.abandon
      timer.after(SESSION_MS, function()
        sessions.forget(expected)
      end)
      return
    end
    sessions.forget(expected)
  end)
  local fault = ctx:await(function(done)
    vim.schedule(function() -- outside the tool's coroutine, in which nvim-dap would yield
      if not ctx:cancelled() then
        is_requested = true
        done(nvim_dap.run(config))
      end
    end)
  end)
  local entry = not fault and control.await(ctx, SESSION_MS, function()
    return expected.entry
  end)
  sessions.forget(expected)
  if not entry then
    local text = 'not started: ' .. (fault or 'nvim-dap began no session; see :messages')
    return nil, errors.new('tool_error', text)
  end
  control.await(ctx, SESSION_MS, function()
    return entry.fault or entry.started or entry.ended
  end)
  if entry.fault then
    control.abandon(entry)
    return nil, errors.new('tool_error', ('the debug adapter refused to %s: %s'):format(config.request, entry.fault))
  elseif entry.ended and not entry.started then
    return nil, errors.new('tool_error', 'the debug adapter ended before the program began; see :DapShowLog')
  end
  return entry
end

--- Starts a configuration, waits for the first stop and describes it.
---@param ctx mcp-tools.Ctx
---@param config table
---@param args { expressions: string[]?, timeout_ms: integer }
---@param filters mcp-tools.dap.Filters?
---@param remove_breakpoints fun()? called when the program ends
---@return table? answer
---@return mcp-tools.Error? err
function M.run(ctx, config, args, filters, remove_breakpoints)
  remove_breakpoints = remove_breakpoints or function() end
  ctx:on_cancel(remove_breakpoints)
  local bad = M.refusal(config)
  local entry
  if not bad then
    sessions.attach()
    entry, bad = begin(ctx, config, sessions.expect(config, filters))
  end
  if not entry then
    remove_breakpoints()
    return nil, bad
  end
  if entry.ended then
    remove_breakpoints()
  end
  entry.remove_breakpoints = remove_breakpoints
  local answer = control.wait(ctx, entry, args)
  answer.session_id = answer.session_id or entry.id
  return answer
end

--- Returns the configuration of a session.
---@param entry mcp-tools.dap.Entry
---@return table
function M.config_of(entry)
  return sessions.root(entry).session.config
end

--- Ends a session and starts its configuration again, with the same breakpoints.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args { expressions: string[]?, timeout_ms: integer }
---@return table? answer
---@return mcp-tools.Error? err
function M.restart(ctx, entry, args)
  local root = sessions.root(entry)
  local config = vim.deepcopy(M.config_of(entry))
  local remove = root.remove_breakpoints
  if not root.ended then
    root.remove_breakpoints = nil
    local ok, err = control.terminate(ctx, entry)
    if not ok then
      root.remove_breakpoints = remove
      return nil, err
    end
  end
  return M.run(ctx, config, args, entry.filters, remove)
end

return M
