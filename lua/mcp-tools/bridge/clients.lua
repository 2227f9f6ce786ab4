--- Runs the command `mcp-tools`, which reads and changes the configuration of AI clients.

local interpreter = require('mcp-tools.bridge.interpreter')
local process = require('mcp-tools.editor.process')
local project = require('mcp-tools.instances.project')
local trim = require('mcp-tools.util.trim')

local M = {}

--- In ms. Starting Python takes about 100 ms, and git is asked about each file.
local TIMEOUT = 20000

--- Names of all clients, for completion; the rest is in `client_config/known.py`.
M.NAMES = vim.split(
  'amp claude-code codex continue-dev copilot-cli crush cursor gemini-cli goose opencode qwen-code vscode windsurf zed',
  ' '
)

--- Runs a subcommand of `mcp-tools`.
---@param arguments string[] the subcommand and its arguments
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
        return cb(answer --[[@as table]])
      end
      local message = trim(result.stderr):gsub('^mcp%-tools [%w-]+: ', '')
      cb(nil, message ~= '' and message or result.fault or 'the answer is not valid JSON')
    end)
  end)
end

return M
