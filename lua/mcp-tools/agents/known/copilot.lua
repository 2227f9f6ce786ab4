-- GitHub Copilot CLI. The protocol is undocumented; observed with 1.0.102.
--
-- The answer to a proposal has no text and the agent writes its own version, so a proposal can only be accepted as a
-- whole. The agent connects before its user has trusted the directory. Nothing is pushed until its configuration
-- contains the directory, or it calls a tool. With the option `agent_directory_trust` the discovery file states that
-- the user trusts the directories, and the agent does not ask. Each proposal gets a new name; after a reconnect the
-- agent sends it again, several times.

local agent_sessions = require('mcp-tools.editor.agents')
local editor_context = require('mcp-tools.editor.context')
local paths = require('mcp-tools.files.paths')
local proposals = require('mcp-tools.editor.agents.proposals')
local read = require('mcp-tools.privacy.read')
local shapes = require('mcp-tools.agents.known._shapes')
local strings = require('mcp-tools.util.strings')
local watch = require('mcp-tools.editor.watch')

local SEVERITIES = { 'error', 'warning', 'information', 'hint' }
--- Maximum size of its configuration in bytes.
local MAX_CONFIG = 1024 * 1024
--- Time in ms for which the close of an unknown proposal is remembered. The agent opens and closes a proposal over
--- different connections, so the close may arrive first.
local EARLY_CLOSE_TIME = 1000

local STRING, as_json, tool = shapes.STRING, shapes.json, shapes.tool

--- Sends the files whose diagnostics have changed. Every such notification must arrive, not only the latest.
---@param session mcp-tools.agents.Session
local function send_diagnostics(session)
  local now, before, uris = {}, session.data.files or {}, {}
  for _, file in ipairs(editor_context.diagnostics()) do
    local shaped = shapes.diagnostics(file, SEVERITIES)
    now[shaped.uri] = shaped
  end
  for uri, file in vim.spairs(vim.tbl_extend('keep', now, before)) do
    if not vim.deep_equal(now[uri], before[uri]) then
      table.insert(uris, now[uri] or { uri = file.uri, diagnostics = {} })
    end
  end
  session.data.files = now
  if #uris > 0 then
    session:push('diagnostics_changed', { uris = uris })
  end
end

---@param context mcp-tools.Context
---@param session mcp-tools.agents.Session
---@return mcp-tools.agents.Push[]
local function pushes(context, session)
  if context.diagnostics ~= session.data.diagnostics then
    session.data.diagnostics = context.diagnostics
    send_diagnostics(session)
  end
  local selection = shapes.selection(context)
  return selection and { { method = 'selection_changed', params = selection } } or {}
end

--- Stops watching the agent's configuration.
---@param session mcp-tools.agents.Session
local function stop_watching(session)
  if session.data.stop then
    session.data.stop()
    session.data.stop = nil
  end
end

--- Marks the session as trusted, and starts to send it the selection and diagnostics.
---@param session mcp-tools.agents.Session
local function trust(session)
  local data = session.data
  if data.trusted then
    return
  end
  data.trusted = true
  stop_watching(session)
  for _, push in ipairs(pushes(editor_context.get(), session)) do
    session:push(push.method, push.params, true)
  end
end

---@param ctx mcp-tools.Ctx
---@return mcp-tools.agents.Session
local function session_of(ctx)
  local session = shapes.session(ctx)
  trust(session) -- the agent calls tools only in a trusted directory
  return session
end

--- Returns the proposals that were closed before they arrived.
---@param session mcp-tools.agents.Session
---@return table<string, integer> tab → time of the close in ms
local function closed_early(session)
  local now, fresh = vim.uv.now(), {}
  for tab, at in pairs(session.data.closed_early or {}) do
    fresh[tab] = now - at < EARLY_CLOSE_TIME and at or nil
  end
  session.data.closed_early = fresh
  return fresh
end

local open_diff = tool('open_diff', 'Shows a proposed edit of a file to the user and waits for the decision', {
  original_file_path = STRING,
  new_file_contents = STRING,
  tab_name = STRING,
}, { 'original_file_path', 'new_file_contents', 'tab_name' }, function(ctx, args)
  local session, tab, path = session_of(ctx), args.tab_name, args.original_file_path
  local function answer(result, trigger, message)
    ctx(as_json({ success = true, result = result, trigger = trigger, tab_name = tab, message = message }))
  end
  if closed_early(session)[tab] then
    return answer('REJECTED', 'closed_via_tool', 'the agent closed the proposal')
  end
  shapes.propose(ctx, tab, { path = path, text = args.new_file_contents, editable = false }, function(outcome)
    if outcome.state == 'accepted' then
      return answer('SAVED', 'accepted_via_button', 'User saved the changes for ' .. path)
    end
    local trigger = outcome.state == 'closed' and 'closed_via_tool' or 'rejected_via_button'
    local why = outcome.reason and ': ' .. outcome.reason or ''
    answer('REJECTED', trigger, ('User rejected the changes for %s%s'):format(path, why))
  end)
end, { timeout = 0 })

local close_diff = tool('close_diff', 'Closes an edit', { tab_name = STRING }, { 'tab_name' }, function(ctx, args)
  local session = session_of(ctx)
  local closed = proposals.close(session, args.tab_name, 'it was answered in the terminal')
  if not closed then
    closed_early(session)[args.tab_name] = vim.uv.now()
  end
  local message = closed and 'closed' or 'unknown proposal'
  ctx(as_json({ success = true, already_closed = closed == nil, tab_name = args.tab_name, message = message }))
end)

local get_selection = tool('get_selection', 'Returns the selected text', {}, {}, function(ctx)
  session_of(ctx)
  local selection = shapes.selection(editor_context.get())
  if selection then
    selection.current = true
  end
  ctx(as_json(selection or vim.NIL))
end)

local get_diagnostics = shapes.diagnostics_tool('get_diagnostics', function(files)
  local list = {}
  for _, file in ipairs(files) do
    if #file.diagnostics > 0 then
      local shaped = shapes.diagnostics(file, SEVERITIES)
      table.insert(list, { uri = shaped.uri, filePath = file.path, diagnostics = shaped.diagnostics })
    end
  end
  return list
end)

local get_info = tool('get_vscode_info', 'Returns name and version of the editor', {}, {}, function(ctx)
  local version = vim.version()
  ctx(as_json({
    version = ('%d.%d.%d'):format(version.major, version.minor, version.patch),
    appName = 'Neovim',
    appRoot = vim.env.VIMRUNTIME,
    language = 'en',
    uriScheme = 'file',
    shell = vim.o.shell,
  }))
end)

local update_name = tool(
  'update_session_name',
  'Sets the title of the session',
  { name = STRING },
  { 'name' },
  function(ctx, args)
    session_of(ctx).data.title = args.name
    ctx(as_json({ success = true }))
  end
)

---@return string
local function home()
  local own = vim.env.COPILOT_HOME
  return own and own ~= '' and vim.fs.normalize(own) or vim.uv.os_homedir() .. '/.copilot'
end

--- Returns whether the user trusts all of these directories.
---@param text string the agent's configuration
---@param directories string[]
---@return boolean
local function trusts(text, directories)
  local plain = ('\n' .. text):gsub('\n[ \t\r]*//[^\n]*', '')
  local ok, config = pcall(vim.json.decode, plain)
  local trusted = ok and type(config) == 'table' and (config.trustedFolders or config.trusted_folders)
  if type(trusted) ~= 'table' or #directories == 0 then
    return false
  end
  return vim.iter(directories):all(function(directory)
    return vim.iter(trusted):any(function(one)
      return type(one) == 'string' and (directory == one or vim.startswith(directory, strings.directory(one)))
    end)
  end)
end

---@type string[] directories of the discovery file
local announced_roots = {}
local trusted_by_option = false

---@type { endpoint: table?, at: integer? } the endpoint in the discovery file, and its time in ms
local announced = {}

--- Trusts the session if the agent's configuration contains the directories.
---@param session mcp-tools.agents.Session
local function check_trust(session)
  read.read(home() .. '/config.json', MAX_CONFIG, function(text)
    if text and agent_sessions.session(session.key) == session and trusts(text, announced_roots) then
      trust(session)
    end
  end)
end

---@type mcp-tools.Agent
return {
  name = 'copilot',
  label = 'Copilot CLI',
  connect = 'start it in a directory that this editor works in; in a subdirectory, choose Neovim with /ide',
  proposes = 'in its default mode; never with `--allow-all-tools`',
  endpoint = { transport = 'unix', header = 'authorization', scheme = 'nonce' },
  tools = { get_info, get_selection, get_diagnostics, open_diff, close_diff, update_name },

  context = function(context, session)
    return session.data.trusted and pushes(context, session) or {}
  end,

  opened = function(session)
    if trusted_by_option then
      return trust(session)
    end
    check_trust(session)
    local path = paths.resolve(home() .. '/config.json')
    session.data.stop = session.data.stop
      or watch.file(
        path,
        vim.schedule_wrap(function()
          check_trust(session)
        end)
      )
  end,

  left = function(session, is_bridge_gone)
    shapes.left(session, is_bridge_gone)
    stop_watching(session)
  end,

  mention = function(session, place)
    if not session.data.trusted then
      return nil, 'the agent accepts mentions only after its first tool call, or in permanently trusted directories'
    end
    local params = { filePath = place.path, fileUrl = vim.uri_from_fname(place.path) } ---@type table<string, any>
    params.selection, params.selectedText = vim.NIL, vim.NIL
    if place.first then
      params.selection = {
        start = { line = place.first - 1, character = 0 },
        ['end'] = { line = place.last - 1, character = 0 }, -- the agent includes this line, whatever the character
      }
      params.selectedText = place.text or vim.NIL
    end
    return { method = 'add_file_reference', params = params }
  end,

  discovery = function(endpoint)
    announced_roots, trusted_by_option = endpoint.roots, endpoint.trusted == true
    -- The name stays the same after a restart, so that the file is replaced.
    local id = vim.fn.sha256(endpoint.token .. ' lock'):sub(1, 30)
    local uuid = id:gsub('^(........)(....)(...)(...)(.*)$', '%1-%2-4%3-8%4-%5')
    if not vim.deep_equal(announced.endpoint, endpoint) then
      announced = { endpoint = vim.deepcopy(endpoint), at = os.time() * 1000 }
    end
    return {
      {
        path = ('%s/ide/%s.lock'):format(home(), uuid),
        body = {
          socketPath = endpoint.socket,
          scheme = 'unix',
          headers = { Authorization = 'Nonce ' .. endpoint.token },
          pid = endpoint.pid,
          ideName = 'Neovim',
          timestamp = announced.at,
          workspaceFolders = endpoint.roots,
          isTrusted = trusted_by_option,
        },
      },
    }
  end,

  environment = function(endpoint)
    local file = endpoint.file(shapes.mcp_servers(endpoint.server, { tools = { '*' } }))
    return { command = { 'copilot' }, args = { '--additional-mcp-config', '@' .. file } }
  end,
}
