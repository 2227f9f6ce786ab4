--- Finds the Python interpreter that runs tools, and its commands.

local interpreter = require('mcp-tools.bridge.interpreter')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local source = require('mcp-tools.registry.source')

local uv = vim.uv

local M = {}

--- Ignores Python variables of the user's environment and the working directory: the project provides no modules.
local ISOLATED = '-I'
local SERVE, SCAN = 'python_tools.worker.serve', 'python_tools.scan.main'

--- Directories of Python modules in plugins, as Vim defines them.
local DIRECTORIES = { 'python3', 'pythonx' }

--- Finds the interpreter. May call `cb` before it returns.
---@param cb fun(python: string?, fault: mcp-tools.bridge.PythonFault?)
function M.resolve(cb)
  interpreter.resolve_python(function(runtime, fault)
    cb(runtime and runtime.python, fault)
  end)
end

--- Returns the project's root, resolved.
---@return string
function M.project()
  return paths.real_root(project.root())
end

--- Returns where modules are found besides Python's defaults: `python3/` on the runtimepath, never inside the project.
---@return string[]
function M.import_paths()
  local root, list = M.project(), {}
  for _, dir in ipairs(vim.api.nvim_list_runtime_paths()) do
    for _, name in ipairs(DIRECTORIES) do
      local path = vim.fs.joinpath(dir, name)
      local absolute = dir:match('^/') or dir:match('^%a:[/\\]')
      if absolute and uv.fs_stat(path) and not source.is_project_file(path, root) then
        list[#list + 1] = path
      end
    end
  end
  return list
end

--- Returns the file of the remote plugin.
---@return string
function M.plugin()
  return vim.fs.joinpath(project.plugin_dir(), 'rplugin', 'python3', 'nvim_mcp_host.py')
end

--- Returns the command that runs a module of the Python package.
---@param python string
---@param module string has a function `main`
---@param ... string its arguments
---@return string[]
local function module_command(python, module, ...)
  return { python, ISOLATED, project.python_package(), module, ... }
end

--- Returns the command of a worker.
---@param python string
---@return string[]
function M.worker_command(python)
  return vim.list_extend(module_command(python, SERVE, M.plugin()), M.import_paths())
end

--- Returns the command of the process that reads modules.
---@param python string
---@param sources table[]
---@return string[]
function M.scan_command(python, sources)
  local wanted = vim.json.encode({ sources = sources, import_paths = M.import_paths() })
  return module_command(python, SCAN, wanted)
end

return M
