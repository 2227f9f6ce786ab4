--- The command `:McpTools`: parses its line and runs a subcommand.

local notify = require('mcp-tools.notify')
local suggest = require('mcp-tools.util.suggest')

local M = {}

---@class mcp-tools.Subcommand
---@field usage? string its arguments; nil if it has none
---@field description string
---@field run fun(rest: string, bang: boolean, range: integer[]?) the text after its name; whether there was a `!`;
--- first and last line of a range
---@field bang? boolean it accepts a `!`
---@field range? boolean it accepts a range
---@field complete? string[]|fun(lead: string, rest: string): string[] candidates for the argument after `rest`
---@field arguments? integer number of arguments that are completed (default 1)

local DEFAULT = 'dashboard'

--- File → its subcommands; a file is loaded when it is needed.
local FILES = {
  agents = { 'add', 'focus', 'send', 'terminal', 'type' },
  approval = { 'answer', 'approve', 'audit', 'deny', 'trust' },
  bridge = { 'dashboard', 'endpoint', 'install', 'log', 'restart', 'start', 'status', 'stop' },
  calls = { 'call', 'cancel', 'jobs' },
  clients = { 'connect', 'disconnect' },
  review = { 'changes', 'review' },
  tools = { 'mounts', 'tools' },
  welcome = { 'welcome' },
}

--- Returns the names of all subcommands, sorted.
---@return string[]
function M.names()
  local names = vim.iter(vim.tbl_values(FILES)):flatten():totable()
  table.sort(names)
  return names
end

--- Returns a subcommand; nil if it is unknown.
---@param name string
---@return mcp-tools.Subcommand?
function M.find(name)
  for file, names in pairs(FILES) do
    if vim.list_contains(names, name) then
      return require('mcp-tools.command.' .. file)[name]
    end
  end
end

--- Runs a subcommand. The command-line window does not allow other windows (`:h E11`).
---@param subcommand mcp-tools.Subcommand
---@param ... any
local function run(subcommand, ...)
  if vim.fn.getcmdwintype() == '' then
    return subcommand.run(...)
  end
  local ok, err = pcall(subcommand.run, ...)
  if not ok and tostring(err):find('E11:', 1, true) then
    notify.warn('close the command-line window first (<C-c><C-c>)')
  elseif not ok then
    error(err, 0)
  end
end

--- Runs a command line.
---@param args { args: string, range: integer?, line1: integer?, line2: integer? } of `nvim_create_user_command`
function M.run(args)
  local name, bang, rest = vim.trim(args.args):match('^([^%s!]+)(!?)%s*(.*)$')
  name = name or DEFAULT
  local range = (args.range or 0) > 0 and { args.line1, args.line2 } or nil
  local subcommand = M.find(name)
  if subcommand and bang == '!' and not subcommand.bang then
    return notify.error((':McpTools %s does not accept !'):format(name))
  elseif subcommand and range and not subcommand.range then
    return notify.error((':McpTools %s does not accept a range'):format(name))
  elseif subcommand and rest and rest ~= '' and not subcommand.usage then
    return notify.error((":McpTools %s has no argument: '%s'"):format(name, rest))
  elseif subcommand then
    return run(subcommand, rest or '', bang == '!', range)
  end
  local near = suggest(name, M.names())
  notify.error(
    ("unknown subcommand '%s'; %s"):format(
      name,
      near and ('did you mean %s?'):format(near) or '<Tab> lists all, see also :h mcp-tools'
    )
  )
end

--- Returns candidates for the word under the cursor.
---@param lead string
---@param line string
---@param position integer
---@return string[]
function M.complete(lead, line, position)
  local typed = line:sub(1, position - #lead)
  local _, name, rest = typed:match('^(.-McpT%w*!?)%s+([^%s!]+)!?%s+(.*)$')
  local candidates = M.names()
  if name then
    local subcommand = M.find(name)
    local _, before = rest:gsub('%S+', '')
    local complete = subcommand and before < (subcommand.arguments or 1) and subcommand.complete or {}
    candidates = type(complete) == 'table' and complete or complete(lead, rest)
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

return M
