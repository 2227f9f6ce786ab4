--- The project root of this editor, and other fixed paths: state directory, plugin directory.

local config = require('mcp-tools.config')
local global_state = require('mcp-tools.util.global_state')

local uv = vim.uv

local M = {}

--- The version of this plugin.
M.VERSION = '0.1.0'

--- Identifies this Neovim process.
M.boot = ('%s-%x'):format(uv.os_getpid(), uv.hrtime() % 2 ^ 48)

--- Returns the path with forward slashes and resolved links. Variables are not expanded: a directory may be named
--- `$HOME`.
---@param path string
---@return string
local function real(path)
  return vim.fs.normalize(uv.fs_realpath(path) or path, { expand_env = false })
end

local here = real(debug.getinfo(1, 'S').source:sub(2))

--- Returns the working directory, or the home directory if the working directory was deleted.
---@return string
local function cwd()
  return uv.cwd() or assert(uv.os_homedir())
end

--- Returns the directory of the current buffer's file, or the working directory without a file.
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

--- Returns the nearest directory with a marker (`roots.markers`), from `dir` upwards.
---@param dir string
---@return string?
function M.marked(dir)
  local start = real(dir) -- vim.fs.find cannot do this: it expands `$HOME` in a path
  if is_marked(start) then
    return start
  end
  for parent in vim.fs.parents(start) do
    if is_marked(parent) then
      return parent
    end
  end
end

--- Returns the nearest directory with a marker from `dir` upwards, otherwise `dir` or the working directory.
---@param dir? string default: the current file's directory
---@return string
function M.find(dir)
  return M.marked(dir or current()) or real(dir or cwd())
end

--- Returns the project root of this editor. It is determined when the bridge starts for the first time, or a foreign
--- bridge attaches, and stays until a command sets another one, as clients are configured for it. Before that it is the
--- root of the current file.
---@return string
function M.root()
  return global_state.root or M.find()
end

--- Sets the project root.
---@param root? string nil: the root of the current file
function M.fix(root)
  global_state.root = root
end

--- Returns the directory for data that outlives Neovim.
---@return string
function M.state_dir()
  return vim.fs.joinpath(vim.fn.stdpath('state') --[[@as string]], 'mcp-tools')
end

--- Returns the directory of the Lua modules, `mcp-tools`.
---@return string
function M.lua_dir()
  return vim.fs.dirname(vim.fs.dirname(here))
end

---@type string?
local plugin_dir

--- Returns the directory in which the plugin is installed. LuaRocks installs Lua files separately; then it is found on
--- the runtimepath.
---@return string
function M.plugin_dir()
  if not plugin_dir then
    local file = 'rplugin/python3/nvim_mcp_host.py' -- no other plugin has this name
    local parent_dir = vim.fs.dirname(vim.fs.dirname(M.lua_dir()))
    local found = not uv.fs_stat(vim.fs.joinpath(parent_dir, file)) and vim.api.nvim_get_runtime_file(file, false)[1]
    plugin_dir = found and real(found):sub(1, -#file - 2) or parent_dir
  end
  return plugin_dir
end

--- Returns the Python package. An interpreter can run it: the argument is a subcommand of `mcp-tools`, or one of its
--- modules with a function `main`.
---@return string
function M.python_package()
  return vim.fs.joinpath(M.plugin_dir(), 'bridge', 'mcp_tools_nvim')
end

return M
