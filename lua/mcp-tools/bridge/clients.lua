--- Configuration of AI clients: runs the command `mcp-tools`, which knows their files and formats.

local interpreter = require('mcp-tools.bridge.interpreter')
local process = require('mcp-tools.editor.process')
local project = require('mcp-tools.instances.project')
local trim = require('mcp-tools.util.trim')

local M = {}

--- ms; starting Python takes a tenth of a second, asking git whether it has a file a little more.
local TIMEOUT = 20000

--- Names of all clients; `client_config/known.py` has the rest.
M.NAMES = vim.split(
  'amp claude-code codex continue-dev copilot-cli crush cursor gemini-cli goose opencode qwen-code vscode windsurf zed',
  ' '
)

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
