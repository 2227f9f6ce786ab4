--- A debug session, started: from arguments or a configuration to the first stop.
---
--- Receives: the arguments of `dap_run`.
--- Sends: the configuration that they make; the first stop, told.
--- Does not know about: approval, which shows that configuration.

local buffers = require('mcp-tools.editor.buffer')
local canonical_json = require('mcp-tools.util.canonical_json')
local client = require('mcp-tools.editor.dap.client')
local configurations = require('mcp-tools.editor.dap.configurations')
local control = require('mcp-tools.editor.dap.control')
local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')
local suggest = require('mcp-tools.util.suggest')
local timer = require('mcp-tools.util.timer')
local tracker = require('mcp-tools.editor.dap.tracker')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- A session that has not even begun by then will not.
local SESSION_MS = 15000

local FIELDS = { 'type', 'request', 'name', 'program', 'args', 'cwd', 'env', 'host', 'port', 'console' }

--- The named configuration.
---@param args table
---@param root string
---@return table? config
---@return mcp-tools.Error? err
local function of_name(args, root)
  local found, withheld = configurations.named(root, args.configuration)
  if #found == 1 or #found > 1 and not args.type then
    return vim.deepcopy(found[1].config)
  end
  for _, known in ipairs(found) do
    if known.config.type == args.type then
      return vim.deepcopy(known.config)
    end
  end
  local text = ("configuration: there is none named '%s'; dap_configurations lists them"):format(
    utf8.cut(args.configuration, 200)
  )
  if withheld then
    text = ('%s (%s: %s)'):format(text, configurations.LAUNCH_JSON, withheld)
  end
  return nil, errors.new('not_found', text)
end

--- Puts places where a configuration has their names: the file beside an agent's own terminal, the project's root.
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

--- What nvim-dap is to be given.
---@param args table
---@param root string
---@return table? config
---@return mcp-tools.Error? err
function M.configuration(args, root)
  local config = {}
  if args.configuration then
    local named, err = of_name(args, root)
    if not named then
      return nil, err
    end
    config = named
    config.console = nil -- a terminal would open a window, and its output could not be told
  end
  for _, field in ipairs(FIELDS) do
    if args[field] ~= nil then
      config[field] = args[field]
    end
  end
  config = vim.tbl_extend('force', config, args.options or {})
  if config.request == 'launch' then
    config.console = config.console or 'internalConsole'
  end
  for _, field in ipairs({ 'type', 'request', 'name' }) do
    if type(config[field]) ~= 'string' then
      return nil, errors.new('validation_error', ('%s: needed, unless a configuration has it'):format(field))
    end
  end
  local asks = configurations.asks(config)
  if #asks > 0 then
    local text = 'options: the configuration would ask the person for %s; give it here'
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
local function is_folder(path)
  return (vim.uv.fs_stat(path) or {}).type == 'directory'
end

---@param dap table
---@param config table
---@return mcp-tools.Error?
local function missing(dap, config)
  local adapter = dap.adapters[config.type]
  if not adapter then
    local names = vim.tbl_keys(dap.adapters)
    table.sort(names)
    local near = suggest(config.type, names)
    local text = ("type: nvim-dap has no adapter '%s' (there are: %s)%s"):format(
      config.type,
      #names > 0 and table.concat(names, ', ') or 'none',
      near and (", did you mean '%s'?"):format(near) or ''
    )
    return errors.new('not_found', text)
  elseif
    type(adapter) == 'table'
    and adapter.type == 'executable'
    and vim.fn.executable(adapter.command or '') ~= 1
  then
    local text = ("type: the program of the adapter '%s' is not there: %s"):format(config.type, adapter.command)
    return errors.new('not_found', text)
  elseif config.request ~= 'launch' then
    return nil
  end
  for field, is_there in pairs({ program = vim.uv.fs_stat, cwd = is_folder }) do
    local path = config[field]
    if type(path) == 'string' and path:sub(1, 1) == '/' and not is_there(path) then
      local what = field == 'cwd' and 'folder' or 'file'
      return errors.new('not_found', ('%s: there is no %s %s'):format(field, what, path))
    end
  end
end

--- What is known at once to be in the way of a configuration.
---@param config table
---@return mcp-tools.Error?
function M.refusal(config)
  local dap, err = client.get()
  return dap and missing(dap, config) or err
end

--- Configurations as they were shown for approval, by the arguments of the call.
---@type table<string, string>
local shown = {}
local MAX_SHOWN = 20

--- The configuration as text, for the user who approves it.
---@param args table
---@param root string
---@return string?
---@return mcp-tools.Error? err
function M.preview(args, root)
  local config, err = M.configuration(args, root)
  err = config and M.refusal(config) or err
  if not config or err then
    return nil, err
  elseif vim.tbl_count(shown) >= MAX_SHOWN then
    shown = {}
  end
  local text = vim.inspect(config)
  shown[canonical_json.text(args)] = text
  return text
end

--- Why a configuration is not the one that was shown for approval: `${file}` is another file by now, or launch.json has
--- changed.
---@param args table
---@param config table
---@return mcp-tools.Error?
function M.has_changed(args, config)
  local key = canonical_json.text(args)
  local before = shown[key]
  shown[key] = nil
  if before and before ~= vim.inspect(config) then
    local text = 'configuration: what it would run has changed since it was shown for approval; call again'
    return errors.new('stale', text)
  end
end

---@param ctx mcp-tools.Ctx
---@param config table
---@param expected mcp-tools.dap.Expected
---@return mcp-tools.dap.Entry?
---@return mcp-tools.Error?
local function begin(ctx, config, expected)
  local asked = false
  ctx:on_cancel(function()
    if expected.entry then
      control.abandon(expected.entry)
    elseif asked then -- its adapter is starting
      expected.unwanted = control.abandon
      timer.after(SESSION_MS, function()
        tracker.forget(expected)
      end)
      return
    end
    tracker.forget(expected)
  end)
  local fault = ctx:await(function(done)
    vim.schedule(function() -- not in this coroutine: nvim-dap would yield in it
      if not ctx:cancelled() then
        asked = true
        done(client.run(config))
      end
    end)
  end)
  local entry = not fault and control.await(ctx, SESSION_MS, function()
    return expected.entry
  end)
  tracker.forget(expected)
  if not entry then
    local text = 'it could not be started: ' .. (fault or 'nvim-dap began no session; its messages say why')
    return nil, errors.new('tool_error', text)
  end
  control.await(ctx, SESSION_MS, function()
    return entry.fault or entry.started or entry.ended
  end)
  if entry.fault then
    control.abandon(entry)
    return nil, errors.new('tool_error', ('the debug adapter refused to %s: %s'):format(config.request, entry.fault))
  elseif entry.ended and not entry.started then
    return nil, errors.new('tool_error', 'the debug adapter ended before the program began; :DapShowLog has its log')
  end
  return entry
end

--- Starts a configuration, and tells the first stop.
---@param ctx mcp-tools.Ctx
---@param config table
---@param args table those of the wait, and `exception_filters`
---@return table? answer
---@return mcp-tools.Error? err
function M.run(ctx, config, args)
  local bad = M.refusal(config)
  if bad then
    return nil, bad
  end
  tracker.attach()
  local entry, fault = begin(ctx, config, tracker.expect(config, args.exception_filters))
  if not entry then
    return nil, fault
  end
  local answer = control.answer(ctx, entry, args)
  answer.session_id = answer.session_id or entry.id
  return answer
end

--- The configuration that a session was started with.
---@param entry mcp-tools.dap.Entry
---@return table
function M.again(entry)
  return (tracker.get(entry.root) or entry).session.config
end

--- Ends a session, and starts its configuration again.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args table those of the wait
---@return table? answer
---@return mcp-tools.Error? err
function M.restart(ctx, entry, args)
  local config = vim.deepcopy(M.again(entry))
  if not entry.ended then
    local ok, err = control.terminate(ctx, entry)
    if not ok then
      return nil, err
    end
  end
  return M.run(ctx, config, vim.tbl_extend('keep', { exception_filters = entry.filters }, args))
end

return M
