--- Loads the definitions of terminal agents, `known/<agent>.lua`.

local config = require('mcp-tools.config')
local definition = require('mcp-tools.registry.definition.tool')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local suggest = require('mcp-tools.util.suggest')

local M = {}

--- What an agent's file returns: everything that is specific to this agent.
---@class mcp-tools.Agent
---@field name string that of the file
---@field label string the agent's name as the user knows it
---@field endpoint mcp-tools.agents.EndpointSpec? how the agent connects; without it the agent only runs in a terminal
--- of this editor
---@field tools table[]? as for `register`, but with the names that the agent expects; `execute(ctx, args)` or
--- `run(ctx, args)`; `ctx.session` is the key of the session (editor/agents). A tool with the annotation `read_only`
--- needs no approval unless `needs_approval` says so, and may read files outside of the project; other tools need
--- approval as usual. Sensitive files are refused
---@field context? fun(context: table, session: mcp-tools.agents.Session): mcp-tools.agents.Push[]? notifications to
--- send when the session opens and whenever the context changes
---@field opened? fun(session: mcp-tools.agents.Session) the session's stream is open
---@field notified? fun(session: mcp-tools.agents.Session, method: string, params: table) a notification that is not
--- part of MCP has arrived
---@field left? fun(session: mcp-tools.agents.Session, is_bridge_gone: boolean) the session has ended and can receive
--- nothing more; after the end of a bridge it may return under the same key
---@field mention? fun(session: mcp-tools.agents.Session, place: mcp-tools.agents.Place):
--- mcp-tools.agents.Push?, string? for `:McpTools send`; nil and the reason if it cannot be sent
---@field connect? string what the user does in the agent to connect it
---@field proposes? string the modes in which the agent proposes its edits in this editor
---@field discovery? fun(endpoint: mcp-tools.agents.OpenEndpoint): mcp-tools.agents.DiscoveryFile[] files by which the
--- agent finds this editor
---@field environment? fun(endpoint: mcp-tools.agents.TerminalEndpoint): mcp-tools.agents.Environment for a terminal of
--- this editor
---@field uses? string the agent whose endpoint and discovery files it uses
---@field skip? fun(): string? why the agent must be disabled now

--- How an agent connects to its endpoint.
---@class mcp-tools.agents.EndpointSpec
---@field transport 'http'|'websocket'|'unix'
---@field header string? name of the HTTP header with the token (default `authorization`)
---@field scheme 'bearer'|'nonce'|nil word before the token in this header
---@field subprotocol string? of a WebSocket; returned only if the agent requests it
---@field server { name: string, version: string, title: string? }? MCP server information; default: that of this plugin

--- What to mention: a file or directory, or lines of a file.
---@class mcp-tools.agents.Place
---@field path string real path
---@field first integer? 1-based; nil: the whole file
---@field last integer?
---@field text string? of these lines

--- A notification to an agent.
---@class mcp-tools.agents.Push
---@field method string
---@field params table?

--- What the functions of an agent get about its open endpoint.
---@class mcp-tools.agents.OpenEndpoint
---@field port integer
---@field token string of this agent
---@field socket string? path of the unix socket
---@field pid integer of this editor
---@field bridge_pid integer?
---@field roots string[] real paths: the project first, then working directories and work trees
---@field trusted boolean? whether the discovery file may state that the user trusts these directories

--- The endpoint for a terminal; the inherited fields are nil while it is closed.
---@class mcp-tools.agents.TerminalEndpoint: mcp-tools.agents.OpenEndpoint
---@field server { name: string, url: string, token: string, relay: mcp-tools.bridge.Relay?, permitted: string[]?,
--- cwd: string? } our tools, for the model; `relay` starts a process that needs no token, nil with the option
--- bridge.command; `permitted` run without asking; `cwd` is where the agent starts
---@field file fun(body: table): string writes JSON that only this user can read, and returns the path

---@class mcp-tools.agents.Environment
---@field command string[]?
---@field env table<string, string>?
---@field args string[]?

---@class mcp-tools.agents.DiscoveryFile
---@field path string absolute
---@field body table written as JSON

local DIRECTORY = 'lua/mcp-tools/agents/known/'
local NO_ENDPOINT = 'it has no endpoint; start it with :McpTools terminal'
local TRANSPORTS = { 'http', 'websocket', 'unix' }

--- An agent with its tools.
---@class mcp-tools.agents.Loaded
---@field agent mcp-tools.Agent
---@field definitions mcp-tools.Definition[]

--- Returns the definition files of agents. Files that begin with `_` are shared by several agents and define none.
---@return table<string, string> name → path
local function agent_files()
  local found = {}
  for _, path in ipairs(vim.api.nvim_get_runtime_file(DIRECTORY .. '*.lua', true)) do
    local name = vim.fs.basename(path):sub(1, -5)
    if name:sub(1, 1) ~= '_' then
      found[name] = found[name] or vim.uv.fs_realpath(path) or path
    end
  end
  return found
end

--- Returns the names of all known agents.
---@return string[]
function M.names()
  local names = vim.tbl_keys(agent_files())
  table.sort(names)
  return names
end

---@param agent any
---@param name string
---@return string? fault
local function fault_of(agent, name)
  if type(agent) ~= 'table' or agent.name ~= name then
    return ("the file must return a table with the name '%s'"):format(name)
  end
  local endpoint = agent.endpoint
  if endpoint and (type(endpoint) ~= 'table' or not vim.list_contains(TRANSPORTS, endpoint.transport)) then
    return 'endpoint.transport: must be one of ' .. table.concat(TRANSPORTS, ', ')
  elseif agent.uses ~= nil and type(agent.uses) ~= 'string' then
    return 'uses: must be the name of an agent'
  end
end

--- Returns the agent's tools in the form that a call needs.
---@param agent mcp-tools.Agent
---@param path string
---@return mcp-tools.Definition[]? definitions
---@return string? fault
local function definitions_of(agent, path)
  local is_bundled = vim.startswith(path, project.plugin_dir() .. '/')
  local list = {}
  for i, tool in ipairs(agent.tools or {}) do
    local tool_def, fault = definition.normalize(tool)
    if not tool_def then
      return nil, ('tools[%d]: %s'):format(i, fault)
    end
    tool_def.agent = agent.name
    if tool_def.needs_approval == nil and tool_def.annotations and tool_def.annotations.read_only then
      tool_def.needs_approval = false
    end
    tool_def.source = {
      origin = is_bundled and 'bundled' or 'registered',
      name = 'agent ' .. agent.name,
      group = 'agents',
      file = path,
    }
    list[i] = tool_def
  end
  return list
end

---@param name string
---@param path string
---@return mcp-tools.agents.Loaded? loaded
---@return string? fault
local function load(name, path)
  local ok, agent = xpcall(require, debug.traceback, 'mcp-tools.agents.known.' .. name)
  if not ok then
    log.error("agent '%s': %s", name, agent)
    return nil, 'its file cannot be loaded; see :McpTools log'
  end
  local fault = fault_of(agent, name)
  if fault then
    return nil, fault
  end
  local definitions
  definitions, fault = definitions_of(agent, path)
  return definitions and { agent = agent, definitions = definitions }, fault
end

--- Whether an agent that the option `agents` names can be enabled.
---@class mcp-tools.agents.Verdict
---@field name string
---@field loaded mcp-tools.agents.Loaded? nil if it cannot be enabled or has no endpoint; present while it is skipped
---@field skipped string? why it is disabled here without an error
---@field fault string? why it cannot be enabled

--- Returns why an agent must be disabled at the moment, for example because another plugin does the same.
---@param agent mcp-tools.Agent
---@return string? reason
---@return string? fault
function M.skipped(agent)
  if not agent.skip then
    return nil
  end
  local ok, reason = log.guard('skip() of the agent ' .. agent.name, agent.skip)
  if not ok then
    return nil, 'skip() failed; see :McpTools log'
  end
  return reason and tostring(reason) or nil
end

--- Loads an agent by its name, whether or not the option `agents` names it.
---@param name string
---@param files? table<string, string> all definition files
---@return mcp-tools.agents.Loaded?
---@return string? fault
function M.named(name, files)
  files = files or agent_files()
  if not files[name] then
    local near = suggest(name, vim.tbl_keys(files))
    return nil, 'unknown agent' .. (near and (', did you mean %s?'):format(near) or '')
  end
  return load(name, files[name])
end

--- Loads the agent whose endpoint the named agent uses: itself, unless its definition has `uses`.
---@param name string
---@param files table<string, string>
---@return string name
---@return mcp-tools.agents.Loaded? loaded
---@return string? fault
local function used_by(name, files)
  local loaded, fault = M.named(name, files)
  local uses = loaded and loaded.agent.uses
  if not uses then
    return name, loaded, fault
  end
  loaded, fault = M.named(uses, files)
  if loaded and loaded.agent.uses then
    fault = ("agent '%s' uses another agent"):format(uses)
  end
  if fault then
    return name, nil, 'uses: ' .. fault
  end
  return uses, loaded
end

---@param given string
---@param files table<string, string>
---@return mcp-tools.agents.Verdict
local function verdict_of(given, files)
  local name, loaded, fault = used_by(given, files)
  local skipped
  if loaded and not loaded.agent.endpoint then
    loaded, skipped = nil, NO_ENDPOINT
  elseif loaded then
    skipped, fault = M.skipped(loaded.agent)
  end
  return { name = name, loaded = not fault and loaded or nil, skipped = skipped, fault = fault }
end

--- Returns a verdict for each agent that the option `agents` names, in its order and without duplicates.
---@return mcp-tools.agents.Verdict[]
function M.all()
  local files, option, seen, list = agent_files(), config.get('agents'), {}, {}
  local is_auto = option == 'auto' or option == true
  for _, name in ipairs(is_auto and M.names() or type(option) == 'string' and { option } or option or {}) do
    local verdict = verdict_of(name, files)
    if not seen[verdict.name] and not (is_auto and verdict.skipped == NO_ENDPOINT) then
      table.insert(list, verdict)
    end
    seen[verdict.name] = true
  end
  return list
end

return M
