--- Help on `?`: a float with the keys of a window of ours, which never has the cursor and is closed by the next key.

local Rows = require('mcp-tools.ui.window.rows')
local highlights = require('mcp-tools.ui.window.highlights')
local render = require('mcp-tools.ui.window.render')

local api = vim.api

local M = {}

--- Before 0.11 a key that closes the help cannot be kept from doing its own work.
local SWALLOWS = vim.fn.has('nvim-0.11') == 1
local TITLE, END = ' keys ', SWALLOWS and 'any key closes this' or 'q closes this'
--- Above every other window of ours.
local ZINDEX = 70

---@class mcp-tools.HelpKey
---@field lhs string
---@field description string

--- Those that every window has stand at the end.
local LAST = { ['<Esc>'] = 1, q = 2, ['?'] = 3 }

--- Keys with what they do; those that do the same stand together.
---@param keys mcp-tools.HelpKey[]
---@return mcp-tools.HelpKey[]
local function grouped(keys)
  local list, by_description = {}, {}
  keys = vim.list_slice(keys)
  table.sort(keys, function(a, b)
    local one, other = LAST[a.lhs] or 0, LAST[b.lhs] or 0
    if one ~= other then
      return one < other
    end
    return a.lhs:lower() .. a.lhs < b.lhs:lower() .. b.lhs
  end)
  for _, key in ipairs(keys) do
    local known = by_description[key.description]
    if known then
      known.lhs = known.lhs .. ' ' .. key.lhs
    else
      by_description[key.description] = { lhs = key.lhs, description = key.description }
      table.insert(list, by_description[key.description])
    end
  end
  return list
end

---@type { window: integer, buffer: integer, group: integer, keys: integer }?
local shown

--- Closes the help.
---@return boolean closed false when there was none
function M.close()
  local old = shown
  if not old then
    return false
  end
  shown = nil
  vim.on_key(nil, old.keys)
  api.nvim_del_augroup_by_id(old.group)
  pcall(api.nvim_win_close, old.window, true)
  pcall(api.nvim_buf_delete, old.buffer, { force = true })
  return true
end

---@param rows mcp-tools.Rows
---@return vim.api.keyset.win_config
local function place(rows)
  local width = api.nvim_strwidth(END) + 2
  for _, row in ipairs(rows.list) do
    width = math.max(width, api.nvim_strwidth(row.text) + 2)
  end
  width = math.min(width, rows.width)
  return render.centered(width, math.max(1, math.min(#rows.list, vim.o.lines - vim.o.cmdheight - 3)))
end

--- Shows the keys, or closes them when they are there.
---@param keys mcp-tools.HelpKey[]
function M.toggle(keys)
  if M.close() then
    return
  end
  local rows = Rows.new(math.max(10, vim.o.columns - 4))
  rows:table(vim.tbl_map(function(key)
    return { cells = { { key.lhs, 'Key' }, key.description } }
  end, grouped(keys)))
  local buffer = api.nvim_create_buf(false, true)
  render.update(buffer, rows.list)
  local config = vim.tbl_extend('error', place(rows), {
    style = 'minimal',
    border = 'rounded',
    title = { render.chunk(TITLE, 'Title') },
    footer = { render.chunk((' %s '):format(END), 'Dim') },
    focusable = false,
    noautocmd = true,
    zindex = ZINDEX,
  })
  local window = api.nvim_open_win(buffer, false, config)
  render.set_options(window, { winhighlight = highlights.winhighlight(), wrap = false })
  local group = api.nvim_create_augroup('mcp-tools-help', {})
  local own = { window = window, buffer = buffer, group = group }
  local close_later = vim.schedule_wrap(function()
    if shown == own then
      M.close()
    end
  end)
  local state ---@type 'swallowing'|'over'|nil
  own.keys = vim.on_key(function(_, typed)
    local is_typed = typed ~= nil and typed ~= ''
    if is_typed and not state then
      state = 'swallowing'
      close_later()
    elseif is_typed then
      state = 'over' -- keys that follow at once are for the window behind
    end
    -- What is not typed belongs to the key: of a mapping to a Lua function 0.11 gets digits and <CR> after it.
    return SWALLOWS and state == 'swallowing' and '' or nil
  end)
  shown = own
  local gone = { 'WinLeave', 'WinClosed', 'BufLeave', 'VimResized' }
  api.nvim_create_autocmd(gone, { group = group, callback = close_later })
end

--- Gives a buffer of ours the key `?`; its other keys are those that it has when that is pressed.
---@param buffer integer
function M.attach(buffer)
  vim.keymap.set('n', '?', function()
    local keys = {}
    for _, map in ipairs(api.nvim_buf_get_keymap(buffer, 'n')) do
      if map.desc then
        local lhs = map.lhs == ' ' and '<Space>' or map.lhs:gsub('<lt>', '<')
        table.insert(keys, { lhs = lhs, description = map.desc })
      end
    end
    M.toggle(keys)
  end, { buffer = buffer, nowait = true, desc = 'show the keys' })
end

return M
