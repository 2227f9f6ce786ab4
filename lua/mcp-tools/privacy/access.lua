--- Decides whether a client may read a file or buffer without approval.
---
--- Sensitive files and files outside the project are refused. Names may always be returned, text may not.

local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local paths = require('mcp-tools.files.paths')
local sensitive = require('mcp-tools.privacy.sensitive')
local secrets = require('mcp-tools.util.secrets')

local M = {}

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
  local marked = buffer_kind.marked()
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
  local kind, name = buffer_kind.kind(bufnr)
  if buffer_kind.is_marked(bufnr) then
    return false, 'sensitive'
  elseif kind == 'unnamed' then
    return true
  elseif kind == 'other' then
    return false, buffer_kind.is_sensitive_name(name, kind) and 'sensitive' or 'not a plain file'
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
