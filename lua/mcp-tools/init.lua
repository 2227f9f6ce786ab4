--- mcp-tools.nvim: give AI assistants tools that live in this editor.
---
--- The public API, nothing but delegation. `:h mcp-tools`
---
--- Requires inside functions are start-up cost: each loads what it needs at its first use.

local M = {}

local function lazy(module)
  return setmetatable({}, {
    __index = function(_, key)
      return require(module)[key]
    end,
  })
end

--- Values for results that are more than data: `content.text`, `content.image`, `content.result`, …
M.content = lazy('mcp-tools.content')
--- Error codes and error values.
M.errors = lazy('mcp-tools.errors')

--- Sets options; a later call adds to an earlier one. `:h mcp-tools-options`
---@param opts? table
function M.setup(opts)
  require('mcp-tools.config').setup(opts)
  local core = package.loaded['mcp-tools.core']
  if core and core.in_use() then
    vim.schedule(function()
      core.begin() -- loads what `tools` names; before the first use nothing needs it
      if opts and (opts.mounts or opts.tools) then
        require('mcp-tools.groups').refresh('mounts')
      end
    end)
  end
  if require('mcp-tools.config').get('companions') or package.loaded['mcp-tools.agents'] then
    vim.schedule(function()
      require('mcp-tools.agents').follow()
    end)
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

--- Registers a tool, or replaces the one of that name. Every fault of a bad definition comes in one error.
---@param tool mcp-tools.Tool
function M.register(tool)
  require('mcp-tools.core').registry():add_or_throw('tools', tool)
end

--- Takes a tool out. Calls of it that run go on.
---@param name string
function M.unregister(name)
  require('mcp-tools.core').get().registry:remove('tools', name)
end

--- Offers a group or a single thing from now on; clients hear of it. `:h mcp-tools-groups`
---@param name string a group, a tool, `resources/<name>`, `prompts/<name>`, `resources` or `prompts`
---@return string[]? names what it contains that is enabled now
---@return mcp-tools.Error? err when there is nothing of that name
function M.enable(name)
  return require('mcp-tools.groups').enable(name)
end

--- Offers a group or a single thing no longer, whoever has registered it. Calls of it that run go on.
---@param name string as for `enable`
---@return string[]? names what it contains that is disabled now
---@return mcp-tools.Error? err when there is nothing of that name
function M.disable(name)
  return require('mcp-tools.groups').disable(name)
end

--- Loads the files of a group or of a single thing again, or all. What fails to load stays as it was.
---@param name? string as for `enable`
---@param cb? fun(failures: mcp-tools.Failure[]) gets everything that cannot be loaded, when it is done
---@return true? ok
---@return mcp-tools.Error? err when there is nothing of that name, or no file that it comes from
function M.reload(name, cb)
  return require('mcp-tools.groups').reload(name, cb)
end

--- Looks again for tools that other plugins ship, and for those in Python; loads what is new or has changed.
--- `:h mcp-tools-ship`
---@param source? string where: `ext`, `python` or `mounts`; everywhere when left out
---@param cb? fun(failures: mcp-tools.Failure[]) gets everything that cannot be loaded, when it is done
---@return true? ok
---@return mcp-tools.Error? err when there is no such source
function M.refresh(source, cb)
  return require('mcp-tools.groups').refresh(source, cb)
end

--- Registers a resource that clients may read, or a template for many. `:h mcp-tools-resources`
---@param resource mcp-tools.Resource
function M.register_resource(resource)
  require('mcp-tools.core').registry():add_or_throw('resources', resource)
end

--- Tells clients that subscribed to it that a resource has changed. Call it as often as you like.
---@param uri string as clients read it, the values of a template filled in
function M.notify_resource(uri)
  require('mcp-tools.util.validate')('uri', uri, 'string')
  local channels = package.loaded['mcp-tools.rpc.channels'] -- nobody can have subscribed before it is loaded
  if channels then
    channels.updated(uri)
  end
end

--- Takes a resource or a template out. Reads of it that run go on.
---@param uri string its `uri` or `uri_template`
function M.unregister_resource(uri)
  require('mcp-tools.core').get().registry:remove('resources', uri)
end

--- Registers a prompt that people choose in their client, or replaces the one of that name. `:h mcp-tools-prompts`
---@param prompt mcp-tools.Prompt
function M.register_prompt(prompt)
  require('mcp-tools.core').registry():add_or_throw('prompts', prompt)
end

--- Takes a prompt out.
---@param name string
function M.unregister_prompt(name)
  require('mcp-tools.core').get().registry:remove('prompts', name)
end

--- Mounts another MCP server: what it offers is offered here as well, its tools and prompts as `<name>__<tool>`. A
--- server of that name is replaced. Every fault of the spec comes in one error. `:h mcp-tools-mounts`
---@param name string letters, digits, `-` and `_`
---@param spec mcp-tools.MountSpec
function M.mount(name, spec)
  require('mcp-tools.core').begin()
  require('mcp-tools.mounts').mount(name, spec)
end

--- Takes a mounted server away; calls of its tools that run end with an error.
---@param name string
---@return boolean was_there
function M.unmount(name)
  return require('mcp-tools.mounts').unmount(name)
end

--- Every registered tool: name → `{ name, description, args }`.
---@return table<string, { name: string, description: string, args: table? }>
function M.list_tools()
  return require('mcp-tools.registry').list()
end

--- Runs a tool in the same way as an AI client does: schema check, gateway, timeout.
---@param name string
---@param args? table
---@param opts? mcp-tools.CallOptions
---@param cb? fun(result: any, err: mcp-tools.Error?) without it, in a coroutine, the call returns `result, err`
---@return mcp-tools.Handle|any handle an object with `:cancel()`; without `cb` the result
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
  local host = require('mcp-tools.callers.nvim')
  if cb then
    return host.start(name, args or {}, opts or {}, cb)
  end
  return host.await(name, args or {}, opts or {})
end

--- Asks the person some questions, one after the other, in a window that takes no key until they go there
--- (`:McpTools answer`). Interviews that come while one is open wait for their turn.
---
--- `cb` is called once, with `{ completed = true, answers = { { question = …, answer = … }, … } }`. An answer is a
--- text, or a list of texts where several could be chosen. When the person leaves it, `completed` is false.
---@param questions mcp-tools.InterviewQuestion[] `{ { question = …, choices = { … }, multiselect = true }, … }`
---@param opts? { from: string? } who asks
---@param cb fun(result: mcp-tools.InterviewResult?, err: mcp-tools.Error?)
---@return { cancel: fun(self): boolean } handle cancels the request
function M.interview(questions, opts, cb)
  local validate = require('mcp-tools.util.validate')
  validate('questions', questions, 'table')
  validate('opts', opts, 'table', true)
  validate('opts.from', opts and opts.from, 'string', true)
  validate('cb', cb, 'callable')
  return require('mcp-tools.ui.interview').ask(questions, opts and opts.from, cb)
end

--- Runs a Python function as the rest of a call, in the process of tools in Python: what it gives or raises ends the
--- call. For handlers in Lua that need Python for a part of their work.
---@param ctx mcp-tools.Ctx
---@param place { module: string, name: string } a module that can be imported there, and one of its tools
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

--- Is there a bridge process, ready or starting?
---@return boolean
function M.is_running()
  return require('mcp-tools.bridge').is_running()
end

--- The port that the bridge listens on; nil until it is ready.
---@return integer?
function M.get_port()
  return require('mcp-tools.bridge').get_port()
end

--- Where and how to reach the bridge; nil until it is ready.
---@return { url: string, token: string, port: integer }?
function M.endpoint()
  return require('mcp-tools.bridge').endpoint()
end

--- The entry for `mcpServers` by which an agent that a plugin of yours starts over ACP has these tools.
---@param opts? { transport: 'stdio'|'http'? } every agent takes `stdio` (default); `http` needs no further process,
--- where the agent says that it takes it (`agentCapabilities.mcpCapabilities.http`)
---@return table? entry nil until the bridge is ready
---@return mcp-tools.Error? err
function M.acp_server(opts)
  require('mcp-tools.util.validate')('opts', opts, 'table', true)
  return require('mcp-tools.bridge.acp').entry(opts and opts.transport or 'stdio')
end

--- What the bridge and the calls are doing, for status lines and the like: `state`, `port`, `sessions` and more of the
--- bridge, the plugin's `version`; once anything was used, `offered` (how many of each kind), `calls` in flight and
--- `mounts`.
---@return table
function M.status()
  local core, status = require('mcp-tools.core'), require('mcp-tools.bridge').status()
  status.version = require('mcp-tools.instances.project').VERSION
  if core.in_use() then
    local parts = core.begin()
    status.offered = vim.tbl_map(vim.tbl_count, parts.registry.entries)
    status.calls = #parts.executor:pending()
    local mounts = package.loaded['mcp-tools.mounts']
    status.mounts = mounts and mounts.status() or nil
  end
  return status
end

--- What waits for you, else what assistants are doing, as a part of a statusline (`%` is doubled): "1 approval, 2
--- reviews", "shell_run 40%%", or nothing. `User McpToolsStatus` tells when it is another. `:h mcp-tools-statusline`
---@return string
function M.statusline()
  local activity = package.loaded['mcp-tools.ui.activity'] -- nothing goes on before it is loaded
  return activity and (activity.text():gsub('%%', '%%%%')) or ''
end

--- What assistants are doing and what waits for you, in parts.
---@return mcp-tools.Activity
function M.activity()
  require('mcp-tools.core').begin()
  return require('mcp-tools.ui.activity').get()
end

--- Everything that is offered and where it comes from, and what could not be loaded and why.
---@return mcp-tools.Report
function M.report()
  return require('mcp-tools.loading.report').of(require('mcp-tools.core').get().registry)
end

--- Calls `fn` whenever `report()` may say something else.
---@param fn fun()
---@return fun() stop ends it
function M.on_change(fn)
  require('mcp-tools.util.validate')('fn', fn, 'callable')
  return require('mcp-tools.loading.report').on_change(require('mcp-tools.core').registry(), fn)
end

return M
