--- Keys that lead from where the person is to a window of ours, or to its commands.

local api = vim.api

local M = {}

--- What leads from a mode to a command.
local TO_COMMANDS = { i = '<Esc>', R = '<Esc>', v = '<Esc>', V = '<Esc>', ['\22'] = '<Esc>', s = '<Esc>' }
TO_COMMANDS.t = [[<C-\><C-N>]]

--- The keys before a command, and the mode as mappings know it.
---@return string lead
---@return string map_mode as `nvim_get_keymap` takes it
function M.lead()
  local mode = api.nvim_get_mode().mode:sub(1, 1)
  local lead = TO_COMMANDS[mode] or ''
  return lead, mode == 'R' and 'i' or mode:match('[it]') or (lead ~= '' and 'v' or 'n')
end

--- The key that the person has mapped to something of ours in a mode.
---@param map_mode string
---@param name string of `<Plug>(mcp-tools-NAME)`
---@return string?
function M.mapped(map_mode, name)
  local plug = ('<plug>(mcp-tools-%s)'):format(name)
  for _, maps in ipairs({ api.nvim_buf_get_keymap(0, map_mode), api.nvim_get_keymap(map_mode) }) do
    for _, map in ipairs(maps) do
      if map.rhs and map.rhs:lower() == plug then
        return map.lhs
      end
    end
  end
end

--- Does one `CTRL-W w` lead into the window?
---@param window integer
---@return boolean
function M.is_next(window)
  local list, here = api.nvim_tabpage_list_wins(0), api.nvim_get_current_win()
  local at = 0
  for i, each in ipairs(list) do
    at = each == here and i or at
  end
  for i = 1, #list do
    local each = list[(at + i - 1) % #list + 1]
    if api.nvim_win_get_config(each).focusable then
      return each == window
    end
  end
  return false
end

return M
