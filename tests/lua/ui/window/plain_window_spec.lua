-- every Neovim
local float = require('mcp-tools.ui.window.float')
local Rows = require('mcp-tools.ui.window.rows')
local render = require('mcp-tools.ui.window.render')
local scratch = require('mcp-tools.ui.window.scratch')
local t = require('helpers')

local api = vim.api

local LINES = { 'a call', '  content: "{{{', '  rm -rf ~', '  }}}"', 'the end' }

local Window = float.kind({ zindex = 50, max_width = 40 })

function Window:layout()
  return { { row = 0, height = #LINES } }
end

local function open_float()
  local self, rows = setmetatable({}, Window), Rows.new(40, true)
  vim.iter(LINES):each(function(line)
    rows:line(line)
  end)
  self.buffers = { float.buffer('mcp_tools_spec', true, {}) }
  render.update(self.buffers[1], rows.list)
  self:open({ {} })
  return self.windows[1]
end

local function open_layout(kind)
  return function()
    local function fill(rows)
      vim.iter(LINES):each(function(line)
        rows:add({ line })
      end)
    end
    scratch.show('spec', fill, { rows = true, float = kind == 'float' })
    return api.nvim_get_current_win()
  end
end

local function open_scratch(name)
  scratch.show(name, LINES)
  return api.nvim_get_current_win()
end

local OPEN = {
  ['a question'] = open_float,
  ['the dashboard'] = open_layout('float'),
  ['the dashboard as a split'] = open_layout('split'),
  ['the window at the bottom'] = function()
    return open_scratch('one')
  end,
  ['the window at the bottom, used again'] = function()
    open_scratch('one')
    return open_scratch('two')
  end,
}

describe('what a person has for their own texts', function()
  local own = { number = true, statuscolumn = '%l', signcolumn = 'yes', foldmethod = 'marker', foldlevel = 0 }
  own.spell, own.list, own.colorcolumn = true, true, '10'

  before_each(function()
    for name, value in pairs(own) do
      vim.o[name] = value
    end
  end)
  after_each(function()
    vim.cmd('silent! only')
    vim.cmd('%bwipeout!')
    for name in pairs(own) do
      vim.cmd('set ' .. name .. '&')
    end
  end)

  for what, open in pairs(OPEN) do
    it('hides nothing and adds nothing in ' .. what, function()
      local here = api.nvim_get_current_win()
      local window = open()
      api.nvim_win_call(window, function()
        for line = 1, #LINES do
          t.eq({ line, -1 }, { line, vim.fn.foldclosed(line) })
        end
      end)
      t.eq(0, vim.fn.getwininfo(window)[1].textoff)
      t.eq({ false, false, '' }, { vim.wo[window].spell, vim.wo[window].list, vim.wo[window].colorcolumn })
      for name, value in pairs(own) do
        t.eq({ name, value }, { name, vim.wo[here][name] })
        t.eq({ name, value }, { name, vim.go[name] })
      end
    end)
  end
end)
