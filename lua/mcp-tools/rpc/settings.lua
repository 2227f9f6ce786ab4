--- The options that the bridge needs, and the instructions that clients get when they connect.

local bundled = require('mcp-tools.loading.bundled')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local selection = require('mcp-tools.loading.selection')
local tool_search = require('mcp-tools.scope.tool_search')

local M = {}

--- Time limits of the bridge in ms that are not options; tests change them. `orphan_grace`: how long a call continues
--- after its client has disconnected and is silent. `answer`: how long a client may take to list its roots, or to list
--- or read its files. `parked`: how long a call waits for answers of a client without a session. `task_after`: after
--- which time a call becomes a task for clients that support it. `hook`: how long an agent's hook waits for a blocked
--- editor.
M.limits = { orphan_grace = 60000, answer = 60000, parked = 600000, task_after = 10000, hook = 150 }

current.on_announce(function()
  return selection.is_empty('tools') and 'no bundled tools: setup({ tools = "recommended" })' or nil
end)

--- When to use which bundled tools. Agents choose by this, and some see only the first 150 characters.
local ADVICE = {
  { 'symbol_find symbol_overview', 'instead of reading whole files' },
  { 'symbol_references symbol_implementations symbol_callers', 'instead of grep for uses, overrides and callers' },
  { 'symbol_rename file_move code_actions code_format', 'to rename, move, refactor, fix imports and format' },
  { 'symbol_replace symbol_insert', 'for whole definitions' },
  { 'file_read file_edit', 'for files that the user has open' },
  { 'diagnostics_list', 'after edits' },
  { 'test_run', 'for tests' },
  { 'debug_run', 'for the real values at a line or in a function, instead of prints or reading' },
  { 'editor_state', 'when the user says "this" or "selected"' },
}

--- Returns the published names of the bundled tools that the options switch on.
---@return table<string, true>
local function requested()
  local prefix, names = config.get().tool_prefix, {}
  if config.get().catalogue == 'search' then
    return { [prefix .. tool_search.SEARCH] = true }
  end
  for _, file in ipairs(bundled.files('tools')) do
    names[prefix .. file.name] = bundled.is_requested('tools', file.name, file.group) or nil
  end
  return names
end

--- Returns the lines about bundled tools that a client sees.
---@param seen table<string, true> published names
---@return string[]
local function advice(seen)
  local lines, prefix = {}, config.get().tool_prefix
  for _, row in ipairs(ADVICE) do
    local names = {}
    for name in row[1]:gmatch('%S+') do
      table.insert(names, seen[prefix .. name] and prefix .. name or nil)
    end
    if #names > 0 then
      table.insert(lines, ('- %s %s'):format(table.concat(names, ', '), row[2]))
    end
  end
  return lines
end

--- Returns the instructions for clients: what the tools are for, the project, and the user's own text. Some agents
--- repeat them in every prompt, so they are short, and nothing in them changes while the editor runs.
---@param names? string[] of all tools that the client sees; default: those that the options switch on
---@return string
function M.instructions(names)
  local seen = names and {} or requested()
  for _, name in ipairs(names or {}) do
    seen[name] = true
  end
  local lines = advice(seen)
  local about = "Neovim: the user's open files, unsaved text, language servers, tests and debugger."
  local search = config.get().tool_prefix .. tool_search.SEARCH
  if seen[search] then
    local text = ' Call %s first, before you read, grep or edit, when a task is about code: what is defined or used'
      .. ' where, what has to change with it, types, errors, tests, debugging, unsaved, open or selected text.'
    lines = { about .. text:format(search), 'Everything else is as good with your own tools.' }
  elseif #lines > 0 then
    table.insert(lines, 1, about .. ' Prefer these tools to grep, sed and whole-file reads:')
    table.insert(lines, 'Plain text search, short files and shell commands are as good with your own tools.')
  else
    lines = { about }
  end
  table.insert(lines, ('Lines are 1-based. A call may wait for the user. Project: %s'):format(project.root()))
  local own = config.get().instructions
  if vim.is_callable(own) then
    local ok, text = log.guard('the option instructions', own)
    own = ok and text or nil
  end
  if type(own) == 'string' and own ~= '' then
    table.insert(lines, own)
  end
  return table.concat(lines, '\n')
end

--- Returns the options that the bridge needs.
---@return table
function M.get()
  local options, launch = config.get(), current.launch
  return {
    tool_prefix = options.tool_prefix,
    tool_timeout = options.bridge.tool_timeout,
    instructions = M.instructions(),
    scoped_clients = vim.tbl_keys(options.clients),
    root = project.root(),
    cwd = vim.uv.cwd(),
    state_dir = project.state_dir(),
    log_level = options.bridge.log_level,
    preload = options.bridge.preload or (launch ~= nil and launch.identity.had_client == true),
    allowed_hosts = options.bridge.allowed_hosts,
    allowed_origins = options.bridge.allowed_origins,
    limits = vim.tbl_extend('error', M.limits, options.limits),
  }
end

return M
