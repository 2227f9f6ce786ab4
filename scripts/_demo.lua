-- The editor of `make demo`: a project with unsaved text, and a window below it that tells what the agent does.

vim.opt.runtimepath:prepend(vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))))
vim.cmd.runtime('plugin/mcp-tools.lua')

local api = vim.api
local NARRATOR_HEIGHT = 8
local SAVED = {
  'TAX = 1.16',
  '',
  '',
  'def total(prices):',
  '    result = 0',
  '    for price in prices:',
  '        result += price',
  '    return result * TAX',
  '',
  '',
  'print(total([100]))',
}

vim.o.swapfile, vim.o.ruler, vim.o.showcmd, vim.o.number, vim.o.laststatus = false, false, false, true, 2
vim.o.shortmess = vim.o.shortmess .. 'FI'
vim.o.statusline = ' %t %m'

local narrator = api.nvim_create_buf(false, true)
local was_ready = false
_G.Demo = {}

require('mcp-tools').setup({
  tools = 'recommended',
  bridge = { python = vim.env.MCP_TOOLS_DEMO_PYTHON },
  review = { tools = { file_edit = 'ask' } },
  on_ready = function()
    was_ready = true
  end,
})

for key, name in pairs({ ['<F7>'] = 'approve', ['<F8>'] = 'deny' }) do
  vim.keymap.set({ 'n', 'i', 't' }, key, ('<Plug>(mcp-tools-%s)'):format(name))
end
vim.keymap.set('n', 'q', '<cmd>qall!<cr>', { desc = 'Leave the demo' })

--- Opens the project. `shop.py` has an unsaved change.
function Demo.start()
  vim.fn.writefile(SAVED, 'shop.py')
  vim.cmd.edit('shop.py')
  api.nvim_buf_set_lines(0, 0, 1, false, { 'TAX = 1.19' })
  local window = api.nvim_open_win(narrator, false, { split = 'below', win = 0, height = NARRATOR_HEIGHT })
  vim.wo[window].number, vim.wo[window].wrap, vim.wo[window].winfixheight = false, true, true
  vim.wo[window].statusline = ' make demo   F7 yes   F8 no   q leaves'
  require('mcp-tools').start()
  return true
end

--- Returns URL and token once the bridge is ready.
function Demo.endpoint()
  return was_ready and require('mcp-tools').endpoint() or vim.NIL
end

--- Shows a text in the window below.
---@param text string
function Demo.tell(text)
  api.nvim_buf_set_lines(narrator, 0, -1, false, vim.split(text, '\n'))
  vim.cmd.redraw()
  return true
end

--- Returns how many questions and reviews wait for the user.
function Demo.waiting()
  local waiting = require('mcp-tools').activity().waiting
  return waiting.approvals + waiting.reviews
end
