-- The instructions that clients get.

local config = require('mcp-tools.config')
local t = require('helpers')

describe('instructions', function()
  local function instructions(options)
    config.reset()
    config.setup(options)
    return require('mcp-tools.rpc.settings').get().instructions
  end

  after_each(config.reset)

  it('tell when to use the enabled tools, by their published names', function()
    local text = instructions({ tools = 'recommended', tool_prefix = 'vi_' })
    t.matches('vi_symbol_references', text:match('[^\n]*uses, overrides[^\n]*'))
    t.ok(#text <= 1200, #text .. ' characters')
    text = instructions({ tools = { 'file_search', 'editor_state' } })
    t.matches('\n%- nvim_editor_state when', text)
    t.ok(not text:find('symbol_references', 1, true))
  end)

  it('only advise tools that exist', function()
    for name in instructions({ tools = 'all' }):gmatch('nvim_([%w_]+)') do
      t.ok(require('mcp-tools.core').get().registry:get(name), name)
    end
  end)

  it('name the search if the tools are behind it', function()
    local text = instructions({ tools = 'all', catalogue = 'search' })
    t.matches('Call nvim_tools_search first', text)
    t.ok(not text:find('symbol_find', 1, true))
  end)

  it(
    'give no advice without bundled tools',
    function() t.ok(not instructions({ tools = false }):find('Prefer', 1, true)) end
  )

  it('are the same every time', function() t.eq(instructions({ tools = 'all' }), instructions({ tools = 'all' })) end)
end)
