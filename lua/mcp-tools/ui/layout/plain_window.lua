--- Options of a window that shows text of ours: what the person has for their own texts counts not there.
---
--- Receives: a window, with the buffer that it shows.
--- Sends: options of that window for that buffer alone.
--- Does not know about: what it shows.
---
--- Folds above all: text of a stranger with `{{{` in it would hide the rest of itself from who folds by markers.

local api = vim.api

local OPTIONS = {
  foldenable = false,
  number = false,
  relativenumber = false,
  statuscolumn = '',
  signcolumn = 'no',
  colorcolumn = '',
  list = false,
  spell = false,
}

---@param window integer
return function(window)
  local where = { win = window, scope = 'local' }
  for name, value in pairs(OPTIONS) do
    if api.nvim_get_option_value(name, where) ~= value then -- else `OptionSet` would be for nothing
      api.nvim_set_option_value(name, value, where)
    end
  end
end
