--- The command line of the editor: since when the person has been typing a command.

local M = {}

local since ---@type integer? ns
local watched = false

local function in_command_line()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == 'c'
end

--- Begins to watch; once is enough.
function M.watch()
  if watched then
    return
  end
  watched = true
  if in_command_line() then
    since = 0
  end
  local group = vim.api.nvim_create_augroup('mcp-tools.approval', {})
  vim.api.nvim_create_autocmd('CmdlineEnter', {
    group = group,
    callback = function()
      since = vim.uv.hrtime()
    end,
  })
  vim.api.nvim_create_autocmd('CmdlineLeave', {
    group = group,
    callback = function()
      vim.schedule(function() -- the command runs before that
        if not in_command_line() then
          since = nil
        end
      end)
    end,
  })
end

--- Was the command that is being typed, or runs now, begun before that time?
---@param time integer ns
---@return boolean
function M.began_before(time)
  return since ~= nil and since < time
end

--- The person was told to look: what is typed counts for what they see now.
function M.forget()
  since = nil
end

return M
