--- Key help (`?`): a float that lists the keys of a window. It never has the cursor, and the next key closes it.

local Rows = require('mcp-tools.ui.window.rows')
local render = require('mcp-tools.ui.window.render')

local api = vim.api

local M = {}

--- Before 0.11 the key that closes the help cannot be swallowed.
local SWALLOWS = vim.fn.has('nvim-0.11') == 1
local TITLE, END = ' keys ', SWALLOWS and 'any key closes this' or 'q closes this'
--- Above every other window of the plugin.
local ZINDEX = 70

---@class mcp-tools.HelpKey
---@field lhs string
---@field description string

--- Common keys come last.
local LAST = { ['<Esc>'] = 2, q = 3, ['?'] = 4 }

--- Joins keys with the same description.
---@param keys mcp-tools.HelpKey[]
---@return mcp-tools.HelpKey[]
local function grouped(keys)
  local list, by_description = {}, {}
  for _, key in ipairs(keys) do
    local same = by_description[key.description]
    if same then
      same.lhs = same.lhs .. ' ' .. key.lhs
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
---@return boolean closed false if it was not open
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

--- Shows the help, or closes it if it is open.
---@param keys mcp-tools.HelpKey[] listed in this order
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
  render.set_options(window, { winhighlight = render.winhighlight(), wrap = false })
  local group = api.nvim_create_augroup('mcp-tools-help', {})
  local own = { window = window, buffer = buffer, group = group }
  local close_later = vim.schedule_wrap(function()
    if shown == own then
      M.close()
    end
  end)
  local state ---@type 'swallowing'|'passing'|nil
  own.keys = vim.on_key(function(_, typed)
    local is_typed = typed ~= nil and typed ~= ''
    if is_typed and not state then
      state = 'swallowing'
      close_later()
    elseif is_typed then
      state = 'passing' -- keys that follow at once are for the window behind
    end
    -- Untyped keys belong to the same key: 0.11 reports a mapping to a Lua function as several.
    return SWALLOWS and state == 'swallowing' and '' or nil
  end)
  shown = own
  local gone = { 'WinLeave', 'WinClosed', 'BufLeave', 'VimResized' }
  api.nvim_create_autocmd(gone, { group = group, callback = close_later })
end

--- Maps `?` in a buffer to the help, which lists the buffer's mappings that have a description.
---@param buffer integer
---@param order? string[] keys that come first; default: all are sorted by name
function M.attach(buffer, order)
  local rank = {} ---@type table<string, integer>
  for i, lhs in ipairs(order or {}) do
    rank[lhs] = i - #order
  end
  vim.keymap.set('n', '?', function()
    local keys = {}
    for _, map in ipairs(api.nvim_buf_get_keymap(buffer, 'n')) do
      if map.desc then
        local lhs = map.lhs == ' ' and '<Space>' or map.lhs:gsub('<lt>', '<')
        table.insert(keys, { lhs = lhs, description = map.desc })
      end
    end
    table.sort(keys, function(a, b)
      local one, other = rank[a.lhs] or LAST[a.lhs] or 1, rank[b.lhs] or LAST[b.lhs] or 1
      if one ~= other then
        return one < other
      end
      return a.lhs:lower() .. a.lhs < b.lhs:lower() .. b.lhs
    end)
    M.toggle(keys)
  end, { buffer = buffer, nowait = true, desc = 'show the keys' })
end

return M
