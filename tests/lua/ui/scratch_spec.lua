local scratch = require('mcp-tools.ui.scratch')
local t = require('helpers')

local OPTIONS = { 'number', 'relativenumber', 'winfixheight', 'wrap', 'linebreak' }

local function values(scope)
  local out = {}
  for _, name in ipairs(OPTIONS) do
    out[name] = vim.api.nvim_get_option_value(name, { scope = scope })
  end
  return out
end

describe('the window at the bottom', function()
  it("leaves the person's options as they are, for this window and those to come", function()
    vim.o.number, vim.o.relativenumber, vim.o.wrap, vim.o.linebreak = true, true, false, true
    local here, everywhere = values('local'), values('global')
    for _, wrap in ipairs({ true, false }) do
      scratch.show('test', { 'a line' }, { wrap = wrap })
      t.eq({ false, wrap }, { vim.wo.number, vim.wo.wrap })
      t.eq(everywhere, values('global'))
      vim.cmd.close()
      t.eq(here, values('local'))
      vim.cmd.new('another')
      t.eq(here, values('local'))
      vim.cmd('bwipeout!')
    end
    scratch.show('test', { 'a line' }, { wrap = true })
    vim.cmd.edit(vim.fn.tempname())
    t.eq(true, vim.wo.number)
    vim.cmd('%bwipeout!')
  end)
end)
