--- Source of a definition: where it comes from, and whether its annotations are trusted.

local M = {}

--- Definitions of these origins were written or chosen by the user. Those of mounted servers were not.
local OWN = { bundled = true, registered = true, python = true }

---@param path string?
---@return string?
local function real(path)
  return path and (vim.uv.fs_realpath(path) or path)
end

--- Returns the resolved file of a definition; cached.
---@param definition mcp-tools.Definition
---@return string?
local function file_of(definition)
  local source = definition.source
  if not source or not source.file then
    return nil
  end
  source.real = source.real or real(source.file)
  return source.real
end

---@param path string
---@param root string
local function below(path, root)
  return path == root or vim.startswith(path, root:sub(-1) == '/' and root or root .. '/')
end

local user_dirs

--- Returns the directories of the user's configuration and plugins. Their files do not belong to a project that
--- contains these directories, such as the home directory, but to a project inside of them.
---@return string[]
local function directories()
  if not user_dirs then
    user_dirs = {}
    for _, what in ipairs({ 'config', 'data' }) do
      table.insert(user_dirs, real(vim.fn.stdpath(what) --[[@as string]]))
    end
  end
  return user_dirs
end

--- Maximum number of symlinks, as in Linux.
local MAX_LINKS = 40

--- Returns every path met while symlinks are resolved, and the final one.
---@param path string absolute
---@return string[]
local function resolution_steps(path)
  local list, links, resolved, rest = {}, 0, '', path
  while rest ~= '' do
    local name, after = rest:match('^/*([^/]*)(.*)$')
    local here = resolved .. '/' .. name
    local target = links < MAX_LINKS and name ~= '' and vim.uv.fs_readlink(here)
    if target then
      links = links + 1
      table.insert(list, here .. after)
      resolved = target:sub(1, 1) == '/' and '' or resolved
      rest = '/' .. target .. after
    else
      rest = after
      if name == '..' then
        resolved = resolved:match('^(.*)/') or ''
      elseif name ~= '' and name ~= '.' then
        resolved = here
      end
    end
  end
  table.insert(list, resolved)
  return list
end

---@param path string
---@param root string
local function is_inside(path, root)
  if not below(path, root) then
    return false
  end
  for _, dir in ipairs(directories()) do
    if dir ~= root and below(dir, root) and below(path, dir) then
      return false
    end
  end
  return true
end

--- Returns whether a file belongs to the project instead of the user. It does if it is in the project, or if a symlink
--- in the project leads to it, because the project chooses the target.
---@param path string unresolved
---@param root string resolved
---@return boolean
function M.is_project_file(path, root)
  if path:sub(1, 1) ~= '/' then
    return true -- unknown location
  end
  for _, step in ipairs(resolution_steps(path)) do
    if is_inside(step, root) then
      return true
    end
  end
  return false
end

--- Returns whether the handler's file or the file with the definition belongs to the project. Then its author is not
--- the user.
---@param definition mcp-tools.Definition
---@param root string resolved
---@return boolean
function M.in_project(definition, root)
  local source = definition.source
  if not source or source.origin == 'bundled' then
    return false
  end
  if source.checked ~= root then
    local inside = source.file ~= nil and M.is_project_file(source.file, root)
    source.inside = inside or source.found_in ~= nil and M.is_project_file(source.found_in, root)
    source.checked = root
  end
  return source.inside
end

--- Returns whether a definition belongs to a mounted server.
---@param definition { source: mcp-tools.Source? }
---@return boolean
function M.is_mounted(definition)
  return definition.source ~= nil and definition.source.origin == 'mounted'
end

--- Returns whether `needs_approval` and annotations may allow a call without a question.
---@param definition mcp-tools.Definition
---@param root string resolved
---@return boolean
function M.is_trusted(definition, root)
  local source = definition.source
  return source == nil or OWN[source.origin] == true and not M.in_project(definition, root)
end

--- Returns the source's key in the ledger. Trust in a tool applies to one source only.
---@param definition mcp-tools.Definition
---@return string
function M.key(definition)
  local source = definition.source
  if not source then
    return 'registered'
  elseif source.origin == 'registered' and file_of(definition) then
    return 'file:' .. file_of(definition)
  elseif source.origin == 'python' and file_of(definition) then
    return 'python:' .. file_of(definition)
  end
  return source.origin .. (source.name and ':' .. source.name or '')
end

--- Returns the group, by which a tool is listed, switched on or off, and approved.
---@param definition mcp-tools.Definition
---@return string
function M.group(definition)
  local source = definition.source or {}
  return source.group or source.name or source.origin or 'registered'
end

--- Describes the source for the user.
---@param definition mcp-tools.Definition
---@param root string
---@return string
function M.describe(definition, root)
  local source = definition.source or { origin = 'registered' }
  local file = file_of(definition)
  local text = source.origin .. (source.name and ' ' .. source.name or '')
  if source.origin == 'bundled' then
    return 'bundled with mcp-tools'
  elseif source.origin == 'mounted' then
    return 'the mounted server ' .. tostring(source.name)
  elseif file then
    text = ('%s by %s'):format(text, vim.fn.fnamemodify(file, ':~'))
  end
  return M.in_project(definition, root) and text .. ' (a file of this project)' or text
end

return M
