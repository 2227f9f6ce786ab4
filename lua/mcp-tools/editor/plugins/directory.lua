--- A plugin's directory: its Lua modules, help, readme, and the text of its files. Nothing is loaded.

local paths = require('mcp-tools.files.paths')
local sensitive = require('mcp-tools.privacy.sensitive')
local read = require('mcp-tools.privacy.read')

local uv = vim.uv

local M = {}

--- Maximum depth of directories below `lua/`.
local DEPTH = 6
--- Maximum number of entries; a longer list is cut.
local MAX_ENTRIES = 5000
--- Maximum size of a file that is read, in bytes.
local MAX_BYTES = 8 * 1024 * 1024

---@param path string
---@return { name: string, type: string }[]
local function entries(path)
  local handle, list = uv.fs_scandir(path), {}
  while handle do
    local name, kind = uv.fs_scandir_next(handle)
    if not name then
      break
    end
    table.insert(list, { name = name, type = kind })
  end
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
  return list
end

--- Returns a plugin's Lua modules.
---@param path string
---@param pause fun()
---@return string[] modules
---@return boolean cut
function M.modules(path, pause)
  local modules, seen = {}, 0
  local function walk(directory, prefix, depth)
    for _, each in ipairs(entries(directory)) do
      seen = seen + 1
      local stem = each.name:match('^(.*)%.lua$')
      if seen > MAX_ENTRIES then
        return
      elseif stem then
        local name = stem == 'init' and prefix:sub(1, -2) or prefix .. stem
        table.insert(modules, name ~= '' and name or nil)
      elseif each.type == 'directory' and depth < DEPTH then
        walk(directory .. '/' .. each.name, prefix .. each.name .. '.', depth + 1)
      end
    end
    pause()
  end
  walk(path .. '/lua', '', 1)
  table.sort(modules)
  return modules, seen > MAX_ENTRIES
end

--- Returns a plugin's help files.
---@param path string
---@return string[] names
function M.help(path)
  local list = {}
  for _, each in ipairs(entries(path .. '/doc')) do
    table.insert(list, each.name:find('%.txt$') and each.name or nil)
  end
  return list
end

--- Returns a plugin's readme.
---@param path string
---@return string? name
function M.readme(path)
  local best
  for _, each in ipairs(entries(path)) do
    local lower = each.name:lower()
    if each.type ~= 'directory' and lower:find('^readme') then
      -- Plain text or Markdown, not a translation such as `readme.de.md`.
      if not best or lower:find('^readme%.?m?d?$') or lower == 'readme.markdown' then
        best = each.name
      end
    end
  end
  return best
end

--- Returns the check whether a plugin's file may be read. It may be outside of the project, unless the plugin is the
--- project itself: then a link must not lead elsewhere.
---@param path string
---@param root string
---@return mcp-tools.Judge
local function judge(path, root)
  local is_own = vim.iter(vim.fs.parents(vim.fn.fnamemodify(path, ':p'))):any(function(directory)
    return paths.inside((paths.resolve(directory)), root)
  end)
  return function(real)
    return not sensitive.is_sensitive(real) and (not is_own or paths.inside(real, root))
  end
end

--- Returns the text of a plugin's file.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param path string
---@return string? text with "\n" between lines
---@return mcp-tools.Error? err
function M.text(ctx, path)
  local text, err = ctx:await(function(done)
    read.read(path, MAX_BYTES, done, judge(path, ctx.root))
  end)
  return text and (text:gsub('\r\n', '\n')), err
end

return M
