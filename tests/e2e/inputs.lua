-- Tools that ask their client. `Seen` (as in tools.lua) records what happened inside the editor.

_G.Seen = { cancelled = {}, answers = 0 }

local NAME = { type = 'object', properties = { name = { type = 'string' } }, required = { 'name' } }

local function tool(name, run, more)
  local def = { name = name, description = name, annotations = { read_only = true }, run = run }
  require('mcp-tools').register(vim.tbl_extend('force', def, more or {}))
end

local function give(ctx, value, err) return err and ctx(nil, err) or value end

local function question(text)
  return { messages = { { role = 'user', content = { type = 'text', text = text } } }, maxTokens = 10 }
end

tool('who', function(ctx)
  ctx:on_cancel(function(reason) table.insert(Seen.cancelled, reason) end)
  local answer, err = ctx:elicit('Who are you?', NAME)
  Seen.answers = Seen.answers + 1
  return give(ctx, answer, err)
end, { timeout = 500 })

tool('twice', function(ctx)
  local names = {}
  for round = 1, 2 do
    local answer, err = ctx:elicit('Name ' .. round .. '?', NAME)
    Seen.answers = Seen.answers + 1
    if err then
      return ctx(nil, err)
    end
    names[round] = answer.content.name
  end
  ctx:await(function(done) vim.defer_fn(done, 300) end)
  return names
end)

tool('model', function(ctx)
  local answer, err = ctx:sample(question('Capital of France?'))
  return give(ctx, answer and answer.content.text, err)
end)

tool('folders', nil, {
  execute = function(ctx)
    ctx:roots(function(roots, err) ctx(roots and roots[1].uri, err) end)
  end,
})

tool('everything', function(ctx)
  local answers, err = ctx:request_inputs({
    name = { method = 'elicitation/create', params = { message = 'Name?', requestedSchema = NAME } },
    model = { method = 'sampling/createMessage', params = question('Say hello') },
    folders = { method = 'roots/list' },
  })
  if err then
    return ctx(nil, err)
  end
  return { answers.name.content.name, answers.model.content.text, #answers.folders.roots }
end)

tool('stages', function(ctx)
  for _, state in ipairs({ 'begun', { files = 2 }, 7, 'nearly' }) do
    coroutine.yield(state)
    ctx:await(function(done) vim.defer_fn(done, 10) end)
  end
  return 'ended'
end)

require('mcp-tools').register_prompt({
  name = 'asking',
  description = 'A prompt that asks',
  run = function(ctx)
    local answer, err = ctx:elicit('About what?', NAME)
    return give(ctx, answer and 'About ' .. answer.content.name, err)
  end,
})

require('mcp-tools').register_resource({
  uri = 'e2e://asking',
  name = 'asking',
  description = 'A resource that asks',
  run = function(ctx)
    local answer, err = ctx:elicit('Which?', NAME)
    return give(ctx, answer and answer.content.name, err)
  end,
})
