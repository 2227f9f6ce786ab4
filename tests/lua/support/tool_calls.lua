-- Calls of bundled tools on the way of every host, for specs about what tools do.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local t = require('helpers')

local M = {}

--- Offers groups and tools; what would ask is let through.
---@param tools string[]
function M.offer(tools)
  config.setup({ tools = tools, approval = { rule = t.returns('allow') } })
  core.get()
end

--- Takes them back.
function M.close()
  config.reset()
  core.get()
end

---@return any result, mcp-tools.Error? err
function M.call(name, args)
  local result, err, ended
  require('mcp-tools').call(name, args or {}, function(...)
    result, err = ...
    ended = true
  end)
  t.wait(function() return ended end, 10000, name)
  return result, err
end

--- The error that a call ends with.
---@return mcp-tools.Error
function M.fails(name, args)
  local result, err = M.call(name, args)
  t.eq(nil, result)
  return t.ok(err)
end

--- What a person has before them, and no tool may change: windows, cursors, mode, registers, search, jumps.
---@return table
function M.view()
  vim.cmd.redraw() -- without a screen the first line of a window is not settled before
  local windows = {}
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    windows[window] = {
      vim.api.nvim_win_get_buf(window),
      vim.api.nvim_win_get_cursor(window),
      vim.fn.getjumplist(window),
      vim.api.nvim_win_call(window, vim.fn.winsaveview),
    }
  end
  local registers = {}
  for name in ([["-/:.0123456789abc]]):gmatch('.') do
    registers[name] = { vim.fn.getreg(name), vim.fn.getregtype(name) }
  end
  return {
    windows = windows,
    current = vim.api.nvim_get_current_win(),
    tab = vim.api.nvim_get_current_tabpage(),
    mode = vim.api.nvim_get_mode(),
    alternate = vim.fn.bufnr('#'),
    registers = registers,
    search = { vim.v.searchforward, vim.fn.searchcount({ maxcount = 0 }), vim.v.hlsearch },
    buffers = vim.api.nvim_list_bufs(),
    messages = vim.api.nvim_exec2('messages', { output = true }).output,
    errmsg = vim.v.errmsg,
  }
end

return M
