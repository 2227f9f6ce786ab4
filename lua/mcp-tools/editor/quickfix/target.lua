--- Which quickfix or location list a call means.
---
--- Receives: `list` and `window` arguments.
--- Sends: the list, or an error value.
--- Does not know about: entries.

local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')

local M = {}

--- The window in which the person has the current file.
---@return integer
local function current_window()
  local bufnr, here = buffers.current(), vim.api.nvim_get_current_win()
  if not bufnr or vim.api.nvim_win_get_buf(here) == bufnr then
    return here
  end
  return vim.fn.win_findbuf(bufnr)[1] or here
end

--- The list that arguments name.
---@param args { list: 'quickfix'|'location', window: integer?, nr: integer? }
---@return mcp-tools.QuickfixList?
---@return mcp-tools.Error? err
function M.find(args)
  if args.list == 'quickfix' then
    if args.window then
      return nil, errors.new('validation_error', 'window: only location lists belong to a window')
    end
    return { nr = args.nr }
  end
  local window = args.window or current_window()
  if window ~= 0 and not vim.api.nvim_win_is_valid(window) then
    return nil, errors.new('not_found', ('window: there is no window %d; editor_state names them'):format(window))
  end
  return { window = window, nr = args.nr }
end

return M
