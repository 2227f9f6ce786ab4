--- Decides whether a client may read a file or buffer without approval.
---
--- Sensitive files and files outside the project are refused. Names may always be returned, text may not.

local paths = require('mcp-tools.files.paths')
local sensitive = require('mcp-tools.privacy.sensitive')
local secrets = require('mcp-tools.util.secrets')

local api, uv = vim.api, vim.uv

local M = {}

-- Buffers -------------------------------------------------------------------------------------------------------------

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
function M.buffer_kind(bufnr)
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
function M.buffer_path(bufnr)
  local kind, name = M.buffer_kind(bufnr)
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
local names, name_count = {}, 0

--- Calls a function with each buffer named like a file and its (recently) resolved path.
---@param list integer[]
---@param found fun(bufnr: integer, path: string)
local function each_named(list, found)
  local now, spent = uv.hrtime(), false
  for _, bufnr in ipairs(list) do
    local name = api.nvim_buf_get_name(bufnr)
    local entry = names[name]
    if not entry then
      name_count = name_count + 1
      entry = { path = is_path(name) and paths.resolve(name), at = now }
      names[name] = entry
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
  if name_count > 2 * #list + 100 then
    names, name_count = {}, 0
  end
  return list
end

--- Returns whether a buffer shows a file, resolving its name again.
---@param bufnr integer valid
---@param path string resolved
local function shows(bufnr, path)
  local kind, name = M.buffer_kind(bufnr)
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

-- Access --------------------------------------------------------------------------------------------------------------

---@alias mcp-tools.Unreadable 'sensitive'|'outside the project'|'not a valid path'|'not a plain file'

--- Checks a file, with symlinks resolved, by its name only.
---@param path string absolute or relative to the root
---@param root string
---@return string? resolved
---@return mcp-tools.Unreadable? why
local function by_name(path, root)
  if path == '' or #path > paths.MAX_PATH or path:find('%z') then
    return nil, 'not a valid path'
  end
  -- Always absolute, so that nothing is interpreted as a URI scheme or a home directory.
  local absolute = path:sub(1, 1) == '/' and path or root .. '/' .. path
  local resolved, bad = paths.resolve(absolute)
  if bad then
    return nil, 'not a valid path'
  elseif not paths.inside(resolved, root) then
    return nil, 'outside the project'
  elseif sensitive.is_sensitive(resolved) or sensitive.is_sensitive(absolute) then
    return nil, 'sensitive'
  end
  return resolved
end

--- Returns a check for many files: the buffers that the user marked as sensitive are looked up once.
---@param root string
---@return fun(path: string): string?, mcp-tools.Unreadable?
function M.files(root)
  local marked = M.marked()
  return function(path)
    local resolved, why = by_name(path, root)
    if resolved and marked[resolved] then
      return nil, 'sensitive'
    end
    return resolved, why
  end
end

--- Returns why the root is not a project, for example the home directory.
---@param root string
---@return string? why
function M.no_project(root)
  local text = 'path: %s is not a project; a directory inside it needs the approval of the user'
  return not paths.is_project(root) and text:format(root) or nil
end

--- Checks a file, with symlinks resolved.
---@param path string absolute or relative to the root
---@param root string
---@return string? resolved
---@return mcp-tools.Unreadable? why
function M.path(path, root)
  return M.files(root)(path)
end

--- Checks the file or directory that a prompt is about.
---@param path string? absolute or relative to the root (default: the root)
---@param root string
---@return string? resolved
---@return string? why message
function M.prompt_path(path, root)
  local resolved, why = M.path(path or '.', root)
  if resolved then
    return resolved
  elseif path then
    return nil, ('%s is %s'):format(path, why)
  end
  return nil, why == 'outside the project' and 'no project is open' or 'the project is ' .. why
end

--- Checks a buffer by its file and by the user's mark (`b:sensitive`). A buffer without a file name belongs to the
--- project; other special buffers do not.
---@param bufnr integer valid
---@param root string
---@return boolean readable
---@return mcp-tools.Unreadable? why
---@return string? resolved its file
function M.buffer(bufnr, root)
  local kind, name = M.buffer_kind(bufnr)
  if M.is_marked(bufnr) then
    return false, 'sensitive'
  elseif kind == 'unnamed' then
    return true
  elseif kind == 'other' then
    return false, M.is_sensitive_name(name, kind) and 'sensitive' or 'not a plain file'
  end
  local resolved, why = by_name(name, root)
  return resolved ~= nil, why, resolved
end

--- Returns a buffer's name without passwords in URLs.
---@param name string
---@return string
function M.name(name)
  return name:find('://', 1, true) and secrets.tokens(name) or name
end

--- Returns a path for display, relative to the root if it is inside.
---@param path string absolute path, or name of a special buffer
---@param root string
---@return string
function M.shown(path, root)
  local real = paths.real_root(root)
  for _, base in ipairs({ root, real }) do
    if vim.startswith(path, base .. '/') then
      return path:sub(#base + 2)
    end
  end
  return M.name(path)
end

return M
