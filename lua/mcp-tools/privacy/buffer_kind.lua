--- Kind of a buffer: the text of a file, text that has no file yet, or something else that a plugin shows.

local paths = require('mcp-tools.files.paths')
local sensitive = require('mcp-tools.privacy.sensitive')

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
    return sensitive.is_sensitive((name:gsub('/%.git/', '/')))
  end
  return kind == 'file' and (sensitive.is_sensitive(name) or sensitive.is_sensitive((paths.resolve(name))))
end

--- So long is it believed that a name still leads to the same file, ns.
local FRESH = 2e9
--- At most so long is looked again in one go, ns. Links move seldom, and lists of buffers are long.
local LOOK_AGAIN = 1e6
--- So long many questions in a row are answered from one look at all buffers, ns.
local ONE_LOOK = 20e6

---@type table<string, { path: string|false, at: integer }> false: the name is no path
local looked, looked_count = {}, 0

--- Where a name leads. Most of those that nobody has asked for lie in few folders, each of which is resolved once.
---@param name string
---@param folders table<string, string|false> filled in
---@return string
local function resolve(name, folders)
  local folder, last = name:match('^(/.+)/([^/]+)$')
  if not folder or last == '.' or last == '..' then
    return (paths.resolve(name))
  end
  if folders[folder] == nil then
    folders[folder] = uv.fs_realpath(folder) or false
  end
  -- Only a missing file is what its folder says: of another one the system may know a link, or another spelling.
  if folders[folder] and #name <= paths.MAX_PATH and not uv.fs_lstat(name) then
    return (folders[folder] == '/' and '' or folders[folder]) .. '/' .. last
  end
  return (paths.resolve(name))
end

--- Calls a function with each buffer that has the name of a file, and with the path that it led to a moment ago.
---@param list integer[]
---@param found fun(bufnr: integer, path: string)
local function each_named(list, found)
  local now, folders, spent = uv.hrtime(), {}, false
  for _, bufnr in ipairs(list) do
    local name = api.nvim_buf_get_name(bufnr)
    local known = looked[name]
    if not known then
      looked_count = looked_count + 1
      known = { path = is_path(name) and resolve(name, folders), at = now }
      looked[name] = known
    elseif known.path and not spent and now - known.at >= FRESH then
      known.path, known.at = paths.resolve(name), now
      spent = uv.hrtime() - now > LOOK_AGAIN
    end
    if known.path then
      found(bufnr, known.path)
    end
  end
end

--- Buffers there are, and no more names are remembered than a few of each.
---@return integer[]
local function buffers()
  local list = api.nvim_list_bufs()
  if looked_count > 2 * #list + 100 then
    looked, looked_count = {}, 0
  end
  return list
end

--- Does a buffer show a file? Where its name leads now counts.
---@param bufnr integer valid
---@param path string resolved
local function shows(bufnr, path)
  local kind, name = M.kind(bufnr)
  return kind == 'file' and (name == path or paths.resolve(name) == path)
end

--- Buffers, loaded or not, that show a file.
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

--- Loaded buffers of files, one question after the other: all buffers are looked through for many of them at once.
---@return fun(path: string): integer? of the loaded buffer that shows a file (resolved)
function M.loaded()
  local by_path, looked_at = {}, nil
  return function(path)
    local now = uv.hrtime()
    if not looked_at or now - looked_at > ONE_LOOK then
      by_path, looked_at = {}, now
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

--- Files that the person marked as sensitive in their buffers.
---@return table<string, true> resolved paths
function M.marked()
  local set = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local name = M.is_marked(bufnr) and api.nvim_buf_get_name(bufnr) or ''
    if name ~= '' then -- the empty path is the working folder
      set[paths.resolve(name)] = true
    end
  end
  return set
end

return M
