--- The files of companions: `companions/<agent>.lua`, which hold all that is known of an agent.

local config = require('mcp-tools.config')
local definition = require('mcp-tools.registry.definition.tool')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local suggest = require('mcp-tools.util.suggest')

local M = {}

--- What a companion's file returns. What it knows of its agent stands there alone: it converts shapes.
---@class mcp-tools.Companion
---@field name string that of the file
---@field label string the agent's name, for people
---@field endpoint mcp-tools.companion.Endpoint? how the agent comes in; without it, only by a terminal of ours
---@field tools table[]? as for `register`, but by the names that the agent knows; `execute(ctx, args)` or
--- `run(ctx, args)`; `ctx.session` is the key of the session (editor/companion). One with the annotation `read_only`
--- asks nobody unless `needs_approval` says so, and files outside of the project are no question; others ask as tools
--- do. Sensitive files are refused
---@field context? fun(context: table, session: mcp-tools.companion.Session): mcp-tools.companion.Push[]? what to tell a
--- session when the context has changed, and first when it opens
---@field opened? fun(session: mcp-tools.companion.Session) its stream stands
---@field notified? fun(session: mcp-tools.companion.Session, method: string, params: table) what MCP does not know
---@field left? fun(session: mcp-tools.companion.Session, is_bridge_gone: boolean) it is gone, and so is the way to it;
--- one whose bridge is gone may come back by the same key
---@field mention? fun(session: mcp-tools.companion.Session, place: mcp-tools.companion.Place):
--- mcp-tools.companion.Push?, string? for `:McpTools send`; nil and why not
---@field connect? string what the user does in the agent while it is not connected
---@field proposes? string in which of its modes it proposes edits here
---@field discovery? fun(endpoint: mcp-tools.companion.Endpoint): mcp-tools.companion.File[] by which its agent finds
--- this editor
---@field environment? fun(endpoint: mcp-tools.companion.TerminalEndpoint): mcp-tools.companion.Environment for
--- terminals of ours
---@field skip? fun(): string? why it must not be on here

---@class mcp-tools.companion.Endpoint
---@field transport 'http'|'websocket'|'unix'
---@field header string? that has the token; `authorization` when left out
---@field scheme 'bearer'|'nonce'|nil word before the token; nil = none
---@field subprotocol string? of a WebSocket; echoed only where the agent offers it
---@field server { name: string, version: string, title: string? }? that MCP tells the agent; ours when left out

---@class mcp-tools.companion.Place
---@field path string real
---@field lines integer that the file has
---@field first integer? from 1; nil: the whole file
---@field last integer?
---@field text string? of these lines

---@class mcp-tools.companion.Push
---@field method string
---@field params table?

---@class mcp-tools.companion.Endpoint
---@field port integer
---@field token string the companion's own
---@field socket string? path of the unix socket
---@field pid integer of this editor
---@field bridge_pid integer?
---@field roots string[] real paths: the project first, then the working folders and the work trees
---@field trusted boolean? the person lets it be told that they trust these folders

--- The same for a terminal; all of the former is nil while the endpoint is not open.
---@class mcp-tools.companion.TerminalEndpoint: mcp-tools.companion.Endpoint
---@field server { name: string, url: string, token: string, relay: mcp-tools.bridge.Relay? } our own tools, for the
--- model; `relay` starts a process that needs no token, and is nil with the option bridge.command
---@field file fun(body: table): string writes JSON for this user alone, and returns the path

---@class mcp-tools.companion.Environment
---@field command string[]? the program
---@field env table<string, string>?
---@field args string[]?

---@class mcp-tools.companion.File
---@field path string absolute
---@field body table is written as JSON

local FOLDER = 'lua/mcp-tools/agents/known/'
local TRANSPORTS = { 'http', 'websocket', 'unix' }
local FUNCTIONS = { 'context', 'opened', 'notified', 'left', 'mention', 'discovery', 'environment', 'skip' }

--- A companion that is on.
---@class mcp-tools.companion.Loaded
---@field companion mcp-tools.Companion
---@field definitions mcp-tools.Definition[]

--- Names of all files that there are, but for those that begin with `_`, which companions share.
---@return table<string, string> name → path
local function there()
  local found = {}
  for _, path in ipairs(vim.api.nvim_get_runtime_file(FOLDER .. '*.lua', true)) do
    local name = vim.fs.basename(path):sub(1, -5)
    if name:sub(1, 1) ~= '_' then
      found[name] = found[name] or vim.uv.fs_realpath(path) or path
    end
  end
  return found
end

--- Names of all that there are.
---@return string[]
function M.names()
  local names = vim.tbl_keys(there())
  table.sort(names)
  return names
end

---@param endpoint any
---@return string? fault
local function endpoint_fault(endpoint)
  if endpoint == nil then
    return nil
  elseif type(endpoint) ~= 'table' or not vim.list_contains(TRANSPORTS, endpoint.transport) then
    return 'endpoint.transport: must be one of ' .. table.concat(TRANSPORTS, ', ')
  elseif endpoint.header ~= nil and (type(endpoint.header) ~= 'string' or not endpoint.header:find('^[%w-]+$')) then
    return 'endpoint.header: must be the name of a header'
  elseif endpoint.scheme ~= nil and endpoint.scheme ~= 'bearer' and endpoint.scheme ~= 'nonce' then
    return 'endpoint.scheme: must be "bearer", "nonce" or nil'
  elseif endpoint.transport == 'unix' and vim.fn.has('win32') == 1 then
    return 'endpoint.transport: there are no unix sockets here'
  end
end

---@param companion any
---@param name string
---@return string? fault
local function fault_of(companion, name)
  if type(companion) ~= 'table' then
    return 'it returns no table'
  elseif companion.name ~= name then
    return ("it is named '%s', its file says '%s'"):format(tostring(companion.name), name)
  elseif type(companion.label) ~= 'string' then
    return 'label: must be a string'
  end
  for _, field in ipairs(FUNCTIONS) do
    if companion[field] ~= nil and not vim.is_callable(companion[field]) then
      return field .. ': must be a function'
    end
  end
  return endpoint_fault(companion.endpoint)
end

--- Its tools as the executor takes them.
---@param companion mcp-tools.Companion
---@param path string
---@return mcp-tools.Definition[]? definitions
---@return string? fault
local function definitions_of(companion, path)
  local own = vim.startswith(path, project.plugin_dir() .. '/')
  local list = {}
  for i, tool in ipairs(companion.tools or {}) do
    local made, fault = definition.normalise(tool)
    if not made then
      return nil, ('tools[%d]: %s'):format(i, fault)
    end
    made.companion = companion.name
    if made.needs_approval == nil and made.annotations and made.annotations.read_only then
      made.needs_approval = false
    end
    made.source = {
      origin = own and 'bundled' or 'registered',
      name = 'companion ' .. companion.name,
      group = 'companions',
      file = path,
    }
    list[i] = made
  end
  return list
end

---@param name string
---@param path string
---@return mcp-tools.companion.Loaded? loaded
---@return string? fault
local function load(name, path)
  local ok, companion = xpcall(require, debug.traceback, 'mcp-tools.agents.known.' .. name)
  if not ok then
    log.error('companion %s: %s', name, companion)
    return nil, 'it cannot be loaded; see :McpTools log'
  end
  local fault = fault_of(companion, name)
  if fault then
    return nil, fault
  end
  local definitions
  definitions, fault = definitions_of(companion, path)
  return definitions and { companion = companion, definitions = definitions }, fault
end

--- What the option names.
---@param files table<string, string>
---@return string[]
local function wanted(files)
  local option = config.get('companions')
  if option == 'auto' or option == true then
    return vim.tbl_filter(function(name)
      local loaded = load(name, files[name])
      return not loaded or loaded.companion.endpoint ~= nil
    end, M.names())
  end
  return type(option) == 'string' and { option } or option or {}
end

---@class mcp-tools.companion.Verdict
---@field name string
---@field loaded mcp-tools.companion.Loaded? it is on, unless it is skipped
---@field skipped string? why it is off here, which is no fault
---@field fault string? why it cannot be on

--- Why a companion must not be on here, as of now: another plugin may have come that does the same.
---@param companion mcp-tools.Companion
---@return string? reason
---@return string? fault
function M.skipped(companion)
  if not companion.skip then
    return nil
  end
  local ok, reason = log.guard('skip() of the companion ' .. companion.name, companion.skip)
  if not ok then
    return nil, 'its skip() failed; see :McpTools log'
  end
  return reason and tostring(reason) or nil
end

---@param name string
---@param files table<string, string>
---@return mcp-tools.companion.Verdict
local function judge(name, files)
  local path = files[name]
  if not path then
    local near = suggest(name, vim.tbl_keys(files))
    return { name = name, fault = 'there is no such companion' .. (near and (', did you mean %s?'):format(near) or '') }
  end
  local loaded, fault = load(name, path)
  if loaded and not loaded.companion.endpoint then
    return { name = name, skipped = 'it has no way in of its own; see :McpTools terminal' }
  end
  local skipped
  if loaded then
    skipped, fault = M.skipped(loaded.companion)
  end
  return { name = name, loaded = not fault and loaded or nil, skipped = skipped, fault = fault }
end

--- A companion by its name, whatever the option says.
---@param name string
---@return mcp-tools.companion.Loaded?
---@return string? fault
function M.named(name)
  local path = there()[name]
  if not path then
    return nil, 'there is no such companion'
  end
  return load(name, path)
end

--- Every companion that the option names, in its order.
---@return mcp-tools.companion.Verdict[]
function M.all()
  local files, seen, list = there(), {}, {}
  for _, name in ipairs(wanted(files)) do
    if not seen[name] then
      seen[name] = true
      table.insert(list, judge(name, files))
    end
  end
  return list
end

return M
