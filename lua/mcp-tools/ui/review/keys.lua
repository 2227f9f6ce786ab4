--- Keys of a review: mapped in the windows that show it while the cursor is in one of them.

local help = require('mcp-tools.ui.window.help')

local api = vim.api

local M = {}

---@class mcp-tools.ReviewAction
---@field [1] string key
---@field [2] fun()
---@field [3] string description
---@field [4]? string label in the legend; nil: the review does not have this action
---@field in_row? boolean the label is in the text of the legend, not in its frame
---@field edits? boolean the key edits text where the user can, so it is not mapped there

---@class mcp-tools.ReviewWindow
---@field window integer
---@field bufnr integer
---@field typed boolean? it shows the proposed text, which the user may edit

---@class mcp-tools.ReviewKeys
---@field windows mcp-tools.ReviewWindow[]
---@field private saved { bufnr: integer, key: string, own: table?, run: fun() }[] `own`: the user's mapping
---@field private group integer
---@field private options table<integer, table<string, any>> the user's options by window
local Keys = {}
Keys.__index = Keys

--- Options with which all of each line can be on the screen.
local OPTIONS = { foldenable = false, wrap = true, conceallevel = 0, scrolloff = 0 }

---@param bufnr integer
---@param key string
---@return table?
local function user_mapping(bufnr, key)
  return vim.iter(api.nvim_buf_get_keymap(bufnr, 'n')):find(function(map)
    return map.lhsraw == vim.keycode(key) or map.lhs == key
  end)
end

--- Returns the window that has the cursor.
---@return mcp-tools.ReviewWindow?
function Keys:here()
  local window = api.nvim_get_current_win()
  return vim.iter(self.windows):find(function(each)
    return each.window == window and api.nvim_win_get_buf(window) == each.bufnr
  end)
end

--- Ends the recording of a macro, as an unmapped `q` does.
local function end_macro()
  local register = vim.fn.reg_recording():lower()
  api.nvim_create_autocmd('RecordingLeave', {
    once = true,
    desc = 'mcp-tools: remove the final q from the macro',
    callback = vim.schedule_wrap(function() -- the register is written after this event
      local keys = vim.fn.getreg(register) --[[@as string]]
      if keys:sub(-1) == 'q' then -- Neovim removes the key that was fed, not the one that was typed
        vim.fn.setreg(register, keys:sub(1, -2), 'v')
      end
    end),
  })
  api.nvim_feedkeys('q', 'n', false)
end

--- Makes the function of `q`, which ends a macro or closes the help first.
---@param leave fun()
---@return fun()
local function leave_key(leave)
  return function()
    if vim.fn.reg_recording() ~= '' then
      end_macro()
    elseif not help.close() then
      leave()
    end
  end
end

--- Restores the user's options of a window, which apply to the buffer in it.
---@param each mcp-tools.ReviewWindow
---@param options table<string, any>
---@return boolean? restored nil: it shows another buffer
local function restore(each, options)
  if api.nvim_win_is_valid(each.window) and api.nvim_win_get_buf(each.window) ~= each.bufnr then
    return nil
  elseif api.nvim_win_is_valid(each.window) then
    api.nvim_win_call(each.window, function()
      for name, value in pairs(options) do
        vim.wo[each.window][0][name] = value
      end
      if vim.fn.foldclosed(vim.fn.line('w0')) ~= -1 then -- before 0.12, drawing lines above it never ends
        vim.fn.winrestview({ topfill = 0 })
      end
    end)
  end
  return true
end

--- Maps the keys.
---@param windows mcp-tools.ReviewWindow[]
---@param actions mcp-tools.ReviewAction[]
---@param entered fun() called when the cursor enters one of the windows
---@param left fun() called when the cursor enters another window
---@return mcp-tools.ReviewKeys
function M.set(windows, actions, entered, left)
  local group = api.nvim_create_augroup('mcp-tools.review.keys', {})
  local self = setmetatable({ windows = windows, saved = {}, group = group, options = {} }, Keys)
  for _, each in ipairs(windows) do
    local list, options = {}, vim.wo[each.window][0]
    self.options[each.window] = {}
    for name, value in pairs(OPTIONS) do
      self.options[each.window][name], options[name] = options[name], value
    end
    local function map(key, run, description, is_listed)
      table.insert(list, is_listed and { lhs = key, description = description } or nil)
      table.insert(self.saved, { bufnr = each.bufnr, key = key, own = user_mapping(each.bufnr, key), run = run })
      vim.keymap.set('n', key, run, { buffer = each.bufnr, nowait = true, desc = 'review: ' .. description })
    end
    for _, action in ipairs(actions) do
      if not (each.typed and action.edits) then
        map(action[1], action[1] == 'q' and leave_key(action[2]) or action[2], action[3], action[4])
      end
    end
    map('?', function()
      help.toggle(list)
    end, 'show the keys', true)
  end
  api.nvim_create_autocmd({ 'WinEnter', 'BufEnter' }, {
    group = group,
    callback = function()
      if self:here() then
        entered()
      else
        left()
      end
    end,
  })
  api.nvim_create_autocmd('WinClosed', { -- Neovim applies the options to the next window of the buffer
    group = group,
    callback = function(args)
      for _, each in ipairs(windows) do
        if each.window == tonumber(args.match) then
          restore(each, self.options[each.window])
        end
      end
    end,
  })
  return self
end

--- Restores the user's mappings and options.
function Keys:remove()
  pcall(api.nvim_del_augroup_by_id, self.group)
  for _, each in ipairs(self.windows) do
    local options = self.options[each.window]
    if not restore(each, options) and api.nvim_buf_is_valid(each.bufnr) then
      api.nvim_create_autocmd('BufWinEnter', {
        buffer = each.bufnr,
        desc = 'mcp-tools: restore the options of a buffer that was replaced in its window during a review',
        callback = function()
          return restore(each, options)
        end,
      })
    end
  end
  for _, each in ipairs(self.saved) do
    local now = api.nvim_buf_is_valid(each.bufnr) and user_mapping(each.bufnr, each.key)
    if now and now.callback == each.run then -- otherwise another one was set meanwhile
      pcall(vim.keymap.del, 'n', each.key, { buffer = each.bufnr })
      if each.own then
        api.nvim_buf_call(each.bufnr, function()
          vim.fn.mapset('n', false, each.own)
        end)
      end
    end
  end
end

return M
