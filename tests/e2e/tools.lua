-- Tools of every kind for the end-to-end tests. `Seen` tells the tests what happened inside the editor.

_G.Seen = { cancelled = {}, running = 0, late = 0 }

local content = require('mcp-tools').content

local function tool(def)
  def.description = def.description or def.name
  def.annotations = def.annotations or { read_only = true }
  require('mcp-tools').register(def)
end

tool({
  name = 'echo',
  args = { value = {} },
  execute = function(ctx, args) ctx(args.value) end,
})

tool({
  name = 'later',
  args = { ms = { type = 'integer', default = 20 }, value = {} },
  execute = function(ctx, args)
    vim.defer_fn(function() ctx(args.value) end, args.ms)
  end,
})

tool({
  name = 'hold',
  timeout = 0,
  execute = function(ctx)
    Seen.running = Seen.running + 1
    Seen.ctx = ctx
    ctx:on_cancel(function(reason)
      Seen.running = Seen.running - 1
      table.insert(Seen.cancelled, reason)
    end)
  end,
})

tool({
  name = 'short',
  timeout = 100,
  execute = function(ctx)
    ctx:on_cancel(function(reason) table.insert(Seen.cancelled, reason) end)
  end,
})

tool({
  name = 'count',
  args = { steps = { type = 'integer', default = 3 } },
  run = function(ctx, args)
    for i = 1, args.steps do
      ctx:progress(i, args.steps, 'step ' .. i)
      ctx:await(function(done) vim.defer_fn(done, 20) end)
    end
    return 'counted'
  end,
})

tool({
  name = 'say',
  execute = function(ctx)
    ctx:log('info', { text = 'from the tool' })
    ctx('said')
  end,
})

tool({
  name = 'fail',
  args = { how = { type = 'string', required = true } },
  execute = function(ctx, args)
    if args.how == 'throw' then
      error('thrown')
    elseif args.how == 'object' then
      error({ code = 'stale', message = 'it changed' })
    elseif args.how == 'twice' then
      ctx('first')
      ctx('second')
    elseif args.how == 'after' then
      ctx('kept')
      error('after the answer')
    else
      ctx(nil, args.how)
    end
  end,
})

local values = {
  ['function'] = function() return { a = { print } } end,
  userdata = function() return vim.uv.new_timer() end,
  cycle = function()
    local t = {}
    t.t = t
    return t
  end,
  nan = function() return { x = 0 / 0 } end,
  inf = function() return -1 / 0 end,
  bytes = function() return { lines = { 'ok', 'a\255' } } end,
  bytes_text = function() return 'a\255b' end,
  bytes_error = function() return nil, 'a\255b' end,
  nul = function() return 'a\0b' end,
  sparse = function() return { 1, nil, 3 } end,
  mixed = function() return { 'x', a = 'y' } end,
  empty = function() return {} end,
  empty_dict = function() return vim.empty_dict() end,
  null = function() return vim.NIL end,
  ['nil'] = function() end,
  ['false'] = function() return false end,
  numbers = function() return { math.pi, 2 ^ 53 + 2, 1763769600123456, 0.1 + 0.2 } end,
  content = function()
    return {
      content.text('é'),
      content.image('\0\1', 'image/png'),
      content.audio('\2', 'audio/wav'),
      content.resource({ uri = 'x://t', mime_type = 'text/plain', text = 'T' }),
      content.resource_link({ uri = 'x://l', name = 'l' }),
    }
  end,
  result = function() return content.result({ content = content.text('no'), is_error = true, meta = { ['x/y'] = 1 } }) end,
}

tool({
  name = 'value',
  args = { kind = { type = 'string', required = true }, later = { type = 'boolean', default = false } },
  execute = function(ctx, args)
    if args.later then
      vim.schedule(function() ctx(values[args.kind]()) end)
    else
      ctx(values[args.kind]())
    end
  end,
})

tool({
  name = 'sized',
  args = { bytes = { type = 'integer', required = true } },
  execute = function(ctx, args) ctx(('x'):rep(args.bytes)) end,
})

tool({
  name = 'promised',
  args = { ok = { type = 'boolean', default = true }, fail = { type = 'boolean', default = false } },
  output_schema = { type = 'object', properties = { n = { type = 'integer' } }, required = { 'n' } },
  execute = function(ctx, args)
    if args.fail then
      ctx:fail('not_found', 'nothing there')
    else
      ctx(args.ok and { n = 5 } or { m = 5 })
    end
  end,
})

tool({
  name = 'risky',
  annotations = { destructive = true },
  execute = function(ctx)
    Seen.late = Seen.late + 1
    ctx('it ran')
  end,
})

tool({
  name = 'block',
  args = { seconds = { type = 'number', default = 1 } },
  execute = function(ctx, args)
    vim.fn.system('sleep ' .. args.seconds)
    ctx('awake')
  end,
})

tool({
  name = 'wait',
  args = { seconds = { type = 'number', default = 1 } },
  execute = function(ctx, args)
    vim.wait(args.seconds * 1000)
    ctx('waited')
  end,
})

tool({
  name = 'mark',
  execute = function(ctx)
    Seen.late = Seen.late + 1
    ctx('ran')
  end,
})

--- Holds the main thread before the tool could begin, for so many ms.
for name, stage in pairs({ slowly_judged = 'needs_approval', slowly_made = 'state' }) do
  tool({
    name = name,
    args = { ms = { type = 'integer' } },
    [stage] = function(args)
      vim.uv.sleep(args and args.ms or 2600)
      return stage == 'state' and {}
    end,
    execute = function(ctx)
      Seen.late = Seen.late + 1
      ctx('ran')
    end,
  })
end

tool({
  name = 'shapes',
  args = { list = { type = 'array', items = { type = 'string' } }, map = { type = 'object' } },
  execute = function(ctx) ctx('fine') end,
})
