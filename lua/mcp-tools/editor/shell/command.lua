--- A command from a tool's arguments: a shell command line or an executable with arguments, its directory and
--- environment.

local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')

local M = {}

local MAX_TIMEOUT = 3600000
--- Timeout of tools that wait for a command.
M.TOOL_TIMEOUT = MAX_TIMEOUT + 30000
--- Argument of tools that wait for a command.
M.TIMEOUT = { type = 'integer', description = 'Timeout in ms', default = 120000, minimum = 100, maximum = MAX_TIMEOUT }

--- Maximum size of a command with its environment in bytes, and of its standard input in characters: the user must
--- wait until they are shown and compared.
M.MAX_SIZE = 64 * 1024

--- Arguments of tools that start a command.
M.ARGS = {
  command = { type = 'string', description = 'Command line for sh', maxLength = M.MAX_SIZE },
  argv = {
    type = 'array',
    items = { type = 'string' },
    minItems = 1,
    maxItems = 1000,
    description = 'Executable and arguments, without a shell',
    hidden = true,
  },
  cwd = { type = 'string', description = 'Directory' },
  env = {
    type = 'object',
    additionalProperties = { type = 'string' },
    description = 'Environment variables to add',
    hidden = true,
  },
}

---@class mcp-tools.shell.Command
---@field argv string[]
---@field cwd string
---@field env table<string, string>?
---@field shown string the command line, or the arguments quoted for a shell

local ESCAPES = { ['\n'] = '\\n', ['\t'] = '\\t', ['\r'] = '\\r', ['\\'] = '\\\\', ["'"] = "\\'" }

--- Quotes an argument in one line, so that it cannot look like two arguments or a line of the question.
---@param text string
---@return string
local function quoted(text)
  if text:find('%c') then
    return "$'"
      .. text:gsub("[%c\\']", function(char)
        return ESCAPES[char] or ('\\x%02x'):format(char:byte())
      end)
      .. "'"
  end
  if text:find('^[%w_%-./:=@%%+,]+$') then
    return text
  end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Returns a list of arguments as a command line.
---@param argv string[]
---@return string
function M.line(argv)
  return table.concat(vim.tbl_map(quoted, argv), ' ')
end

--- Returns why no process can be started with these arguments.
---@param args { command: string?, argv: string[]?, cwd: string?, env: table? }
---@return string? fault
local function unusable(args)
  local pairs_of_env = {}
  for name, value in pairs(args.env or {}) do
    if name == '' or name:find('=', 1, true) then
      return ('env: %q is not a valid variable name'):format(name)
    end
    vim.list_extend(pairs_of_env, { name, value })
  end
  local size, texts = 0, { command = args.command, cwd = args.cwd }
  texts.argv, texts.env = table.concat(args.argv or {}), table.concat(pairs_of_env)
  for name, text in pairs(texts) do
    if text:find('\0', 1, true) then
      return name .. ': contains a NUL byte'
    end
    size = size + #text
  end
  if size > M.MAX_SIZE then
    local fault = '%s: longer than %d bytes, with env; write long text to a file first'
    return fault:format(args.command and 'command' or 'argv', M.MAX_SIZE)
  end
end

--- Returns the command of a call's arguments.
---@param args { command: string?, argv: string[]?, cwd: string?, env: table? }
---@param root string
---@return mcp-tools.shell.Command?
---@return mcp-tools.Error? err
function M.of(args, root)
  if (args.command == nil) == (args.argv == nil) then
    return nil, errors.new('validation_error', 'give exactly one of command and argv')
  end
  local fault = unusable(args) or args.command and not args.command:find('%S') and 'command: is empty'
  if fault then
    return nil, errors.new('validation_error', fault)
  end
  local cwd, bad = root, nil
  if args.cwd then
    cwd, bad = paths.resolve(args.cwd)
  end
  local stat = not bad and vim.uv.fs_stat(cwd)
  if not stat or stat.type ~= 'directory' then
    return nil, errors.new('not_found', ('cwd: there is no directory %s'):format(cwd))
  end
  local program = args.argv and args.argv[1]
  if program and not (args.env or {}).PATH then
    local found = program:find('/', 1, true) and vim.fs.joinpath(program:sub(1, 1) == '/' and '' or cwd, program)
    if vim.fn.executable(found or program) ~= 1 then
      return nil, errors.new('not_found', ('argv: there is no executable %s'):format(program))
    end
  end
  return {
    argv = args.argv or { 'sh', '-c', args.command },
    cwd = cwd,
    env = args.env,
    shown = args.command or M.line(args.argv),
  }
end

--- Describes a command for the approval question.
---@param command mcp-tools.shell.Command
---@return string
function M.preview(command)
  local lines = { 'in ' .. (command.cwd:find('%c') and quoted(command.cwd) or command.cwd) }
  local names = vim.tbl_keys(command.env or {})
  table.sort(names)
  for _, name in ipairs(names) do
    table.insert(lines, ('%s=%s'):format(name:find('^[%w_]+$') and name or quoted(name), quoted(command.env[name])))
  end
  table.insert(lines, '$ ' .. command.shown)
  return table.concat(lines, '\n')
end

--- The same for a tool's arguments.
---@param args table
---@param root string
---@return string?
---@return mcp-tools.Error? err
function M.preview_of(args, root)
  local command, err = M.of(args, root)
  return command and M.preview(command), err
end

return M
