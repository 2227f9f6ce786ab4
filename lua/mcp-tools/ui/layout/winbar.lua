--- The line above a window of ours that has no frame: its title, and at the right its keys.
---
--- Receives: a title; keys with a word for each.
--- Sends: a value for the option 'winbar'.
--- Does not know about: windows, what the keys do.

local highlights = require('mcp-tools.ui.layout.highlights')

local M = {}

---@param text string
---@param name string of its group
---@return string
local function part(text, name)
  return ('%%#%s#%s%%*'):format(highlights.group(name), (text:gsub('%%', '%%%%')))
end

--- The line. Where there is no room for all, the title is cut.
---@param title string
---@param keys? { [1]: string, [2]: string }[] keys, and what they do; `q` and `?` come after them
---@param q? string what `q` does; it closes when left out
---@return string
function M.text(title, keys, q)
  local list = {}
  for _, key in ipairs(vim.list_extend(vim.list_slice(keys or {}), { { 'q', q or 'close' }, { '?', 'keys' } })) do
    table.insert(list, part(key[1], 'Key') .. ' ' .. part(key[2], 'Dim'))
  end
  return ('%%< %s%%= %s '):format(part(title, 'Title'), table.concat(list, '  '))
end

return M
