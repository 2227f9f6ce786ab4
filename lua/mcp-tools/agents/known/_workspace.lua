-- The part that Gemini CLI and Qwen Code share: the published protocol for editors, two tools and three notifications.
-- https://github.com/google-gemini/gemini-cli/blob/main/docs/ide-integration/ide-companion-spec.md
--
-- The field for directory trust is omitted: these agents would accept our answer instead of asking the user.

local proposals = require('mcp-tools.editor.agents.proposals')
local agent_sessions = require('mcp-tools.editor.agents')
local shapes = require('mcp-tools.agents.known._shapes')

--- Maximum number of files that the agents store.
local MAX_FILES = 10

--- Returns the session of a call. The call may be the first message after a restart of the bridge.
---@param ctx mcp-tools.Ctx
---@return mcp-tools.agents.Session
local function session_of(ctx)
  local session = shapes.session(ctx)
  proposals.resume(session)
  return session
end

--- Sends a notification, or queues it until the session is connected again.
---@param session mcp-tools.agents.Session may have been replaced since
---@param method string
---@param params table
local function notify(session, method, params)
  local now = agent_sessions.session(session.key)
  if not (now and now:push(method, params)) then
    session.data.queued = session.data.queued or {}
    table.insert(session.data.queued, { method, params })
  end
end

--- Makes the callback of a proposal: it notifies the agent, whose call has already ended.
---@param session mcp-tools.agents.Session
---@param path string as the agent sent it
---@return fun(outcome: mcp-tools.agents.Outcome)
local function notify_of_outcome(session, path)
  return function(outcome)
    if outcome.state == 'accepted' then
      notify(session, 'ide/diffAccepted', { filePath = path, content = outcome.text })
    elseif not outcome.quiet then
      notify(session, 'ide/diffRejected', { filePath = path })
    end
  end
end

local open_diff = shapes.tool(
  'openDiff',
  '(IDE Tool) Shows a proposed edit of a file to the user. A notification reports the decision.',
  { filePath = shapes.STRING, newContent = shapes.STRING },
  { 'filePath', 'newContent' },
  function(ctx, args)
    local session, path = session_of(ctx), args.filePath
    local spec = { path = path, text = args.newContent }
    local ok, fault, code = proposals.open(session, path, spec, notify_of_outcome(session, path))
    if not ok then
      return ctx:fail(code or 'tool_error', fault)
    end
    ctx(shapes.texts())
  end
)

local close_diff = shapes.tool(
  'closeDiff',
  '(IDE Tool) Closes a proposed edit. Returns its text with the changes of the user.',
  { filePath = shapes.STRING, suppressNotification = shapes.BOOLEAN },
  { 'filePath' },
  function(ctx, args)
    local closed = proposals.close(
      session_of(ctx),
      args.filePath,
      'it was answered in the terminal',
      args.suppressNotification == true
    )
    -- The agent writes this text if the user has accepted in the terminal.
    ctx(shapes.json(closed and { content = closed.shown } or vim.empty_dict()))
  end
)

---@param context mcp-tools.Context
---@return table[]
local function open_files(context)
  local active, list = context.active, {}
  local function add(path, at)
    local file = { path = path, timestamp = at }
    if active and path == active.path then
      file.isActive = true
      file.cursor = { line = active.cursor.line + 1, character = active.cursor.character + 1 }
      file.selectedText = active.selection and active.selection.text or nil
    end
    table.insert(list, file)
  end
  local seen = {}
  for _, file in ipairs(context.open_files) do
    if not seen[file.path] and #list < MAX_FILES then
      seen[file.path] = true
      add(file.path, file.at)
    end
  end
  if active and not seen[active.path] then
    add(active.path, os.time() * 1000)
  end
  return list
end

local M = {}

--- Rejects all open proposals when Neovim exits; otherwise the agents would wait forever.
---@param name string of the agent
local function reject_at_exit(name)
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = vim.api.nvim_create_augroup('mcp-tools.agents.known.' .. name, {}),
    callback = function()
      for _, session in ipairs(agent_sessions.sessions(name)) do
        for path in pairs(session.data.proposals or {}) do
          session:push('ide/diffRejected', { filePath = path })
        end
      end
    end,
  })
end

--- Makes the definition of an agent with this protocol.
---@param fields table what differs
---@return mcp-tools.Agent
function M.new(fields)
  return vim.tbl_extend('error', {
    endpoint = { transport = 'http', header = 'authorization', scheme = 'bearer' },
    tools = { open_diff, close_diff },
    context = function(context)
      return {
        { method = 'ide/contextUpdate', params = { workspaceState = { openFiles = open_files(context) } } },
      }
    end,
    opened = function(session)
      proposals.resume(session)
      reject_at_exit(session.agent)
      local queued = session.data.queued or {}
      session.data.queued = nil
      for _, push in ipairs(queued) do
        session:push(push[1], push[2])
      end
    end,
    left = function(session, is_bridge_gone)
      if is_bridge_gone then
        return proposals.suspend(session)
      end
      proposals.close_all(session, 'the agent disconnected')
    end,
  }, fields)
end

--- Joins the roots with colons; a root that contains a colon is omitted.
---@param roots string[]
---@return string
function M.workspace_path(roots)
  return table.concat(
    vim.tbl_filter(function(root)
      return not root:find(':', 1, true)
    end, roots),
    ':'
  )
end

return M
