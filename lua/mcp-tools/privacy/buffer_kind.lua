--- Kinds of buffers (file, unnamed, other), and the buffers that show a file.

local paths = require('mcp-tools.files.paths')
local sensitive = require('mcp-tools.privacy.sensitive')

local api, uv = vim.api, vim.uv

local M = {}

---@alias mcp-tools.BufferKind
---| 'file' the file of its name
---| 'unnamed' no file yet
---| 'other' a terminal, directory listing, git revision, remote file, …

--- Returns whether a name is a path and not a URI. `/project/sudo:/etc/shadow` is a URI: Neovim treats one with a
--- single slash as a relative path.
---@param name string
local function is_path(name)
  return name:sub(1, 1) == '/' and not name:find('/%a[%w+.-]+:/')
end

--- Returns the kind of a buffer; everything that is not known to be a file is `other`.
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

--- Returns the resolved path of a buffer's file, nil for other kinds.
---@param bufnr integer valid
---@return string?
function M.path(bufnr)
  local kind, name = M.kind(bufnr)
  return kind == 'file' and (paths.resolve(name)) or nil
end

--- Returns whether a buffer is loaded and has an empty 'buftype'.
---@param bufnr integer valid
---@return boolean
function M.is_text(bufnr)
  return api.nvim_buf_is_loaded(bufnr) and api.nvim_get_option_value('buftype', { buf = bufnr }) == ''
end

--- Returns whether the user marked a buffer as sensitive (`b:sensitive`).
---@param bufnr integer valid
---@return boolean
function M.is_marked(bufnr)
  local value = vim.fn.getbufvar(bufnr, 'sensitive', false) -- `vim.b` is 15 times slower
  return value ~= false and value ~= 0 and value ~= vim.NIL
end

--- Returns whether a buffer's name is sensitive. Names of special buffers may contain a path in a `.git` directory.
---@param name string
---@param kind mcp-tools.BufferKind
---@return boolean
function M.is_sensitive_name(name, kind)
  if kind == 'other' then
    return sensitive.is_sensitive((name:gsub('/%.git/', '/')))
  end
  return kind == 'file' and (sensitive.is_sensitive(name) or sensitive.is_sensitive((paths.resolve(name))))
end

--- Lifetime of a resolved name in ns.
local FRESH = 2e9
--- Maximum time to resolve expired names in one pass, in ns. Links rarely change, and lists of buffers are long.
local MAX_RESOLVE = 1e6
--- Lifetime of the index of loaded buffers in ns.
local INDEX_LIFETIME = 20e6

---@type table<string, { path: string|false, at: integer }> false: not a path
local resolved, resolved_count = {}, 0

--- Resolves a name. Most new names share few directories, each of which is resolved once.
---@param name string
---@param directories table<string, string|false> filled in
---@return string
local function resolve(name, directories)
  local directory, last = name:match('^(/.+)/([^/]+)$')
  if not directory or last == '.' or last == '..' then
    return (paths.resolve(name))
  end
  if directories[directory] == nil then
    local path, bad = paths.resolve(directory) -- it may be missing, too
    directories[directory] = not bad and path
  end
  -- Only for a missing file: an existing one may be a link or have another spelling.
  if directories[directory] and #name <= paths.MAX_PATH and not uv.fs_lstat(name) then
    return (directories[directory] == '/' and '' or directories[directory]) .. '/' .. last
  end
  return (paths.resolve(name))
end

--- Calls a function with each buffer named like a file and its (recently) resolved path.
---@param list integer[]
---@param found fun(bufnr: integer, path: string)
local function each_named(list, found)
  local now, directories, spent = uv.hrtime(), {}, false
  for _, bufnr in ipairs(list) do
    local name = api.nvim_buf_get_name(bufnr)
    local entry = resolved[name]
    if not entry then
      resolved_count = resolved_count + 1
      entry = { path = is_path(name) and resolve(name, directories), at = now }
      resolved[name] = entry
    elseif entry.path and not spent and now - entry.at >= FRESH then
      entry.path, entry.at = paths.resolve(name), now
      spent = uv.hrtime() - now > MAX_RESOLVE
    end
    if entry.path then
      found(bufnr, entry.path)
    end
  end
end

--- Returns all buffers and bounds the cache.
---@return integer[]
local function buffers()
  local list = api.nvim_list_bufs()
  if resolved_count > 2 * #list + 100 then
    resolved, resolved_count = {}, 0
  end
  return list
end

--- Returns whether a buffer shows a file, resolving its name again.
---@param bufnr integer valid
---@param path string resolved
local function shows(bufnr, path)
  local kind, name = M.kind(bufnr)
  return kind == 'file' and (name == path or paths.resolve(name) == path)
end

--- Returns the buffers, loaded or not, that show a file.
---@param path string resolved
---@return integer[]
function M.showing(path)
  local found = {}
  each_named(buffers(), function(bufnr, at)
    if at == path and shows(bufnr, path) then
      table.insert(found, bufnr)
    end
  end)
  return found
end

--- Returns a function that finds the loaded buffer of a file, with an index for many files.
---@return fun(path: string): integer? from a resolved path to its loaded buffer
function M.loaded()
  local by_path, indexed_at = {}, nil
  return function(path)
    local now = uv.hrtime()
    if not indexed_at or now - indexed_at > INDEX_LIFETIME then
      by_path, indexed_at = {}, now
      each_named(vim.tbl_filter(api.nvim_buf_is_loaded, buffers()), function(bufnr, at)
        by_path[at] = by_path[at] or {}
        table.insert(by_path[at], bufnr)
      end)
    end
    for _, bufnr in ipairs(by_path[path] or {}) do
      if api.nvim_buf_is_loaded(bufnr) and shows(bufnr, path) then
        return bufnr
      end
    end
  end
end

--- Returns the files that the user marked as sensitive in their buffers.
---@return table<string, true> resolved paths
function M.marked()
  local set = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local name = M.is_marked(bufnr) and api.nvim_buf_get_name(bufnr) or ''
    if name ~= '' then -- the empty path would be the working directory
      set[paths.resolve(name)] = true
    end
  end
  return set
end

return M
