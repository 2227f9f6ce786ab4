-- What Gemini CLI and Qwen Code share: the published companion protocol, with its two tools and three notifications.
-- https://github.com/google-gemini/gemini-cli/blob/main/docs/ide-integration/ide-companion-spec.md
--
-- Whether the folder is trusted is left out on purpose: these agents would take our word for that of their person.

local content = require('mcp-tools.content')
local json = require('mcp-tools.util.json')
local proposals = require('mcp-tools.editor.agents.proposals')
local companion = require('mcp-tools.editor.agents')
local shapes = require('mcp-tools.agents.known._shapes')

--- Files that the agents keep.
local MAX_FILES = 10

--- The session of a call. When the bridge was away, the call may be the first that comes of it.
---@param ctx mcp-tools.Ctx
---@return mcp-tools.companion.Session
local function session_of(ctx)
  local session = shapes.session(ctx)
  proposals.resume(session)
  return session
end

--- Tells a session something, also one that is away for a moment: it hears of it when it is back.
---@param session mcp-tools.companion.Session as it was
---@param method string
---@param params table
local function tell(session, method, params)
  local now = companion.session(session.key)
  if not (now and now:push(method, params)) then
    session.data.late = session.data.late or {}
    table.insert(session.data.late, { method, params })
  end
end

--- The outcome of a proposal, which was asked for long ago.
---@param session mcp-tools.companion.Session
---@param path string as the agent named it
---@return fun(outcome: mcp-tools.companion.Outcome)
local function tells(session, path)
  return function(outcome)
    if outcome.state == 'accepted' then
      tell(session, 'ide/diffAccepted', { filePath = path, content = outcome.text })
    elseif not outcome.quiet then
      tell(session, 'ide/diffRejected', { filePath = path })
    end
  end
end

local open_diff = {
  name = 'openDiff',
  description = '(IDE Tool) Show a proposal for a file to the person. The outcome comes as a notification.',
  annotations = { read_only = true },
  input_schema = {
    type = 'object',
    properties = { filePath = { type = 'string' }, newContent = { type = 'string' } },
    required = { 'filePath', 'newContent' },
  },
  execute = function(ctx, args)
    local session = session_of(ctx)
    local path = args.filePath
    local spec = { path = path, text = args.newContent }
    local ok, fault, code = proposals.open(session, path, spec, tells(session, path))
    if not ok then
      return ctx:fail(code or 'tool_error', fault)
    end
    ctx(content.result({ content = {} }))
  end,
}

local close_diff = {
  name = 'closeDiff',
  description = '(IDE Tool) Take a proposal back. Answers with its text as the person has it.',
  annotations = { read_only = true },
  input_schema = {
    type = 'object',
    properties = { filePath = { type = 'string' }, suppressNotification = { type = 'boolean' } },
    required = { 'filePath' },
  },
  execute = function(ctx, args)
    local session = session_of(ctx)
    local closed =
      proposals.close(session, args.filePath, 'it was answered in the terminal', args.suppressNotification == true)
    -- When the person has said yes there, the agent writes this text.
    local answer = closed and { content = closed.shown } or vim.empty_dict()
    ctx(content.result({ content = content.text((assert(json.encode(answer)))) }))
  end,
}

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

--- Rejects what is still proposed when Neovim ends: the agents would wait for an answer for ever.
---@param name string of the companion
local function reject_at_exit(name)
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = vim.api.nvim_create_augroup('mcp-tools.agents.known.' .. name, {}),
    callback = function()
      for _, session in ipairs(companion.sessions(name)) do
        for path in pairs(session.data.proposals or {}) do
          session:push('ide/diffRejected', { filePath = path })
        end
      end
    end,
  })
end

--- A companion of this kind.
---@param fields table what it has of its own
---@return mcp-tools.Companion
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
      reject_at_exit(session.companion)
      local late = session.data.late or {}
      session.data.late = nil
      for _, push in ipairs(late) do
        session:push(push[1], push[2])
      end
    end,
    left = function(session, is_bridge_gone)
      if is_bridge_gone then
        return proposals.suspend(session)
      end
      proposals.close_all(session, 'the agent is gone')
    end,
  }, fields)
end

--- The roots as one text; one with a colon in its name cannot be told.
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

--- Our server, as these agents have it in their settings.
---@param endpoint mcp-tools.companion.TerminalEndpoint
---@return table
function M.settings(endpoint)
  local server = endpoint.server
  return {
    mcpServers = {
      [server.name] = { httpUrl = server.url, headers = { Authorization = 'Bearer ' .. server.token } },
    },
  }
end

return M
