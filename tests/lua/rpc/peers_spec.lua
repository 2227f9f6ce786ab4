local mcp_tools = require('mcp-tools')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

local channel = 4321
local count = 0

local function execute(opts)
  count = count + 1
  opts.channel, opts.call_id, opts.start_by = channel, 'p' .. count, vim.uv.hrtime() + 1e10
  return wire.execute('who', vim.empty_dict(), opts).result
end

local function told(name, session)
  return { client = { name = name, version = '1' }, host = 'mcp', timeout = 1000, session = session, capabilities = {} }
end

describe('a client that was introduced', function()
  before_each(function()
    require('mcp-tools.config').setup({ approval = { tools = { who = 'allow' } } })
    wire.hello(channel, { protocol = wire.PROTOCOL, role = 'client' })
    mcp_tools.register({
      name = 'who',
      description = 'x',
      execute = function(ctx)
        local said = ctx.client.name .. ' ' .. tostring(ctx.session)
        ctx.client.name = 'somebody else'
        ctx(said)
      end,
    })
  end)

  it('is known by its number, and never as another', function()
    t.eq('one s1', execute({ peer = 1, who = told('one', 's1') }).text)
    t.eq('two nil', execute({ peer = 2, who = told('two') }).text)
    t.eq('one s1', execute({ peer = 1 }).text)
    t.eq('two nil', execute({ peer = 2 }).text)
    t.eq('three s3', execute({ peer = 1, who = told('three', 's3') }).text)
    t.eq('three s3', execute({ peer = 1 }).text)
  end)

  it('is no client of another channel, nor one that nobody told of', function()
    t.raises('peer 7 is unknown', function()
      execute({ peer = 7 })
    end)
  end)
end)
