-- Resources and prompts for the end-to-end tests; `Watched` records whether the first one is watched.

_G.Watched = { count = 0 }

local mcp = require('mcp-tools')
local content = mcp.content

local function resource(name, mime_type, read, more)
  local def = { uri = 'e2e://' .. name, name = name, description = name, mime_type = mime_type, read = read }
  mcp.register_resource(vim.tbl_extend('force', def, more or {}))
end

resource('text', 'text/markdown', function(ctx) ctx('# Hällo') end, {
  watch = function(changed)
    Watched.count = Watched.count + 1
    Watched.changed = changed
    return function() Watched.count = Watched.count - 1 end
  end,
})

resource('bytes', 'image/png', function(ctx) ctx({ blob = '\0\1\255' }) end)

resource('large', nil, nil, { run = function() return ('x'):rep(11 * 1024 * 1024) end })

resource('broken', nil, function() error('it broke') end)

mcp.register_resource({
  uri_template = 'e2e://item/{id}',
  name = 'item',
  description = 'item',
  complete = {
    id = function(ctx, prefix)
      ctx(vim.tbl_filter(function(id) return vim.startswith(id, prefix) end, { 'one', 'other', 'two' }))
    end,
  },
  run = function(ctx, params)
    ctx:await(function(done) vim.defer_fn(done, 10) end)
    return { text = 'item ' .. params.id, mime_type = 'text/plain' }
  end,
})

mcp.register_prompt({
  name = 'greet',
  title = 'Greet',
  description = 'Greets someone',
  args = {
    {
      name = 'name',
      description = 'Whom',
      required = true,
      complete = function(ctx, prefix, arguments) ctx({ prefix .. 'a', prefix .. (arguments.style or 'b') }) end,
    },
    { name = 'style' },
  },
  get = function(ctx, args)
    ctx({
      description = 'A greeting',
      messages = {
        { role = 'user', content = content.text('Greet ' .. args.name) },
        { role = 'user', content = content.image('\0\1', 'image/png') },
        { role = 'assistant', content = content.resource({ uri = 'e2e://text', text = '# Hällo' }) },
      },
    })
  end,
})

mcp.register_prompt({ name = 'broken', description = 'x', get = function() error('it broke') end })
