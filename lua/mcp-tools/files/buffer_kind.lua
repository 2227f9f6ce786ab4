--- Kind of a buffer: the text of a file, text that has no file yet, or something else that a plugin shows.
---
--- Receives: buffer numbers.
--- Sends: the kind, where the file really is, and whether the person or its name calls it sensitive.
--- Does not know about: projects, who may read what (files/access.lua).

local paths = require('mcp-tools.files.paths')

local api, uv = vim.api, vim.uv

local M = {}

---@alias mcp-tools.BufferKind
---| 'file' it shows the file of its name
---| 'unnamed' it has no file yet
---| 'other' a terminal, a listing, a revision, a file of another machine or user, …

--- Is it the path of a file, and not an address? `/project/sudo:/etc/shadow` is one, too: Neovim takes what has a
--- single slash for a relative path.
---@param name string
local function is_path(name)
  return name:sub(1, 1) == '/' and not name:find('/%a[%w+.-]+:/')
end

--- Whatever is not known to be the text of a file is `other`.
---@param bufnr integer valid
---@return mcp-tools.BufferKind kind
---@return string name
function M.kind(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  if api.nvim_get_option_value('buftype', { buf = bufnr }) ~= '' then
    return 'other', name
  elseif name == '' then
    return 'unnamed', name
  end
  return is_path(name) and 'file' or 'other', name
end

--- Is it loaded, and the text of a file or of a file to be?
---@param bufnr integer valid
---@return boolean
function M.is_text(bufnr)
  return api.nvim_buf_is_loaded(bufnr) and api.nvim_get_option_value('buftype', { buf = bufnr }) == ''
end

--- Did the person say that it is sensitive (`b:sensitive`)?
---@param bufnr integer valid
---@return boolean
function M.is_marked(bufnr)
  local value = vim.fn.getbufvar(bufnr, 'sensitive', false) -- `vim.b` costs the 15-fold
  return value ~= false and value ~= 0 and value ~= vim.NIL
end

--- Is it sensitive by what its name says? That of something else may name a file of a repository's folder.
---@param name string
---@param kind mcp-tools.BufferKind
---@return boolean
function M.is_sensitive_name(name, kind)
  if kind == 'other' then
    return paths.sensitive((name:gsub('/%.git/', '/')))
  end
  return kind == 'file' and (paths.sensitive(name) or paths.sensitive((paths.resolve(name))))
end

--- So long is it believed that a name still leads to the same file, ns.
local FRESH = 2e9
--- At most so long is looked again in one go, ns. Links move seldom, and lists of buffers are long.
local LOOK_AGAIN = 1e6

---@type table<string, { path: string, at: integer }>
local looked, looked_count = {}, 0

---@param name string
---@param now integer
---@param until_ integer
---@return string resolved a moment ago
local function place_of(name, now, until_)
  local known = looked[name]
  if known and (now - known.at < FRESH or uv.hrtime() > until_) then
    return known.path
  end
  looked_count = looked_count + (known and 0 or 1)
  looked[name] = { path = paths.resolve(name), at = now }
  return looked[name].path
end

--- Buffers, loaded or not, that show a file.
---@param path string resolved
---@return integer[]
function M.showing(path)
  local now = uv.hrtime()
  local list, found = api.nvim_list_bufs(), {}
  if looked_count > 2 * #list + 100 then
    looked, looked_count = {}, 0
  end
  for _, bufnr in ipairs(list) do
    local name = api.nvim_buf_get_name(bufnr)
    if name ~= '' and is_path(name) and place_of(name, now, now + LOOK_AGAIN) == path then
      -- Where it leads now counts.
      if M.kind(bufnr) == 'file' and (name == path or paths.resolve(name) == path) then
        table.insert(found, bufnr)
      end
    end
  end
  return found
end

--- Files that the person marked as sensitive in their buffers.
---@return table<string, true> resolved paths
function M.marked()
  local set = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_get_name(bufnr)
    if name ~= '' and M.is_marked(bufnr) then -- the empty path is the working folder
      set[paths.resolve(name)] = true
    end
  end
  return set
end

return M
