--- Source of a definition: where it comes from, and whether what it says of itself counts.

local M = {}

--- Definitions of these were written or chosen by the person. Of any other (mounted servers) nothing is believed.
local OWN = { bundled = true, registered = true, python = true }

---@param path string?
---@return string?
local function real(path)
  return path and (vim.uv.fs_realpath(path) or path)
end

--- The file of a definition, resolved once.
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

local own_folders

--- Folders of the person's configuration and plugins. A project that contains them (a home folder) does not make what
--- lies in them part of the project; one inside of them does.
---@return string[]
local function folders()
  if not own_folders then
    own_folders = {}
    for _, what in ipairs({ 'config', 'data' }) do
      table.insert(own_folders, real(vim.fn.stdpath(what) --[[@as string]]))
    end
  end
  return own_folders
end

--- As many links as the system follows.
local MAX_LINKS = 40

--- Where one comes by on the way to a file: its path before each link that is followed, and where it lies.
---@param path string absolute
---@return string[]
local function stations(path)
  local list, links, place, rest = {}, 0, '', path
  while rest ~= '' do
    local name, after = rest:match('^/*([^/]*)(.*)$')
    local here = place .. '/' .. name
    local target = links < MAX_LINKS and name ~= '' and vim.uv.fs_readlink(here)
    if target then
      links = links + 1
      table.insert(list, here .. after)
      place = target:sub(1, 1) == '/' and '' or place
      rest = '/' .. target .. after
    else
      rest = after
      if name == '..' then
        place = place:match('^(.*)/') or ''
      elseif name ~= '' and name ~= '.' then
        place = here
      end
    end
  end
  table.insert(list, place)
  return list
end

---@param path string
---@param root string
local function is_inside(path, root)
  if not below(path, root) then
    return false
  end
  for _, folder in ipairs(folders()) do
    if folder ~= root and below(folder, root) and below(path, folder) then
      return false
    end
  end
  return true
end

--- Is a file the project's, and not the person's? It is when it lies there, and when a link there leads to it: what
--- that link leads to is chosen by whoever made the project.
---@param path string as it was found
---@param root string resolved
---@return boolean
function M.lies_in(path, root)
  if path:match('^%a:[/\\]') then
    return is_inside(real(path), root)
  elseif path:sub(1, 1) ~= '/' then
    return true -- nobody knows where it was
  end
  for _, station in ipairs(stations(path)) do
    if is_inside(station, root) then
      return true
    end
  end
  return false
end

--- Does its handler lie in the project, or the file in which it was found? Then its author is the project's, and not
--- the person.
---@param definition mcp-tools.Definition
---@param root string resolved
---@return boolean
function M.in_project(definition, root)
  local source = definition.source
  if not source or source.origin == 'bundled' then
    return false
  end
  if source.checked ~= root then
    local inside = source.file ~= nil and M.lies_in(source.file, root)
    source.inside = inside or source.found_in ~= nil and M.lies_in(source.found_in, root)
    source.checked = root
  end
  return source.inside
end

--- Does it belong to a mounted server, which runs it and describes it?
---@param definition { source: mcp-tools.Source? }
---@return boolean
function M.is_mounted(definition)
  return definition.source ~= nil and definition.source.origin == 'mounted'
end

--- Do its `needs_approval` and annotations count?
---@param definition mcp-tools.Definition
---@param root string resolved
---@return boolean
function M.is_believed(definition, root)
  local source = definition.source
  return source == nil or OWN[source.origin] == true and not M.in_project(definition, root)
end

--- Names the source, for the ledger: what is trusted from one place is not trusted from another.
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

--- The group by which it is listed, switched and approved.
---@param definition mcp-tools.Definition
---@return string
function M.group(definition)
  local source = definition.source or {}
  return source.group or source.name or source.origin or 'registered'
end

--- The source for people.
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
