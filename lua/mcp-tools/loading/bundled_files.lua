--- The files of what is bundled: tools, resources and prompts.

local kinds = require('mcp-tools.registry.kinds')
local project = require('mcp-tools.instances.project')

local M = {}

---@class mcp-tools.BundledFile
---@field name string
---@field group string? of tools
---@field module string
---@field path string

---@type table<mcp-tools.OfferKind, { files: mcp-tools.BundledFile[], at: integer }> with ns of the reading
local found = {}

--- Every file of a kind; the folder is read once.
---@param kind mcp-tools.OfferKind
---@return mcp-tools.BundledFile[] by name
function M.of(kind)
  if found[kind] then
    return found[kind].files
  end
  local files = {}
  found[kind] = { files = files, at = vim.uv.hrtime() }
  local folder = vim.fs.joinpath(project.lua_dir(), kind)
  for path, type_ in vim.fs.dir(folder, { depth = 2 }) do
    local stem = path:match('^(.*)%.lua$')
    if type_ ~= 'directory' and stem then
      table.insert(files, {
        name = (stem:gsub('/', '_')),
        group = kinds.row(kind).grouped and (stem:match('^([^/]+)/') or stem) or nil,
        module = ('mcp-tools.%s.%s'):format(kind, (stem:gsub('/', '.'))),
        path = vim.fs.joinpath(folder, path),
      })
    end
  end
  table.sort(files, function(a, b)
    return a.name < b.name
  end)
  return files
end

--- When the folder of a kind was read; nil when it was not yet.
---@param kind mcp-tools.OfferKind
---@return integer? ns
function M.read_at(kind)
  return found[kind] and found[kind].at
end

--- The folder of a kind is to be read again.
---@param kind mcp-tools.OfferKind
function M.forget(kind)
  found[kind] = nil
end

--- Whether a definition says `recommended = true`. The file is only read: most of a hundred are not recommended, and
--- loading one takes ten times as long.
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

--- What a file returns.
---@param file mcp-tools.BundledFile
---@return table? definition
---@return string? fault
function M.load(file)
  local ok, def = xpcall(require, debug.traceback, file.module)
  if not ok then
    return nil, tostring(def)
  elseif type(def) ~= 'table' then
    return nil, 'it returns no table'
  elseif def.name ~= file.name then
    return nil, ("its definition is named '%s', its path says '%s'"):format(tostring(def.name), file.name)
  end
  return def
end

return M
