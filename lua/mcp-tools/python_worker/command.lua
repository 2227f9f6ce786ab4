--- Which Python runs tools, and how it is started.

local config = require('mcp-tools.config')
local interpreter = require('mcp-tools.bridge.interpreter')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local source = require('mcp-tools.registry.source')

local uv = vim.uv

local M = {}

--- Isolated from what a person exports for another Python, and from the working folder: a project lends no modules.
local ISOLATED = '-I'
local SERVE, SCAN = 'python_tools.worker.serve', 'python_tools.scan.main'

--- Folders of Python modules that plugins bring along, by Vim's own custom.
local FOLDERS = { 'python3', 'pythonx' }

--- Finds the interpreter. `cb` may be called before this returns.
---@param cb fun(python: string?, fault: mcp-tools.bridge.PythonFault?)
function M.resolve(cb)
  local function found(runtime, fault)
    cb(runtime and runtime.python, fault)
  end
  if config.get('bridge.command') ~= nil then
    interpreter.resolve_python(found) -- the program that runs the bridge may be anything
  else
    interpreter.resolve(found)
  end
end

--- The resolved root of the project.
---@return string
function M.project()
  return paths.real_root(project.root())
end

--- Where modules are looked for, besides Python's own places: `python3/` on the runtimepath, never below the project.
---@return string[]
function M.import_paths()
  local root, list = M.project(), {}
  for _, dir in ipairs(vim.api.nvim_list_runtime_paths()) do
    for _, folder in ipairs(FOLDERS) do
      local path = vim.fs.joinpath(dir, folder)
      local absolute = dir:match('^/') or dir:match('^%a:[/\\]')
      if absolute and uv.fs_stat(path) and not source.lies_in(path, root) then
        list[#list + 1] = path
      end
    end
  end
  return list
end

--- The remote plugin's file.
---@return string
function M.plugin()
  return vim.fs.joinpath(project.plugin_dir(), 'rplugin', 'python3', 'nvim_mcp_host.py')
end

--- A module of the Python package.
---@param python string
---@param part string
---@param ... string
---@return string[]
local function start(python, part, ...)
  return { python, ISOLATED, project.python_package(), part, ... }
end

--- The command of a host.
---@param python string
---@return string[]
function M.host_command(python)
  return vim.list_extend(start(python, SERVE, M.plugin()), M.import_paths())
end

--- The command of the process that reads modules.
---@param python string
---@param sources table[]
---@return string[]
function M.scan_command(python, sources)
  local wanted = vim.json.encode({ sources = sources, import_paths = M.import_paths() })
  return start(python, SCAN, wanted)
end

return M
