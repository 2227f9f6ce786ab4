--- Baselines: the text of a buffer before a client's session first changed it.

local api = vim.api

local M = {}

--- Maximum total size in bytes; the oldest baselines are dropped first.
local MAX_BYTES = 32 * 1024 * 1024

---@class mcp-tools.Baseline
---@field key string
---@field lines string[]
---@field bytes integer

---@type mcp-tools.Baseline[] oldest first
local kept = {}
local bytes_kept = 0

---@param session string?
---@param bufnr integer
local function key_of(session, bufnr)
  return ('%d %s'):format(bufnr, session or '')
end

---@param key string
---@return mcp-tools.Baseline?, integer?
local function find(key)
  for i, entry in ipairs(kept) do
    if entry.key == key then
      return entry, i
    end
  end
end

---@param i integer
local function drop(i)
  bytes_kept = bytes_kept - kept[i].bytes
  table.remove(kept, i)
end

--- Keeps the lines, unless the session has changed the buffer before.
---@param session string?
---@param bufnr integer
---@param lines string[] must not be modified afterwards
function M.note(session, bufnr, lines)
  local key = key_of(session, bufnr)
  if find(key) then
    return
  end
  local bytes = #lines * 16
  for _, line in ipairs(lines) do
    bytes = bytes + #line
  end
  if bytes > MAX_BYTES then
    return
  end
  table.insert(kept, { key = key, lines = lines, bytes = bytes })
  bytes_kept = bytes_kept + bytes
  while bytes_kept > MAX_BYTES do
    drop(1)
  end
  api.nvim_create_autocmd('BufWipeout', {
    buffer = bufnr,
    once = true,
    desc = 'mcp-tools: drop the baseline of a deleted buffer',
    callback = function()
      local _, i = find(key)
      if i then
        drop(i)
      end
    end,
  })
end

--- Returns the lines before the session's first change, or nil if there was none or they are no longer kept.
---@param session string?
---@param bufnr integer
---@return string[]?
function M.of(session, bufnr)
  local found = find(key_of(session, bufnr))
  return found and found.lines
end

return M
