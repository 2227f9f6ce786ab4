-- Receives lines. Sends them to a window at the bottom that `q` closes; one window per name, shown again in place.
-- Does not know about what they say. Used instead of messages of several lines, which would wait for a key and keep the
-- bridge waiting with them.

local M = {}

local MAX_HEIGHT = 15

---@class mcp-tools.ScratchOpts
---@field filetype? string
---@field at_end? boolean cursor on the last line

---@param lines string[]
---@return string[]
local function single_lines(lines)
  local out = {}
  for _, line in ipairs(lines) do
    vim.list_extend(out, vim.split(line, '\n', { plain = true }))
  end
  return out
end

---@param name string
---@return integer buffer
local function buffer_of(name)
  local full = 'mcp-tools://' .. name
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(buffer) == full then
      return buffer
    end
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, full)
  vim.bo[buffer].bufhidden = 'wipe'
  vim.keymap.set('n', 'q', '<cmd>close<cr>', { buffer = buffer, nowait = true, desc = 'close' })
  return buffer
end

--- Shows `lines` under `name`.
---@param name string
---@param lines string[]
---@param opts? mcp-tools.ScratchOpts
---@return integer buffer
function M.show(name, lines, opts)
  opts = opts or {}
  lines = single_lines(lines)
  local buffer = buffer_of(name)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  if opts.filetype then
    vim.bo[buffer].filetype = opts.filetype
  end
  local window = vim.fn.bufwinid(buffer)
  if window == -1 then
    local height = math.max(1, math.min(#lines, MAX_HEIGHT))
    window = vim.api.nvim_open_win(buffer, true, { split = 'below', win = -1, height = height })
    vim.wo[window].number, vim.wo[window].relativenumber, vim.wo[window].wrap = false, false, false
    vim.wo[window].winfixheight = true
  end
  if opts.at_end then
    vim.api.nvim_win_set_cursor(window, { #lines, 0 })
  end
  return buffer
end

return M
