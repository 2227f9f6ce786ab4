--- Keys of a review, in one window, for as long as the person is in it.
---
--- Receives: a window that the person has gone to for the review; what each key does.
--- Sends: mappings of its buffer; those of the person are back when the window is left.
--- Does not know about: reviews.

local api = vim.api

local M = {}

---@class mcp-tools.ReviewKeys
---@field window integer
---@field bufnr integer
---@field private saved table<string, table|false>
---@field private group integer
local Keys = {}
Keys.__index = Keys

---@param bufnr integer
---@param key string
---@return table|false
local function own_of(bufnr, key)
  return vim.iter(api.nvim_buf_get_keymap(bufnr, 'n')):find(function(map)
    return map.lhsraw == vim.keycode(key) or map.lhs == key
  end) or false
end

--- Sets the keys in the current window.
---@param actions table<string, { [1]: fun(), [2]: string }> key → what it does, description
---@param left fun() the window was left, or shows something else
---@return mcp-tools.ReviewKeys
function M.set(actions, left)
  local self = setmetatable({
    window = api.nvim_get_current_win(),
    bufnr = api.nvim_get_current_buf(),
    saved = {},
    group = api.nvim_create_augroup('mcp-tools.review.keys', {}),
  }, Keys)
  for key, action in pairs(actions) do
    self.saved[key] = own_of(self.bufnr, key)
    vim.keymap.set('n', key, action[1], { buffer = self.bufnr, nowait = true, desc = 'review: ' .. action[2] })
  end
  api.nvim_create_autocmd({ 'WinLeave', 'BufLeave' }, {
    group = self.group,
    buffer = self.bufnr,
    callback = function()
      if api.nvim_get_current_win() == self.window then
        left()
      end
    end,
  })
  return self
end

--- Puts the person's own keys back.
function Keys:remove()
  pcall(api.nvim_del_augroup_by_id, self.group)
  if not api.nvim_buf_is_valid(self.bufnr) then
    return
  end
  api.nvim_buf_call(self.bufnr, function()
    for key, own in pairs(self.saved) do
      pcall(vim.keymap.del, 'n', key, { buffer = self.bufnr })
      if own then
        vim.fn.mapset('n', false, own)
      end
    end
  end)
end

return M
