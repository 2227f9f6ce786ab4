-- Tools of every kind for the end-to-end tests. `Seen` records what happened inside the editor.

_G.Seen = { cancelled = {}, running = 0, late = 0 }

local content = require('mcp-tools').content

local function tool(name, args, execute, more)
  local def = { name = name, description = name, annotations = { read_only = true }, args = args, execute = execute }
  require('mcp-tools').register(vim.tbl_extend('force', def, more or {}))
end

local function record_cancel(reason) table.insert(Seen.cancelled, reason) end

--- Counts a run in `Seen.late`, then returns `text`.
local function marks(text)
  return function(ctx)
    Seen.late = Seen.late + 1
    ctx(text)
  end
end

tool('echo', { value = {} }, function(ctx, args) ctx(args.value) end)

tool('later', { ms = { type = 'integer', default = 20 }, value = {} }, function(ctx, args)
  vim.defer_fn(function() ctx(args.value) end, args.ms)
end)

tool('hold', nil, function(ctx)
  Seen.running = Seen.running + 1
  Seen.ctx = ctx
  ctx:on_cancel(function(reason)
    Seen.running = Seen.running - 1
    record_cancel(reason)
  end)
end, { timeout = 0 })

tool('short', nil, function(ctx) ctx:on_cancel(record_cancel) end, { timeout = 100 })

tool('count', { steps = { type = 'integer', default = 3 } }, nil, {
  run = function(ctx, args)
    for i = 1, args.steps do
      ctx:progress(i, args.steps, 'step ' .. i)
      ctx:await(function(done) vim.defer_fn(done, 20) end)
    end
    return 'counted'
  end,
})

tool('say', nil, function(ctx)
  ctx:log('info', { text = 'from the tool' })
  ctx('said')
end)

local failures = {
  throw = function() error('thrown') end,
  object = function() error({ code = 'stale', message = 'it changed' }) end,
  twice = function(ctx) return ctx('first'), ctx('second') end,
  after = function(ctx) return ctx('kept'), error('after the answer') end,
}

tool('fail', { how = { type = 'string', required = true } }, function(ctx, args)
  local fail = failures[args.how] or function() ctx(nil, args.how) end
  fail(ctx)
end)

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

local value_args = { kind = { type = 'string', required = true }, later = { type = 'boolean', default = false } }
tool('value', value_args, function(ctx, args)
  local function answer() ctx(values[args.kind]()) end
  if args.later then
    vim.schedule(answer)
  else
    answer()
  end
end)

tool('sized', { bytes = { type = 'integer', required = true } }, function(ctx, args) ctx(('x'):rep(args.bytes)) end)

local promised_args = { ok = { type = 'boolean', default = true }, fail = { type = 'boolean', default = false } }
tool('promised', promised_args, function(ctx, args)
  if args.fail then
    ctx:fail('not_found', 'nothing there')
  else
    ctx(args.ok and { n = 5 } or { m = 5 })
  end
end, { output_schema = { type = 'object', properties = { n = { type = 'integer' } }, required = { 'n' } } })

tool('risky', nil, marks('it ran'), { annotations = { destructive = true } })

tool('mark', nil, marks('ran'))

tool('block', { seconds = { type = 'number', default = 1 } }, function(ctx, args)
  vim.fn.system('sleep ' .. args.seconds)
  ctx('awake')
end)

tool('wait', { seconds = { type = 'number', default = 1 } }, function(ctx, args)
  vim.wait(args.seconds * 1000)
  ctx('waited')
end)

--- Blocks the main thread for `ms` before the tool begins.
for name, stage in pairs({ slowly_judged = 'needs_approval', slowly_made = 'state' }) do
  tool(name, { ms = { type = 'integer' } }, marks('ran'), {
    [stage] = function(args)
      vim.uv.sleep(args and args.ms or 2600)
      return stage == 'state' and {}
    end,
  })
end

local shapes_args = { list = { type = 'array', items = { type = 'string' } }, map = { type = 'object' } }
tool('shapes', shapes_args, function(ctx) ctx('fine') end)
