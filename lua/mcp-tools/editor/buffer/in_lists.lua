--- Finds out which buffers the user's quickfix and location lists refer to: if such a buffer is deleted, Neovim cannot
--- open its entries any more.

local api = vim.api

local M = {}

--- Maximum number of entries checked; a longer list is assumed to refer to every buffer.
local MAX_ENTRIES = 5000

---@class mcp-tools.ListedBuffers
---@field tick integer `changedtick` of the list
---@field buffers table<integer, true>? nil: the list is too long

--- By list id, which is unique across stacks.
---@type table<integer, mcp-tools.ListedBuffers>
local cache = {}

---@param get fun(what: table): table
---@param id integer
---@return table<integer, true>?
local function buffers_of(get, id)
  if get({ id = id, size = 0 }).size > MAX_ENTRIES then
    return nil
  end
  local found = {}
  for _, item in ipairs(get({ id = id, items = 0 }).items) do
    found[item.bufnr] = true
  end
  return found
end

--- Returns whether any list refers to a buffer.
---@param bufnr integer
---@return boolean
function M.has(bufnr)
  local gets = { vim.fn.getqflist }
  for _, window in ipairs(api.nvim_list_wins()) do
    table.insert(gets, function(what)
      return vim.fn.getloclist(window, what)
    end)
  end
  local previous, is_referenced = cache, false
  cache = {}
  for _, get in ipairs(gets) do
    for nr = 1, get({ nr = '$' }).nr do
      local list = get({ nr = nr, id = 0, changedtick = 0 })
      local entry = cache[list.id] or previous[list.id]
      if not entry or entry.tick ~= list.changedtick then
        entry = { tick = list.changedtick, buffers = buffers_of(get, list.id) }
      end
      cache[list.id] = entry
      is_referenced = is_referenced or not entry.buffers or entry.buffers[bufnr] == true
    end
  end
  return is_referenced
end

return M
