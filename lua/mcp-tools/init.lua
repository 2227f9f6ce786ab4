--- mcp-tools.nvim: tools of this editor for AI assistants. The public API, `:h mcp-tools`.
---
--- Each function requires its modules at the first use, to keep start-up fast.

local M = {}

local function lazy(module)
  return setmetatable({}, {
    __index = function(_, key)
      return require(module)[key]
    end,
  })
end

--- Content values for results: `content.text`, `content.image`, `content.result`, …
M.content = lazy('mcp-tools.content')
--- Error codes and error values.
M.errors = lazy('mcp-tools.errors')

--- Sets options. A later call changes only the options that it contains. `:h mcp-tools-options`
---@param opts? table
function M.setup(opts)
  require('mcp-tools.config').setup(opts)
  local core = package.loaded['mcp-tools.core']
  if core and core.in_use() then
    vim.schedule(function()
      core.begin() -- starts to load definitions that the options request
      if opts and (opts.mounts or opts.tools) then
        require('mcp-tools.groups').refresh('mounts')
      end
    end)
  end
  if require('mcp-tools.config').get('agents') or package.loaded['mcp-tools.agents'] then
    vim.schedule(function()
      require('mcp-tools.agents').follow()
    end)
  end
  if opts and opts.hooks and package.loaded['mcp-tools.bridge.current'] then
    require('mcp-tools.bridge.current').follow_hooks()
  end
  if next(require('mcp-tools.config').get().integrations) or package.loaded['mcp-tools.agents.integrations'] then
    vim.schedule(function()
      require('mcp-tools.agents.integrations').follow()
    end)
  end
  if require('mcp-tools.config').get('integrations.ampcode') then
    vim.api.nvim_create_user_command('AmpStartWithMCP', 'McpTools terminal amp <args>', {
      nargs = '*',
      desc = 'Amp in a terminal, with the tools of this editor',
    })
  end
  require('mcp-tools.bridge').autostart()
end

--- Registers a tool, or replaces the one of that name. Throws one error with all faults of an invalid definition.
---@param tool mcp-tools.Tool
function M.register(tool)
  require('mcp-tools.core').registry():add_or_throw('tools', tool)
end

--- Removes a tool. Its running calls continue.
---@param name string
function M.unregister(name)
  require('mcp-tools.core').get().registry:remove('tools', name)
end

--- Switches a group or a definition on and notifies clients. `:h mcp-tools-groups`
---@param name string a group, a tool, `resources/<name>`, `prompts/<name>`, `resources` or `prompts`
---@return string[]? names definitions that are now on
---@return mcp-tools.Error? err if the name is unknown
function M.enable(name)
  return require('mcp-tools.groups').enable(name)
end

--- Switches a group or a definition off, even if a plugin registered it. Running calls continue.
---@param name string as for `enable`
---@return string[]? names definitions that are now off
---@return mcp-tools.Error? err if the name is unknown
function M.disable(name)
  return require('mcp-tools.groups').disable(name)
end

--- Loads the files of a group, a definition, or everything again. If a file fails, its earlier definition stays.
---@param name? string as for `enable`
---@param cb? fun(failures: mcp-tools.Failure[]) gets all failures at the end
---@return true? ok
---@return mcp-tools.Error? err if the name is unknown or has no file
function M.reload(name, cb)
  return require('mcp-tools.groups').reload(name, cb)
end

--- Scans for tools of other plugins, Python tools and mounts; loads those that are new or have changed.
--- `:h mcp-tools-ship`
---@param source? string `ext`, `python` or `mounts` (default: all)
---@param cb? fun(failures: mcp-tools.Failure[]) gets all failures at the end
---@return true? ok
---@return mcp-tools.Error? err if the source is unknown
function M.refresh(source, cb)
  return require('mcp-tools.groups').refresh(source, cb)
end

--- Registers a resource or a resource template. `:h mcp-tools-resources`
---@param resource mcp-tools.Resource
function M.register_resource(resource)
  require('mcp-tools.core').registry():add_or_throw('resources', resource)
end

--- Notifies subscribed clients that a resource has changed. Cheap, so it can be called for every change.
---@param uri string of the resource; for a template, with its variables filled in
function M.notify_resource(uri)
  require('mcp-tools.util.validate')('uri', uri, 'string')
  local channels = package.loaded['mcp-tools.rpc.channels'] -- without it there are no subscriptions
  if channels then
    channels.updated(uri)
  end
end

--- Removes a resource or a resource template. Its running reads continue.
---@param uri string its `uri` or `uri_template`
function M.unregister_resource(uri)
  require('mcp-tools.core').get().registry:remove('resources', uri)
end

--- Registers a prompt, or replaces the one of that name. `:h mcp-tools-prompts`
---@param prompt mcp-tools.Prompt
function M.register_prompt(prompt)
  require('mcp-tools.core').registry():add_or_throw('prompts', prompt)
end

--- Removes a prompt.
---@param name string
function M.unregister_prompt(name)
  require('mcp-tools.core').get().registry:remove('prompts', name)
end

--- Mounts another MCP server: clients of this editor get its tools and prompts as `<name>__<tool>`, and its resources.
--- Replaces a server of that name. Throws one error with all faults of an invalid spec. `:h mcp-tools-mounts`
---@param name string letters, digits, `-` and `_`
---@param spec mcp-tools.MountSpec
function M.mount(name, spec)
  require('mcp-tools.core').begin()
  require('mcp-tools.mounts').mount(name, spec)
end

--- Removes a mounted server. Its running calls end with an error.
---@param name string
---@return boolean removed false if there was none
function M.unmount(name)
  return require('mcp-tools.mounts').unmount(name)
end

--- Returns every tool that is on: name → `{ name, description, args }`.
---@return table<string, { name: string, description: string, args: table? }>
function M.list_tools()
  return require('mcp-tools.registry').list()
end

--- Calls a tool as an AI client does: with schema check, approval and timeout.
---@param name string
---@param args? table
---@param opts? mcp-tools.CallOptions
---@param cb? fun(result: any, err: mcp-tools.Error?) without it, in a coroutine, returns `result, err`
---@return mcp-tools.Handle|any handle an object with `:cancel()`; without `cb`, the result
---@return mcp-tools.Error? err
function M.call(name, args, opts, cb)
  local validate = require('mcp-tools.util.validate')
  validate('name', name, 'string')
  validate('args', args, 'table', true)
  if type(opts) == 'function' then
    opts, cb = nil, opts
  end
  validate('opts', opts, 'table', true)
  validate('cb', cb, 'callable', true)
  local caller = require('mcp-tools.callers.nvim')
  if cb then
    return caller.start(name, args or {}, opts or {}, cb)
  end
  return caller.await(name, args or {}, opts or {})
end

--- Asks the user questions, one after the other, in a window that does not take the focus (`:McpTools answer` enters
--- it). Further interviews wait until the open one has ended.
---
--- `cb` is called once, with `{ completed = true, answers = { { question = …, answer = … }, … } }`. An answer is a
--- string, or a list of strings for `multiselect`. If the user cancels the interview, `completed` is false.
---@param questions mcp-tools.InterviewQuestion[] `{ { question = …, choices = { … }, multiselect = true }, … }`
---@param opts? { from: string?, session: string? } `from`: name shown as the origin of the questions; `session`: whose
---  interviews are counted together, since at most 8 may be open
---@param cb fun(result: mcp-tools.InterviewResult?, err: mcp-tools.Error?)
---@return { cancel: fun(self): boolean } handle cancels the request
function M.interview(questions, opts, cb)
  local validate = require('mcp-tools.util.validate')
  validate('questions', questions, 'table')
  validate('opts', opts, 'table', true)
  validate('opts.from', opts and opts.from, 'string', true)
  validate('cb', cb, 'callable')
  validate('opts.session', opts and opts.session, 'string', true)
  return require('mcp-tools.ui.interview').ask(questions, opts or {}, cb)
end

--- Continues a call with a Python function, in the worker process of Python tools. Its result or exception ends the
--- call. For Lua handlers that need Python.
---@param ctx mcp-tools.Ctx
---@param place { module: string, name: string } an importable module, and one of its tools
---@param args table
function M.run_python(ctx, place, args)
  local validate = require('mcp-tools.util.validate')
  validate('place.module', place.module, 'string')
  validate('place.name', place.name, 'string')
  local tool = { key = 'module:' .. place.module, name = place.name, source = { module = place.module } }
  require('mcp-tools.python_worker.worker').call(ctx, tool, args)
end

--- Starts the bridge.
---@param opts? { nvim_socket?: string, port?: integer, on_ready?: fun(port: integer), on_stop?: fun() }
function M.start(opts)
  require('mcp-tools.bridge').start(opts)
end

--- Stops the bridge.
function M.stop()
  require('mcp-tools.bridge').stop()
end

--- Returns whether there is a bridge process, ready or starting.
---@return boolean
function M.is_running()
  return require('mcp-tools.bridge').is_running()
end

--- Returns the port of the bridge; nil until it is ready.
---@return integer?
function M.get_port()
  return require('mcp-tools.bridge').get_port()
end

--- Returns URL, token and port of the bridge; nil until it is ready.
---@return { url: string, token: string, port: integer }?
function M.endpoint()
  return require('mcp-tools.bridge').endpoint()
end

--- Returns an entry for `mcpServers` that gives an agent these tools, for plugins that start agents over ACP. An `http`
--- entry contains a token of its own, for one session of an agent.
---@param opts? { transport: 'stdio'|'http'? } every agent supports `stdio` (default); `http` needs no additional
--- process, but support by the agent (`agentCapabilities.mcpCapabilities.http`)
---@return table? entry nil until the bridge is ready
---@return mcp-tools.Error? err
function M.acp_server(opts)
  require('mcp-tools.util.validate')('opts', opts, 'table', true)
  return require('mcp-tools.bridge').acp_entry(opts and opts.transport or 'stdio')
end

--- Revokes the token of an `http` entry of `acp_server()` and ends its sessions, when the agent has ended.
---@param entry table
function M.acp_revoke(entry)
  require('mcp-tools.util.validate')('entry', entry, 'table')
  require('mcp-tools.bridge').revoke_acp(entry)
end

--- Returns the state of the plugin: `state`, `port`, `sessions` and more of the bridge, the plugin's `version`; after
--- the first use also `offered` (number of definitions of each kind), `calls` (number of running calls) and `mounts`.
---@return table
function M.status()
  local core, status = require('mcp-tools.core'), require('mcp-tools.bridge').status() --[[@as table]]
  status.version = require('mcp-tools.instances.project').VERSION
  if core.in_use() then
    local parts = core.parts()
    status.offered = vim.tbl_map(vim.tbl_count, parts.registry.entries)
    status.calls = #parts.executor:pending()
    local mounts = package.loaded['mcp-tools.mounts']
    status.mounts = mounts and mounts.status() or nil
  end
  return status
end

--- Returns a part of a statusline (`%` is doubled): what waits for the user ("1 approval, 2 reviews"), otherwise what
--- assistants are doing ("shell_run 40%%"), or "". `User McpToolsStatus` reports changes. `:h mcp-tools-statusline`
---@return string
function M.statusline()
  local activity = package.loaded['mcp-tools.ui.activity'] -- without it there is no activity
  return activity and (activity.text():gsub('%%', '%%%%')) or ''
end

--- Returns what assistants are doing and what waits for the user.
---@return mcp-tools.Activity
function M.activity()
  require('mcp-tools.core').begin()
  return require('mcp-tools.ui.activity').get()
end

--- Returns all definitions that are on, their sources, and failures.
---@return mcp-tools.Report
function M.report()
  return require('mcp-tools.loading.report').of(require('mcp-tools.core').get().registry)
end

--- Calls `fn` whenever `report()` may have changed.
---@param fn fun()
---@return fun() stop
function M.on_change(fn)
  require('mcp-tools.util.validate')('fn', fn, 'callable')
  return require('mcp-tools.loading.report').on_change(require('mcp-tools.core').registry(), fn)
end

return M
