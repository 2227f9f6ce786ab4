--- Subcommands for agents in terminals: terminal and send.

local editor_agents = require('mcp-tools.editor.agents')
local editor_context = require('mcp-tools.editor.context')
local agents = require('mcp-tools.agents')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local terminal = require('mcp-tools.agents.terminal')
local trim = require('mcp-tools.util.trim')

---@type table<string, mcp-tools.Subcommand>
local M = {}

---@type mcp-tools.Subcommand
M.terminal = {
  usage = 'AGENT [ARGUMENTS]',
  description = 'start an agent in a terminal. All but gemini get your tools; an agent of the option `agents` also'
    .. ' finds this editor, without a change of its settings',
  run = function(rest)
    local words = vim.split(rest, '%s+', { trimempty = true })
    local name = table.remove(words, 1)
    if not name then
      return notify.error(('which agent? :McpTools terminal %s'):format(table.concat(agents.names(), ' | ')))
    end
    terminal.start(name, words, function(fault)
      if fault then
        notify.error(fault)
      end
    end)
  end,
  complete = function()
    return agents.names()
  end,
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
