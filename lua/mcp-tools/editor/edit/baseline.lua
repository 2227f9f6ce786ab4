--- Baseline: the text that a buffer had before a client's session first changed it.

local api = vim.api

local M = {}

--- Of so many bytes in all; the oldest texts give way.
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
  for i, each in ipairs(kept) do
    if each.key == key then
      return each, i
    end
  end
end

---@param i integer
local function drop(i)
  bytes_kept = bytes_kept - kept[i].bytes
  table.remove(kept, i)
end

--- Remembers the lines, unless the session has changed the buffer before.
---@param session string?
---@param bufnr integer
---@param lines string[] not changed any more
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
    desc = 'mcp-tools: the text before a session changed it goes with its buffer',
    callback = function()
      local _, i = find(key)
      if i then
        drop(i)
      end
    end,
  })
end

--- The lines before the session's first change; nil when it has not changed the buffer, or they are not kept.
---@param session string?
---@param bufnr integer
---@return string[]?
function M.of(session, bufnr)
  local found = find(key_of(session, bufnr))
  return found and found.lines
end

return M
