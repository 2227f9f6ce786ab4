--- Access: may the text of a file or buffer be given to a client that asked for no approval?
---
--- Receives: paths and buffer numbers; the root of the project.
--- Sends: yes, or why not: it is sensitive, or it is not of this project. Names may always be told, text may not.
--- Does not know about: resources, prompts, decisions of people (the gateway asks those).

local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local paths = require('mcp-tools.files.paths')
local sensitive = require('mcp-tools.privacy.sensitive')
local secrets = require('mcp-tools.util.secrets')

local M = {}

---@alias mcp-tools.Unreadable 'sensitive'|'outside the project'|'no path'|'not a plain file'

--- A file, wherever its symlinks lead, by its name alone.
---@param path string absolute, or relative to the root
---@param root string
---@return string? resolved
---@return mcp-tools.Unreadable? why
local function by_name(path, root)
  if path == '' or #path > paths.MAX_PATH or path:find('%z') then
    return nil, 'no path'
  end
  -- An absolute path, always: nothing in it is read as a scheme or a home.
  local absolute = path:sub(1, 1) == '/' and path or root .. '/' .. path
  local resolved, bad = paths.resolve(absolute)
  if bad then
    return nil, 'no path'
  elseif not paths.inside(resolved, root) then
    return nil, 'outside the project'
  elseif sensitive.is_sensitive(resolved) or sensitive.is_sensitive(absolute) then
    return nil, 'sensitive'
  end
  return resolved
end

--- Files, one after the other: what the person marked as sensitive in a buffer is looked up once.
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

--- Why "all files of the project" is no place: an editor that was started in the home folder has none.
---@param root string
---@return string? why
function M.no_project(root)
  local text = 'path: %s is no project; name a folder of it, and the person is asked'
  return not paths.is_project(root) and text:format(root) or nil
end

--- A file, wherever its symlinks lead.
---@param path string absolute, or relative to the root
---@param root string
---@return string? resolved
---@return mcp-tools.Unreadable? why
function M.path(path, root)
  return M.files(root)(path)
end

--- Where a prompt is to look: the file or folder that was asked for, or the whole project.
---@param path string? absolute, or relative to the root
---@param root string
---@return string? resolved
---@return string? why in words
function M.place(path, root)
  local resolved, why = M.path(path or '.', root)
  if resolved then
    return resolved
  elseif path then
    return nil, ('%s is %s'):format(path, why)
  end
  return nil, why == 'outside the project' and 'there is no project here' or 'the project is ' .. why
end

--- A buffer: by its file, and by what the person said of it (`b:sensitive`). Text that has no file yet is of the
--- project; what is no text of a file is not.
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

--- The name of a buffer as it may be told: addresses may hold passwords.
---@param name string
---@return string
function M.name(name)
  return name:find('://', 1, true) and secrets.tokens(name) or name
end

--- How a path is shown: relative to the root where it is below.
---@param path string absolute, or the name of what is no file
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
