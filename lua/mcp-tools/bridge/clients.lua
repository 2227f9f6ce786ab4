--- AI clients' own configuration: what the command `mcp-tools` knows of it, asked for by the editor.
---
--- Receives: a client's name; whether it is to be connected, and how.
--- Sends: the change as a diff, or word that it was written, to a callback; the work is done by a Python process.
--- Does not know about: a client's files and formats, how a person agrees.

local interpreter = require('mcp-tools.bridge.interpreter')
local process = require('mcp-tools.editor.process')
local project = require('mcp-tools.files.project')
local trim = require('mcp-tools.util.trim')

local M = {}

--- ms; starting Python takes a tenth of a second, asking git whether it has a file a little more.
local TIMEOUT = 20000

--- Files beside those of the clients, as `registry.py` there has them.
local OTHERS = { __init__ = true, change = true, client = true, places = true, registry = true, skill = true }

--- Names of all clients, sorted: a file each has what is known of one.
---@return string[]
function M.names()
  local names = {}
  for file, kind in vim.fs.dir(vim.fs.joinpath(project.python_package(), 'client_config')) do
    local name = kind == 'file' and file:match('^([%w_]+)%.py$')
    if name and not OTHERS[name] then
      table.insert(names, (name:gsub('_', '-')))
    end
  end
  table.sort(names)
  return names
end

--- Runs a subcommand of `mcp-tools`.
---@param arguments string[] its name first
---@param cb fun(answer: table?, fault: string?)
function M.run(arguments, cb)
  interpreter.resolve_python(function(runtime, fault)
    if not runtime then
      return cb(nil, ('%s: %s'):format(fault.advice, fault.message))
    end
    local command = { runtime.python, '-I', project.python_package() }
    vim.list_extend(command, arguments)
    vim.list_extend(command, { '--json', '--root', project.root() })
    process.run(command, { cwd = project.root(), timeout = TIMEOUT }, function(result)
      local ok, answer = pcall(vim.json.decode, result.stdout)
      if result.ok and ok then
        return cb(answer)
      end
      local said = trim(result.stderr):gsub('^mcp%-tools [%w-]+: ', '')
      cb(nil, said ~= '' and said or result.fault or 'its answer cannot be read')
    end)
  end)
end

return M
