-- Claude Code, and opencode, which reads the same lock file. The protocol is undocumented; observed with Claude Code
-- 2.1.330 and opencode 1.18.33.
--
-- As an answer to openDiff, "TAB_CLOSED" means that the user accepted, so openDiff never returns it.

local shapes = require('mcp-tools.agents.known._shapes')
local agent_sessions = require('mcp-tools.editor.agents')
local buffers = require('mcp-tools.editor.buffer')
local open = require('mcp-tools.editor.buffer.open')
local paths = require('mcp-tools.files.paths')
local proposals = require('mcp-tools.editor.agents.proposals')
local show = require('mcp-tools.editor.user.show')

local api = vim.api

local SEVERITIES = { 'Error', 'Warning', 'Info', 'Hint' }

local STRING, BOOLEAN, INTEGER = shapes.STRING, shapes.BOOLEAN, shapes.INTEGER
local as_json, session_of, texts, tool = shapes.json, shapes.session, shapes.texts, shapes.tool

---@return string
local function home_dir()
  return vim.fs.normalize(vim.uv.os_homedir() .. '/.claude')
end

---@return string? directory that the user has chosen instead
local function config_dir()
  local own = vim.env.CLAUDE_CONFIG_DIR
  return own and own ~= '' and vim.fs.normalize(own) or nil
end

local open_diff = tool('openDiff', 'Shows a proposed edit of a file to the user and waits for the decision', {
  old_file_path = STRING,
  new_file_path = STRING,
  new_file_contents = STRING,
  tab_name = STRING,
}, { 'old_file_path', 'new_file_path', 'new_file_contents', 'tab_name' }, function(ctx, args)
  local tab = args.tab_name
  shapes.propose(ctx, tab, { path = args.new_file_path, text = args.new_file_contents }, function(outcome)
    if outcome.state == 'accepted' then
      return ctx(texts('FILE_SAVED', outcome.text))
    end
    ctx(texts('DIFF_REJECTED', tab))
  end)
end, { timeout = 0 })

local close_tab = tool('close_tab', 'Closes a proposed edit', { tab_name = STRING }, { 'tab_name' }, function(ctx, args)
  proposals.close(session_of(ctx), args.tab_name, 'it was answered in the terminal')
  ctx(texts('TAB_CLOSED'))
end)

local close_all = tool('closeAllDiffTabs', 'Closes all proposed edits of this session', {}, {}, function(ctx)
  local count = proposals.close_all(session_of(ctx), 'the agent closed all its proposals')
  ctx(texts(('CLOSED_%d_DIFF_TABS'):format(count)))
end)

--- Finds the first line that contains the first line of a text.
---@param bufnr integer
---@param text string?
---@return integer? line 1-based
local function line_of(bufnr, text)
  local first = text and text:match('^[^\n]+')
  for i, line in ipairs(first and api.nvim_buf_get_lines(bufnr, 0, -1, false) or {}) do
    if line:find(first, 1, true) then
      return i
    end
  end
end

local open_file = tool('openFile', 'Shows a file to the user, at a line or a text', {
  filePath = STRING,
  preview = BOOLEAN,
  startLine = INTEGER,
  endLine = INTEGER,
  startText = STRING,
  endText = STRING,
  selectToEndOfLine = BOOLEAN,
  makeFrontmost = BOOLEAN,
}, { 'filePath' }, function(ctx, args)
  local path, bad = paths.resolve(args.filePath)
  local open_in = not bad and buffers.of_path(path)
  if bad then
    return ctx:fail('validation_error', 'filePath: ' .. bad)
  elseif not agent_sessions.is_in_workspace(path) and (not open_in or buffers.is_unseen(open_in)) then
    local text = "'%s' is outside of the editor's workspace; the user can open it in Neovim"
    return ctx:fail('access_denied', text:format(args.filePath))
  end
  open.load(path, function(bufnr, err)
    if not bufnr then
      return ctx(nil, err)
    elseif args.makeFrontmost ~= false then
      local line = args.startLine or line_of(bufnr, args.startText) or 1
      line = math.max(1, math.min(line, api.nvim_buf_line_count(bufnr)))
      local window, why = show.show(bufnr, { line = line, byte = 0 })
      return ctx(window and texts('Opened file: ' .. path) or nil, why)
    end
    vim.bo[bufnr].buflisted = true
    ctx(as_json({
      success = true,
      filePath = path,
      languageId = vim.bo[bufnr].filetype,
      lineCount = api.nvim_buf_line_count(bufnr),
    }))
  end, ctx)
end)

local diagnostics = shapes.diagnostics_tool('getDiagnostics', function(files)
  return vim.tbl_map(function(file)
    return shapes.diagnostics(file, SEVERITIES)
  end, files)
end)

--- opencode counts lines from 1, Claude Code from 0.
---@param session mcp-tools.agents.Session
---@return integer
local function base_of(session)
  return session.client == 'opencode' and 1 or 0
end

---@param roots string[]
---@param endpoint mcp-tools.agents.OpenEndpoint
---@return table
local function lock(roots, endpoint)
  return {
    pid = endpoint.pid,
    workspaceFolders = roots,
    ideName = 'Neovim',
    transport = 'ws',
    runningInWindows = false,
    authToken = endpoint.token,
  }
end

--- Adds the loopback addresses to those that use no proxy.
---@return string
local function no_proxy()
  local own = vim.env.no_proxy or vim.env.NO_PROXY
  return (own and own ~= '' and own .. ',' or '') .. 'localhost,127.0.0.1,::1'
end

---@type mcp-tools.Agent
return {
  name = 'claude',
  label = 'Claude Code',
  connect = 'type /ide in it, or start `claude --ide`; opencode connects automatically',
  proposes = 'with `--permission-mode default`; never in its modes auto and acceptEdits; opencode proposes none',
  endpoint = { transport = 'websocket', header = 'x-claude-code-ide-authorization', subprotocol = 'mcp' },
  tools = {
    open_diff,
    close_tab,
    close_all,
    open_file,
    diagnostics,
  },

  context = function(context, session)
    local params, before = shapes.selection(context, base_of(session)), session.data.selection
    session.data.selection = params
    if not params and before then
      -- The file was closed or may not be shared, so its selection must be cleared.
      local nowhere = { line = base_of(session), character = 0 }
      params = { text = '', filePath = before.filePath, fileUrl = before.fileUrl }
      params.selection = { start = nowhere, ['end'] = nowhere, isEmpty = true }
    end
    return params and { { method = 'selection_changed', params = params } } or {}
  end,

  notified = function(session, method, params)
    if method == 'ide_connected' then
      session.data.pid = params.pid
    end
  end,

  left = shapes.left,

  mention = function(session, place)
    local base = base_of(session)
    local first, last = place.first, place.last
    if not first and session.client == 'opencode' then
      first, last = 1, 1 -- it ignores a mention without lines, and reads from a single one to the end
    end
    return {
      method = 'at_mentioned',
      params = {
        filePath = place.path,
        lineStart = first and first - 1 + base,
        lineEnd = last and last - 1 + base,
      },
    }
  end,

  discovery = function(endpoint)
    local home, own = home_dir(), config_dir()
    local files, body = {}, lock(endpoint.roots, endpoint)
    -- opencode reads only the one in the home directory.
    for _, directory in ipairs({ home, own ~= home and own or nil }) do
      table.insert(files, { path = ('%s/ide/%d.lock'):format(directory, endpoint.port), body = body })
    end
    return files
  end,

  environment = function(endpoint)
    local file = endpoint.file(shapes.mcp_servers(endpoint.server))
    local env = {}
    if endpoint.token then
      env.CLAUDE_CODE_SSE_PORT = tostring(endpoint.port)
      env.ENABLE_IDE_INTEGRATION = 'true'
      env.no_proxy, env.NO_PROXY = no_proxy(), no_proxy()
    end
    local args, plugin = { '--mcp-config', file }, (config_dir() or home_dir()) .. '/nvim-tools'
    -- `connect claude-code lsp` makes this plugin in the user's directory. One of the project is never loaded.
    if shapes.config_text(plugin .. '/.lsp.json') ~= '' then
      vim.list_extend(args, { '--plugin-dir', plugin })
    end
    local rules = shapes.rules(endpoint.server, { '.mcp.json' }, 'mcp__nvim-tools__%s')
    if #rules > 0 then
      table.insert(args, '--allowedTools=' .. table.concat(rules, ','))
    end
    return { command = { 'claude' }, env = env, args = args }
  end,

  skip = function()
    local theirs = package.loaded['claudecode'] -- with two lock files for a directory, Claude Code connects to neither
    local runs = type(theirs) == 'table' and type(theirs.state) == 'table' and theirs.state.server ~= nil
    return runs and 'claudecode.nvim is running and does the same' or nil
  end,
}
