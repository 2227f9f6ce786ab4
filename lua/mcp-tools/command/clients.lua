--- Subcommands for AI clients: connect and disconnect change their configuration, terminal starts one, send mentions
--- code to one.

local agents = require('mcp-tools.agents')
local clients = require('mcp-tools.bridge.clients')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local diff = require('mcp-tools.ui.window.diff')
local editor_agents = require('mcp-tools.editor.agents')
local editor_context = require('mcp-tools.editor.context')
local notify = require('mcp-tools.notify')
local permissions = require('mcp-tools.agents.permissions')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local suggest = require('mcp-tools.util.suggest')
local terminal = require('mcp-tools.agents.terminal')
local trim = require('mcp-tools.util.trim')

---@type table<string, mcp-tools.Subcommand>
local M = {}

local show

--- Shortens a path, as a message has one line.
---@param path string
---@return string
local function short(path)
  return vim.fn.fnamemodify(path, ':~')
end

--- Returns what to report.
---@param verb string
---@param arguments string[]
---@return string changed after a change
---@return string unchanged if nothing had to be changed
local function outcomes(verb, arguments)
  if verb == 'connect' then
    return 'is configured', 'is already configured'
  elseif vim.list_contains(arguments, '--permissions') then
    return 'asks for all tools again', 'allows no tools'
  end
  return 'is disconnected', 'is not connected'
end

---@param verb string
---@param arguments string[]
---@param shown string the confirmed diff; if the change is different now, the new diff is shown
---@param done? fun() called after the file was written
local function write(verb, arguments, shown, done)
  local command = { verb, '--yes', '--shown', vim.fn.sha256(shown) }
  clients.run(vim.list_extend(command, arguments), function(answer, fault)
    if not answer then
      return notify.error(fault)
    elseif answer.needed and not answer.written then
      notify.warn(short(answer.path) .. ' has changed; nothing was written. Review the new diff')
      return show(verb, arguments, done)
    end
    local advice = answer.advice or ''
    local outcome = ('%s %s (%s)'):format(arguments[1], outcomes(verb, arguments), short(answer.path))
    if done or advice == '' then
      notify.info(('%s. %s'):format(outcome, advice))
    else -- a message would be cut
      notify.info(outcome)
      local lines = sanitize.lines((advice:gsub('%. ', '.\n')))
      scratch.show(verb .. ' ' .. arguments[1], lines, { title = 'what to do next' })
    end
    if done then
      done()
    end
  end)
end

---@param verb string
---@param arguments string[] the client's name first
---@param done? fun()
function show(verb, arguments, done)
  clients.run(vim.list_extend({ verb, '--dry-run' }, arguments), function(answer, fault)
    if not answer then
      return notify.error(fault)
    elseif not answer.needed then
      local _, unchanged = outcomes(verb, arguments)
      return notify.info(('%s %s (%s)'):format(arguments[1], unchanged, short(answer.path)))
    end
    local buffer ---@type integer
    local is_accepted = false
    local function confirm()
      is_accepted = true
      write(verb, arguments, answer.diff, done)
      scratch.close(buffer)
    end
    buffer = scratch.show(verb .. ' ' .. arguments[1], sanitize.lines(answer.diff), {
      filetype = 'diff',
      spans = diff.spans,
      title = answer.files,
      tall = true,
      keys = { { lhs = 'y', word = 'write', description = 'write this change', run = confirm, accepts = true } },
      on_close = function()
        if not is_accepted then
          notify.info('nothing was written')
        end
      end,
    })
  end)
end

--- Lets the user choose a client.
---@param verb 'connect'|'disconnect'
---@param words string[] options of the command `mcp-tools`
---@param done? fun() called after the file was written
local function choose(verb, words, done)
  local scope = vim.list_contains(words, '--project') and { '--project' } or {}
  clients.run(vim.list_extend({ 'clients' }, scope), function(found, fault)
    if not found then
      return notify.error(fault)
    end
    if verb == 'disconnect' then
      found = vim.tbl_filter(function(client)
        return client.state == 'connected'
      end, found)
      if #found == 0 then
        return notify.info('no client is connected' .. (#scope > 0 and ' by the files of this project' or ''))
      end
    end
    local function line(client)
      return ('%s%s, %s'):format(client.title, client.installed and '' or ' (not installed)', client.state)
    end
    vim.ui.select(found, { prompt = ('%s which client?'):format(verb), format_item = line }, function(client)
      if client then
        show(verb, vim.list_extend({ client.name }, words), done)
      end
    end)
  end)
end

--- Makes the function of a subcommand.
---@param verb 'connect'|'disconnect'
---@param options table<string, string> word → option of the command `mcp-tools`
---@return fun(rest: string, bang: boolean, range: integer[]?, done: fun()?) `done` is called after the file was written
local function runner(verb, options)
  return function(rest, _, _, done)
    local words = vim.split(rest, '%s+', { trimempty = true })
    local name = not options[words[1] or ''] and table.remove(words, 1) or nil
    for i, word in ipairs(words) do
      if not options[word] then
        return notify.error(("unknown word '%s'; valid: %s"):format(word, table.concat(vim.tbl_keys(options), ', ')))
      end
      words[i] = options[word]
    end
    local names = clients.NAMES
    if not name then
      return choose(verb, words, done)
    elseif not vim.list_contains(names, name) then
      local near = suggest(name, names)
      local advice = near and ('did you mean %s?'):format(near) or ('known: ' .. table.concat(names, ', '))
      return notify.error(("unknown client '%s'; %s"):format(name, advice))
    end
    show(verb, vim.list_extend({ name }, words), done)
  end
end

--- Makes a completion of clients, then words.
---@param options table<string, string>
---@return fun(lead: string, rest: string): string[]
local function completer(options)
  return function(_, rest)
    return rest:find('%S') and vim.tbl_keys(options) or clients.NAMES
  end
end

local CONNECT_OPTIONS = {}
for _, word in ipairs({ 'project', 'http', 'skill', 'hooks', 'lsp', 'permissions' }) do
  CONNECT_OPTIONS[word] = '--' .. word
end

---@type mcp-tools.Subcommand
M.connect = {
  usage = '[CLIENT] [project http skill hooks lsp permissions]',
  description = "add this server to an AI client's configuration: to yours, or with `project` to that of the project."
    .. ' The client then finds the editor automatically, or with `http` by the URL and token of this project.'
    .. ' `skill` adds a SKILL.md that explains when to use the tools, `hooks` adds hooks (|mcp-tools-hooks|), `lsp`'
    .. ' adds your language servers (|mcp-tools-lsp|), `permissions` allows the tools that only read'
    .. ' (|mcp-tools-permissions|). The change is shown first',
  run = runner('connect', CONNECT_OPTIONS),
  complete = completer(CONNECT_OPTIONS),
  arguments = 7,
}

local DISCONNECT_OPTIONS = { project = '--project', permissions = '--permissions' }

---@type mcp-tools.Subcommand
M.disconnect = {
  usage = '[CLIENT] [project permissions]',
  description = "remove this server from an AI client's configuration, or with `permissions` only the tools that"
    .. ' are allowed there; the change is shown first',
  run = runner('disconnect', DISCONNECT_OPTIONS),
  complete = completer(DISCONNECT_OPTIONS),
  arguments = 3,
}

---@type mcp-tools.Subcommand
M.terminal = {
  usage = 'AGENT [ARGUMENTS]',
  description = 'start an agent in a terminal. All but gemini get your tools; an agent of the option `agents` also'
    .. ' finds this editor, without a change of its settings',
  run = function(rest)
    local words = vim.split(rest, '%s+', { trimempty = true })
    local name = table.remove(words, 1)
    if not name then
      return notify.error('which agent? :McpTools terminal AGENT (<Tab> lists them)')
    end
    local permitted, err
    if config.get().agent_permissions then
      permitted, err = permissions.names(core.get().registry)
    end
    if err then
      notify.warn(('%s asks for all tools: %s'):format(name, err))
    end
    terminal.start(name, words, permitted, function(fault)
      if fault then
        notify.error(fault)
      end
    end)
  end,
  complete = agents.names,
}

--- Delay in ms before the prompt is typed into the terminal. The mention takes the longer way over the bridge, and must
--- arrive first.
local MENTIONED_MS = 400

--- Returns what to mention: the lines of the range or the selection, otherwise the whole file.
---@param range integer[]?
---@return mcp-tools.agents.Place?
local function current_place(range)
  local active = editor_context.get().active
  local selection = active and active.selection
  if not active then
    return nil
  end
  local place = { path = active.path, lines = vim.api.nvim_buf_line_count(active.bufnr) }
  if range then
    place.first, place.last = range[1], range[2]
  elseif selection then
    place.first, place.last = selection.start.line + 1, selection.finish.line + 1
  end
  if place.first then
    local lines = vim.api.nvim_buf_get_lines(active.bufnr, place.first - 1, place.last, false)
    place.text = table.concat(lines, '\n')
  end
  return place
end

---@param session mcp-tools.agents.Session
---@return string
local function label(session)
  return sanitize.line(trim(('%s %s'):format(session.client, session.version)))
end

---@param session mcp-tools.agents.Session
---@param place mcp-tools.agents.Place
---@param prompt string
local function send(session, place, prompt)
  local is_mentioned, why_not = agents.mention(session, place)
  local own_terminal = terminal.of(session)
  if own_terminal and (prompt ~= '' or not is_mentioned) then
    local lines = place.first and (' lines %d-%d'):format(place.first, place.last) or ''
    local mention = is_mentioned and '' or ('@%s%s '):format(place.path, lines)
    return vim.defer_fn(function()
      terminal.type(own_terminal, mention .. prompt)
    end, is_mentioned and MENTIONED_MS or 0)
  elseif why_not then
    return notify.warn(('%s: %s'):format(label(session), why_not))
  elseif not is_mentioned then
    return notify.warn(('%s does not accept mentions; it sees your file and selection anyway'):format(label(session)))
  elseif prompt ~= '' then
    notify.warn('only a terminal of this editor (:McpTools terminal) accepts a prompt; the place was mentioned')
  end
end

---@type mcp-tools.Subcommand
M.send = {
  usage = '[PROMPT]',
  range = true,
  description = 'mention the file, the lines of a range or the selection to a connected agent; in a terminal of this'
    .. ' editor PROMPT is typed as well, without Enter',
  run = function(prompt, _, range)
    local sessions = editor_agents.sessions()
    local place = current_place(range)
    if #sessions == 0 then
      return notify.error('no agent is connected', 'See :h mcp-tools-agents')
    elseif not place then
      return notify.error('nothing to mention: the buffer has no file, or a sensitive one')
    elseif #sessions == 1 then
      return send(sessions[1], place, prompt)
    end
    vim.ui.select(sessions, { prompt = 'Which agent?', format_item = label }, function(session)
      if session then
        send(session, place, prompt)
      end
    end)
  end,
}

return M
