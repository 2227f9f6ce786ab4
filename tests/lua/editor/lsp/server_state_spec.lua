-- every Neovim
-- Waiting for what servers do, when the condition is at fault.

local mcp_tools = require('mcp-tools')
local t = require('helpers')
local server_state = require('mcp-tools.editor.lsp.server_state')

--- What a tool that waits so comes to.
local function waited(ms, condition)
  local ended
  mcp_tools.register({
    name = 'waits',
    description = 'Waits.',
    annotations = { read_only = true },
    run = function(ctx)
      return { value = server_state.await(ctx, ms, condition) or 'over' }
    end,
  })
  mcp_tools.call('waits', {}, function(value, err)
    ended = { value = value, err = err }
  end)
  t.wait(function()
    return ended
  end)
  mcp_tools.unregister('waits')
  return ended
end

describe('a wait', function()
  it('ends with what its condition gives, or with its time', function()
    local count = 0
    t.eq(
      'three',
      waited(5000, function()
        count = count + 1
        return count == 3 and 'three' or nil
      end).value.value
    )
    t.eq('over', waited(50, function() end).value.value)
  end)

  it('ends its call when its condition throws, and shows the person nothing', function()
    vim.v.errmsg = ''
    local count = 0
    local ended = waited(5000, function()
      count = count + 1
      return count > 1 and error('the buffer is gone') or nil
    end)
    t.eq('execution_error', ended.err.code)
    t.eq(2, count)
    t.eq('', vim.v.errmsg)
  end)
end)
