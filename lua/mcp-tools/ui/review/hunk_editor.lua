--- Small window in which the user edits the new text of a hunk.

local help = require('mcp-tools.ui.window.help')
local highlighting = require('mcp-tools.editor.buffer.highlighting')
local inline = require('mcp-tools.ui.review.inline')
local notify = require('mcp-tools.notify')
local render = require('mcp-tools.ui.window.render')
local windows = require('mcp-tools.editor.user.windows')

local api = vim.api

local M = {}

local MAX_HEIGHT = 15

--- Opens the window below the current one.
---@param lines string[]
---@param filetype string
---@param written fun(lines: string[]): boolean called by `:w`; whether the text was used
---@param closed fun() called when the window was closed
function M.open(lines, filetype, written, closed)
  local buffer = api.nvim_create_buf(false, true)
  vim.bo[buffer].buftype = 'acwrite'
  vim.bo[buffer].bufhidden = 'wipe'
  api.nvim_buf_set_name(buffer, ('mcp-tools://hunk/%d'):format(buffer))
  inline.set_first_text(buffer, #lines > 0 and lines or { '' })
  highlighting.set_filetype(buffer, filetype)
  vim.bo[buffer].modified = false
  local height = math.max(3, math.min(#lines + 1, MAX_HEIGHT))
  local window = api.nvim_open_win(buffer, true, { split = 'below', win = 0, height = height })
  vim.wo[window][0].foldenable = false -- show all of the hunk
  vim.wo[window][0].winbar = render.winbar('Edit this hunk', {
    { ':wq', 'uses it' },
    { ':q!', 'discards it' },
  })
  vim.keymap.set('n', 'q', function()
    if help.close() then
      return
    end
    local ok, err = windows.close(window) -- fails if the text is unsaved
    if not ok and not vim.bo[buffer].modified then
      vim.cmd.enew() -- it was the last window
    elseif not ok then
      notify.warn(tostring(err):match('E%d+:.*') or tostring(err))
    end
  end, { buffer = buffer, nowait = true, desc = 'close, unless there are unsaved edits' })
  help.attach(buffer)
  api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buffer,
    desc = 'mcp-tools: use the written text for the hunk',
    callback = function()
      local now = api.nvim_buf_get_lines(buffer, 0, -1, false)
      vim.bo[buffer].modified = not written(#now == 1 and now[1] == '' and {} or now)
    end,
  })
  api.nvim_create_autocmd('BufWipeout', { buffer = buffer, once = true, callback = vim.schedule_wrap(closed) })
end

return M
