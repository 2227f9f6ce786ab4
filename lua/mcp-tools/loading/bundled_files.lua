--- The files of bundled tools, resources and prompts.

local kinds = require('mcp-tools.registry.kinds')
local project = require('mcp-tools.instances.project')

local M = {}

---@class mcp-tools.BundledFile
---@field name string
---@field group string? of tools
---@field module string
---@field path string

---@type table<mcp-tools.OfferKind, { files: mcp-tools.BundledFile[], at: integer }> `at`: ns, time of the reading
local found = {}

--- Returns every file of a kind; reads the directory once.
---@param kind mcp-tools.OfferKind
---@return mcp-tools.BundledFile[] sorted by name
function M.of(kind)
  if found[kind] then
    return found[kind].files
  end
  local files = {}
  found[kind] = { files = files, at = vim.uv.hrtime() }
  local dir = vim.fs.joinpath(project.lua_dir(), kind)
  for path, type_ in vim.fs.dir(dir, { depth = 2 }) do
    local stem = path:match('^(.*)%.lua$')
    if type_ ~= 'directory' and stem then
      table.insert(files, {
        name = (stem:gsub('/', '_')),
        group = kinds.row(kind).grouped and (stem:match('^([^/]+)/') or stem) or nil,
        module = ('mcp-tools.%s.%s'):format(kind, (stem:gsub('/', '.'))),
        path = vim.fs.joinpath(dir, path),
      })
    end
  end
  table.sort(files, function(a, b)
    return a.name < b.name
  end)
  return files
end

--- Returns when the directory of a kind was read.
---@param kind mcp-tools.OfferKind
---@return integer? ns
function M.read_at(kind)
  return found[kind] and found[kind].at
end

--- Reads the directory of a kind again when it is needed.
---@param kind mcp-tools.OfferKind
function M.forget(kind)
  found[kind] = nil
end

--- Returns whether a definition has `recommended = true`. Searches the text, because loading a file takes ten times as
--- long and most are not recommended.
---@param file mcp-tools.BundledFile
---@return boolean
function M.is_recommended(file)
  local opened = io.open(file.path)
  local text = opened and opened:read('*a')
  if opened then
    opened:close()
  end
  return text ~= nil and text:find('\n  recommended = true,', 1, true) ~= nil
end

--- Loads the definition of a file.
---@param file mcp-tools.BundledFile
---@return table? definition
---@return string? fault
function M.load(file)
  local ok, def = xpcall(require, debug.traceback, file.module)
  if not ok then
    return nil, tostring(def)
  elseif type(def) ~= 'table' then
    return nil, 'it must return a table'
  elseif def.name ~= file.name then
    return nil, ("its definition is named '%s', but must be named '%s'"):format(tostring(def.name), file.name)
  end
  return def
end

return M
