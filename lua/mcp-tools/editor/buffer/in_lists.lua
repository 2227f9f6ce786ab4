--- Which buffers the quickfix and location lists of the user refer to: Neovim does not find their files again once such
--- a buffer has been deleted.

local api = vim.api

local M = {}

--- Entries of a list that are looked at; a longer list counts as one that refers to every buffer.
local MAX_ENTRIES = 5000

---@class mcp-tools.ListedBuffers
---@field tick integer changedtick of the list
---@field buffers table<integer, true>? nil: the list is too long

--- By the id of a list, which no other stack has.
---@type table<integer, mcp-tools.ListedBuffers>
local known = {}

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

--- Does any list refer to this buffer?
---@param bufnr integer
---@return boolean
function M.has(bufnr)
  local gets = { vim.fn.getqflist }
  for _, window in ipairs(api.nvim_list_wins()) do
    table.insert(gets, function(what)
      return vim.fn.getloclist(window, what)
    end)
  end
  local before, is_there = known, false
  known = {}
  for _, get in ipairs(gets) do
    for nr = 1, get({ nr = '$' }).nr do
      local list = get({ nr = nr, id = 0, changedtick = 0 })
      local last = known[list.id] or before[list.id]
      if not last or last.tick ~= list.changedtick then
        last = { tick = list.changedtick, buffers = buffers_of(get, list.id) }
      end
      known[list.id] = last
      is_there = is_there or not last.buffers or last.buffers[bufnr] == true
    end
  end
  return is_there
end

return M
