--- A small window in which the person writes what one hunk is to become.

local first_text = require('mcp-tools.ui.review.first_text')
local help = require('mcp-tools.ui.window.help')
local notify = require('mcp-tools.notify')
local render = require('mcp-tools.ui.window.render')

local api = vim.api

local M = {}

local MAX_HEIGHT = 15

--- Opens it below the current window.
---@param lines string[]
---@param filetype string
---@param written fun(lines: string[])
---@param closed fun() the window is gone
function M.open(lines, filetype, written, closed)
  local buffer = api.nvim_create_buf(false, true)
  vim.bo[buffer].buftype = 'acwrite'
  vim.bo[buffer].bufhidden = 'wipe'
  api.nvim_buf_set_name(buffer, ('mcp-tools://hunk/%d'):format(buffer))
  first_text(buffer, #lines > 0 and lines or { '' })
  vim.bo[buffer].filetype = filetype
  vim.bo[buffer].modified = false
  local height = math.max(3, math.min(#lines + 1, MAX_HEIGHT))
  local window = api.nvim_open_win(buffer, true, { split = 'below', win = 0, height = height })
  vim.wo[window][0].foldenable = false -- nobody takes what they have not seen
  vim.wo[window][0].winbar = render.winbar('what this hunk is to become', {
    { ':wq', 'takes it' },
    { ':q!', 'leaves it' },
  })
  vim.keymap.set('n', 'q', function()
    if help.close() then
      return
    end
    local ok, err = pcall(vim.cmd.close) -- what was written and not taken is not lost by one key
    if not ok and not vim.bo[buffer].modified then
      vim.cmd.enew() -- it was the last window
    elseif not ok then
      notify.warn(tostring(err):match('E%d+:.*') or tostring(err))
    end
  end, { buffer = buffer, nowait = true, desc = 'leave the hunk as it is; what was typed keeps it open' })
  vim.keymap.set('n', '?', function()
    help.toggle({
      { lhs = ':w', description = 'the hunk becomes this' },
      { lhs = ':wq', description = 'the same, and close' },
      { lhs = ':q!', description = 'close, the hunk stays as it was' },
      { lhs = 'q', description = 'close, unless something was typed' },
      { lhs = '?', description = 'show the keys' },
    })
  end, { buffer = buffer, nowait = true, desc = 'show the keys' })
  api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buffer,
    desc = 'mcp-tools: the hunk is what was written',
    callback = function()
      vim.bo[buffer].modified = false
      local now = api.nvim_buf_get_lines(buffer, 0, -1, false)
      written(#now == 1 and now[1] == '' and {} or now)
    end,
  })
  api.nvim_create_autocmd('BufWipeout', { buffer = buffer, once = true, callback = vim.schedule_wrap(closed) })
end

return M
