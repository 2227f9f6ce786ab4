--- The project root that this editor stands for, and the other fixed places: state folder, plugin folder, boot id.

local config = require('mcp-tools.config')
local global_state = require('mcp-tools.util.global_state')

local uv = vim.uv

local M = {}

--- The version of this plugin.
M.VERSION = '0.1.0'

--- Names this life of the editor.
M.boot = ('%s-%x'):format(uv.os_getpid(), uv.hrtime() % 2 ^ 48)

--- The path with forward slashes and links resolved. Names stay what they are: a folder may be called `$HOME`.
---@param path string
---@return string
local function real(path)
  return vim.fs.normalize(uv.fs_realpath(path) or path, { expand_env = false })
end

local here = real(debug.getinfo(1, 'S').source:sub(2))

--- The working folder. A deleted one has no path: then the home folder, which is no project.
---@return string
local function cwd()
  return uv.cwd() or assert(uv.os_homedir())
end

--- Folder of the file in the current buffer; the working folder when it shows none.
---@return string
local function current()
  local name = vim.api.nvim_buf_get_name(0)
  if vim.bo.buftype == '' and name ~= '' and not name:match('^%a[%w+.-]+://') then
    local dir = vim.fs.dirname(name)
    if uv.fs_stat(dir) then
      return dir
    end
  end
  return cwd()
end

---@param dir string
---@return boolean
local function is_marked(dir)
  for _, marker in ipairs(config.get('roots.markers')) do
    if uv.fs_stat(vim.fs.joinpath(dir, marker)) then
      return true
    end
  end
  return false
end

--- The nearest folder with a marker (`roots.markers`), from `dir` upwards.
---@param dir string
---@return string?
function M.marked(dir)
  local start = real(dir) -- not for vim.fs.find, which takes `$HOME` in a path for a variable
  if is_marked(start) then
    return start
  end
  for parent in vim.fs.parents(start) do
    if is_marked(parent) then
      return parent
    end
  end
end

--- Finds a root: the nearest folder with a marker above `dir`, else the working folder.
---@param dir? string default: the current file's folder
---@return string
function M.find(dir)
  return M.marked(dir or current()) or real(dir or cwd())
end

--- Root of the project that this editor stands for: that of the first start of its bridge (or of the first one that
--- somebody else has started), wherever the person goes, until a command names another; before that, of the current
--- file. Clients are configured for it.
---@return string
function M.root()
  return global_state.root or M.find()
end

--- From now on this is the root.
---@param root? string nil: that of the current file again
function M.fix(root)
  global_state.root = root
end

--- The folder for everything that outlives a session.
---@return string
function M.state_dir()
  return vim.fs.joinpath(vim.fn.stdpath('state') --[[@as string]], 'mcp-tools')
end

--- The folder of the plugin's Lua modules, `mcp-tools`.
---@return string
function M.lua_dir()
  return vim.fs.dirname(vim.fs.dirname(here))
end

---@type string?
local plugin_dir

--- The folder that the plugin is installed in: that with `bridge/`. LuaRocks keeps Lua apart from all else; then it is
--- the one of the runtimepath.
---@return string
function M.plugin_dir()
  if not plugin_dir then
    local file = 'rplugin/python3/nvim_mcp_host.py' -- a name that no other plugin has
    local beside = vim.fs.dirname(vim.fs.dirname(M.lua_dir()))
    local other = not uv.fs_stat(vim.fs.joinpath(beside, file)) and vim.api.nvim_get_runtime_file(file, false)[1]
    plugin_dir = other and real(other):sub(1, -#file - 2) or beside
  end
  return plugin_dir
end

--- The Python package, which a Python interpreter can run as it is: its argument is a subcommand of `mcp-tools`, or
--- one of its modules that has a function `main`.
---@return string
function M.python_package()
  return vim.fs.joinpath(M.plugin_dir(), 'bridge', 'mcp_tools_nvim')
end

return M
