--- Tools that behave in every way that a host has to show, and the hosts of this editor, each run the same way.
--- A host: `hosts[name](tool, args)`; what it saw is in `_G.seen`.

local function tool(name, definition)
  definition.name, definition.description, definition.needs_approval = name, name, false
  mcp_tools.register(definition)
end

local value = { value = { type = 'string', required = true } }
tool('says', {
  args = value,
  execute = function(ctx, args)
    ctx(args.value .. ' to ' .. ctx.host)
  end,
})
tool('fails', {
  execute = function(ctx)
    ctx(nil, 'not today')
  end,
})
tool('throws', {
  execute = function()
    error('a secret of the code')
  end,
})
tool('steps', {
  run = function(ctx)
    ctx:progress(1, 2, 'half')
    coroutine.yield('so far')
    ctx:await(function(done)
      vim.defer_fn(done, 150)
    end)
    return 'all'
  end,
})
tool('waits', {
  execute = function(ctx)
    _G.begun = true
    ctx:on_cancel(function()
      _G.stopped = true
    end)
  end,
})
tool('shows', {
  execute = function(ctx)
    ctx({ mcp_tools.content.text('a picture'), mcp_tools.content.image('\1\2', 'image/png') })
  end,
})

local function seen()
  _G.seen = { progress = {}, states = {} }
  return _G.seen
end

local function note(found)
  return function(value, err)
    found.outcome = { ok = err == nil, text = err and err.message or value, code = err and err.code or nil }
  end
end

--- CodeCompanion's side of its contract: one tool is resolved, its commands are run, its output goes to a chat.
local function codecompanion(tool_name, args)
  local found = seen()
  local tools = require('mcp-tools.hosts.codecompanion').tools({
    on_progress = function(_, progress)
      table.insert(found.progress, progress)
    end,
    on_state = function(_, state)
      table.insert(found.states, state)
    end,
  })
  local config = tools['nvim_' .. tool_name]
  local resolved = vim.deepcopy(config.callback())
  local chat = {
    add_tool_output = function(_, _, for_llm, for_user)
      found.outcome.text, found.told = for_llm, for_user
    end,
  }
  local meta = { tools = { chat = chat, bufnr = 1 } }
  local finished = false
  resolved.cmds[1](meta.tools, args, {
    output_cb = function(message)
      assert(not finished, 'twice')
      finished, found.outcome = true, { ok = message.status == 'success' }
      resolved.output[message.status](resolved, { message.data }, meta)
    end,
    register_job = function(job)
      found.stop = function()
        job:kill('sigterm')
      end
    end,
  })
end

_G.hosts = {
  call = function(name, args)
    local found = seen()
    local handle = mcp_tools.call(name, args, {
      on_progress = function(progress)
        table.insert(found.progress, progress)
      end,
      on_state = function(state)
        table.insert(found.states, state)
      end,
    }, note(found))
    found.stop = function()
      handle:cancel()
    end
  end,
  command = function(name, args)
    local found = seen()
    local call = require('mcp-tools.hosts.person').call(name, args, {
      progress = function(progress)
        table.insert(found.progress, progress)
      end,
      state = function(state)
        table.insert(found.states, state)
      end,
      log = function() end,
      asks = function() end,
      done = function(call)
        note(found)(call.outcome.value, call.outcome.error)
      end,
    })
    found.stop = function()
      call:cancel('user')
    end
  end,
  codecompanion = codecompanion,
}
