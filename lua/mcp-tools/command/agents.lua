--- Subcommands for terminal agents: terminal and focus start and show them; send, add and type pass files and text.

local access = require('mcp-tools.privacy.access')
local agents = require('mcp-tools.agents')
local buffers = require('mcp-tools.editor.buffer')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local current = require('mcp-tools.bridge.current')
local editor_agents = require('mcp-tools.editor.agents')
local editor_context = require('mcp-tools.editor.context')
local explorers = require('mcp-tools.agents.explorers')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local paths = require('mcp-tools.files.paths')
local permissions = require('mcp-tools.agents.permissions')
local sanitize = require('mcp-tools.util.sanitize')
local terminal = require('mcp-tools.agents.terminal')
local trim = require('mcp-tools.util.trim')

local api = vim.api

---@type table<string, mcp-tools.Subcommand>
local M = {}

-- Terminals -----------------------------------------------------------------------------------------------------------

---@param name string of an agent
---@param words string[] arguments of its command
local function start(name, words)
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
end

---@param one mcp-tools.agents.Terminal
---@return string
local function title(one)
  return sanitize.line(('%s: %s'):format(one.name, vim.b[one.bufnr].term_title or 'terminal'))
end

--- Lets the user choose a running terminal, or an agent to start.
local function choose()
  local items = vim.list_extend(terminal.list(), terminal.installed())
  vim.ui.select(items, {
    prompt = 'Which agent?',
    format_item = function(item)
      return type(item) == 'string' and 'start ' .. item or title(item)
    end,
  }, function(item)
    if type(item) == 'string' then
      start(item, {})
    elseif item then
      terminal.show(item)
    end
  end)
end

--- Makes a subcommand that shows, hides or starts a terminal.
---@param focus boolean see `terminal.toggle`
---@return fun(rest: string, bang: boolean)
local function toggler(focus)
  return function(rest, bang)
    local words = vim.split(rest, '%s+', { trimempty = true })
    local name = table.remove(words, 1)
    local is_new = bang or #words > 0
    if not is_new and terminal.toggle(name, focus) then
      return
    elseif name then
      return start(name, words)
    end
    choose()
  end
end

---@type mcp-tools.Subcommand
M.terminal = {
  usage = '[AGENT [ARGUMENTS]]',
  bang = true,
  description = 'start an agent in a terminal, or hide or show the one that runs. ARGUMENTS, such as --resume, or `!`'
    .. ' start another one. All but gemini get your tools; an agent of the option `agents` also finds this editor,'
    .. ' without a change of its settings. Without AGENT, hide or show the last terminal or choose an agent; with `!`'
    .. ' choose among all',
  run = toggler(false),
  complete = terminal.names,
}

---@type mcp-tools.Subcommand
M.focus = {
  usage = '[AGENT]',
  description = 'as `terminal`, but go to a terminal that is visible in another window; hide it only from its own',
  run = toggler(true),
  complete = terminal.names,
}

-- Files and texts -----------------------------------------------------------------------------------------------------

--- Delay in ms before the prompt is typed into the terminal. The mention must arrive first, and takes longer because it
--- is sent through the bridge.
local MENTIONED_MS = 400

--- A connected agent, a terminal of this editor, or both.
---@class mcp-tools.agents.Target
---@field label string
---@field session mcp-tools.agents.Session?
---@field terminal mcp-tools.agents.Terminal?

---@return mcp-tools.agents.Target[]
local function targets()
  local list, connected = {}, {}
  for _, session in ipairs(editor_agents.sessions()) do
    local one = terminal.of(session)
    connected[one or 0] = true
    local label = sanitize.line(trim(('%s %s'):format(session.client, session.version)))
    table.insert(list, { session = session, terminal = one, label = label })
  end
  for _, one in ipairs(terminal.list()) do
    if not connected[one] then
      table.insert(list, { terminal = one, label = title(one) })
    end
  end
  return list
end

--- Reports that no connected client accepts a mention.
local function report_no_agent()
  local names = table.concat(current.client_names(), ', ')
  if names == '' then
    return notify.error('no agent is connected', 'See :h mcp-tools-agents')
  end
  notify.error(sanitize.line(names) .. ' accepts no selection', 'See :h mcp-tools-agents')
end

--- Calls `use` with the agent, which the user chooses if there are several.
---@param list mcp-tools.agents.Target[]
---@param use fun(target: mcp-tools.agents.Target)
local function with_target(list, use)
  if #list == 0 then
    return report_no_agent()
  elseif #list == 1 then
    return use(list[1])
  end
  local function label(target)
    return target.label
  end
  vim.ui.select(list, { prompt = 'Which agent?', format_item = label }, function(target)
    if target then
      use(target)
    end
  end)
end

--- Vim pattern for what ends a mention in some agent: blanks and punctuation, as JavaScript defines them.
local UNICODE = [[\u00a0\u1680\u2000-\u206f\u3000-\u3002\uff01\uff1f\ufeff]]
local ENDS_MENTION = [=[\m[ \\!"#$%&'()*,;<>?[\]^`{|}]=] .. UNICODE .. ']'

--- Agents in whose mentions a backslash escapes, with what it escapes; mentions of others are quoted.
local ESCAPES = { gemini = ENDS_MENTION, qwen = [=[\m[ !"#$&'()*,;<>?[\]`{|}~]]=] }

--- Returns the text that mentions a path.
---@param path string
---@param agent string
---@return string? text nil: agents may read the end of the path as a mention of another file
local function mention_of(path, agent)
  path = path:gsub('%c', ' ')
  if agent == 'qwen' and vim.fn.match(path, '[' .. UNICODE .. ']') >= 0 then
    return nil -- it escapes only ASCII
  elseif ESCAPES[agent] then
    return '@' .. vim.fn.substitute(path, ESCAPES[agent], [[\\&]], 'g')
  end
  local ends = vim.fn.match(path, ENDS_MENTION)
  if path:find('"', 1, true) or ends >= 0 and path:find('@', ends + 1, true) then
    return nil
  end
  return ends >= 0 and ('@"%s"'):format(path) or '@' .. path
end

--- What to send to an agent.
---@class mcp-tools.agents.Message
---@field places mcp-tools.agents.Place[] to mention
---@field text string to type after them
---@field submit boolean whether to press <Enter>

--- Reports that something was sent, and goes to the terminal if the user wants that.
---@param target mcp-tools.agents.Target
---@param message mcp-tools.agents.Message
local function report_sent(target, message)
  local data = vim.tbl_extend('error', { agent = target.label }, message)
  data.bufnr = target.terminal and target.terminal.bufnr
  local opts = { pattern = 'McpToolsSend', modeline = false, data = data }
  log.guard('an autocommand for User McpToolsSend', api.nvim_exec_autocmds, 'User', opts)
  if target.terminal and config.get('terminal.focus_after_send') then
    terminal.show(target.terminal)
  end
end

---@param target mcp-tools.agents.Target
---@param message mcp-tools.agents.Message
local function deliver(target, message)
  local own_terminal, typed, why_not = target.terminal, '', nil
  for _, place in ipairs(message.places) do
    local is_mentioned, why = false, nil
    if target.session then
      is_mentioned, why = agents.mention(target.session, place)
    end
    if not is_mentioned then
      local lines = place.first and (' lines %d-%d'):format(place.first, place.last) or ''
      local mention = mention_of(place.path, own_terminal and own_terminal.name or '')
      if not mention and own_terminal then
        local text = '%s cannot be mentioned: an @ or a quote in its path may be read as the mention of another file'
        return notify.error(text:format(sanitize.line(place.path)))
      end
      typed, why_not = typed .. ('%s%s '):format(mention or '', lines), why
    end
  end
  local mentions_all = typed == ''
  typed = typed .. message.text
  if not own_terminal and not mentions_all then
    local reason = why_not and ': ' .. why_not or ' does not accept mentions; it sees your file and selection anyway'
    return notify.warn(target.label .. reason)
  elseif own_terminal and (typed ~= '' or message.submit) then
    local wait = mentions_all and #message.places > 0 and MENTIONED_MS or 0
    terminal.type(own_terminal, typed, message.submit, wait)
  elseif message.text ~= '' then
    notify.warn('only a terminal of this editor (:McpTools terminal) accepts a prompt; the file was mentioned')
  end
  report_sent(target, message)
end

--- Returns the current file.
---@param range integer[]?
---@return mcp-tools.context.Active? nil also if the range is in another buffer
local function file_of(range)
  local active = editor_context.get().active
  return active and (not range or active.bufnr == api.nvim_get_current_buf()) and active or nil
end

--- Returns what to mention: the lines of the range or the selection, otherwise the whole file.
---@param range integer[]?
---@return mcp-tools.agents.Place?
local function current_place(range)
  local active = file_of(range)
  local selection = active and active.selection
  if not active then
    return nil
  end
  local place = { path = active.path }
  if range then
    place.first, place.last = range[1], range[2]
  elseif selection then
    place.first, place.last = selection.start.line + 1, selection.finish.line + 1
  end
  if place.first then
    local lines = api.nvim_buf_get_lines(active.bufnr, place.first - 1, place.last, false)
    place.text = table.concat(lines, '\n')
  end
  return place
end

--- Returns the places of files and directories; none if one of them is sensitive.
---@param files mcp-tools.agents.Selected[]
---@return mcp-tools.agents.Place[]
local function places_of(files)
  local places, marked = {}, access.marked()
  for _, file in ipairs(files) do
    local path, bad = paths.resolve(file.path)
    if bad or marked[path] or access.is_sensitive_name(file.path, 'file') then
      notify.error('sensitive file: ' .. sanitize.line(file.path))
      return {}
    end
    table.insert(places, { path = path, first = file.first, last = file.last })
  end
  return places
end

--- Returns lines of the current buffer.
---@param range integer[]?
---@return string text empty if the buffer is sensitive
local function lines_of(range)
  local bufnr = api.nvim_get_current_buf()
  local kind, name = access.buffer_kind(bufnr)
  if access.is_marked(bufnr) or access.is_sensitive_name(name, kind) then
    return ''
  end
  return table.concat(api.nvim_buf_get_lines(bufnr, range and range[1] - 1 or 0, range and range[2] or -1, false), '\n')
end

--- Returns the diagnostics of the current file, one a line.
---@param range integer[]?
---@return string
local function diagnostics_of(range)
  local active, rows = file_of(range), {}
  for _, each in ipairs(active and vim.diagnostic.get(active.bufnr) or {}) do
    local line = each.lnum + 1
    if not range or line >= range[1] and line <= range[2] then
      local severity = vim.diagnostic.severity[each.severity]:lower()
      table.insert(rows, (('%s:%d: %s: %s'):format(active.path, line, severity, each.message):gsub('%c', ' ')))
    end
  end
  return table.concat(rows, '\n')
end

--- Maximum size of a text that is typed, in bytes.
local MAX_TYPED = 256 * 1024

local PLACEHOLDERS = { selection = lines_of, diagnostics = diagnostics_of }

--- Replaces `{selection}` and `{diagnostics}` in a prompt.
---@param prompt string
---@param range integer[]?
---@return string? text nil if a placeholder has no value, or the text is too long
local function expand(prompt, range)
  local missing
  local text = prompt:gsub('{(%l+)}', function(word)
    local value = PLACEHOLDERS[word] and PLACEHOLDERS[word](range)
    missing = missing or value == '' and word
    return value and value:gsub('@', '\\@') -- a file may contain `@.env`, which agents would read
  end)
  if missing then
    notify.error(('no %s here, or the file is sensitive'):format(missing))
    return nil
  elseif #text > MAX_TYPED then
    notify.error(('a text of %d bytes is too long to be typed (maximum %d)'):format(#text, MAX_TYPED))
    return nil
  elseif prompt:find('^%s*{') and text:find('^[%s%c\128-\255]*%p') then
    return 'Text:\n' .. text -- agents run a prompt that begins with `!`, `/`, `#`, `$` or `&` as a command
  end
  return text
end

--- Ends Visual mode, whose indicator would hide a message.
---@param range integer[]?
---@return integer[]? range by default the lines of Visual mode
local function leave_visual(range)
  if vim.fn.mode():find('[vV\22sS\19]') then
    local lines = { vim.fn.line('v'), vim.fn.line('.') }
    table.sort(lines)
    vim.cmd.normal({ '\27', bang = true })
    return range or lines
  end
  return range
end

---@type mcp-tools.Subcommand
M.send = {
  usage = '[PROMPT]',
  range = true,
  bang = true,
  description = 'mention the file, the lines of a range or the selection to an agent; in a file explorer or picker, the'
    .. ' files under the cursor, of a range or marked (|mcp-tools-explorers|). In a terminal of this editor PROMPT is'
    .. ' typed as well (|:McpTools-type|); with `!` also <Enter>',
  run = function(prompt, bang, range)
    range = leave_visual(range)
    local files = explorers.selected(range)
    local places = files and places_of(files) or { (not files and current_place(range) or nil) }
    local list = targets()
    if #list == 0 then
      return report_no_agent()
    elseif #places == 0 then
      return notify.error(
        'nothing to mention: ' .. (files and 'no file there' or 'the buffer has no file, or a sensitive one')
      )
    end
    local text = expand(prompt, range)
    if text then
      with_target(list, function(target)
        deliver(target, { places = places, text = text, submit = bang })
      end)
    end
  end,
}

--- Counts the lines of a file.
---@param path string absolute
---@param max integer where to stop
---@return integer count 0 for a directory, or if it cannot be read
local function line_count(path, max)
  local bufnr = buffers.of_path((paths.resolve(path)))
  if bufnr then
    return api.nvim_buf_line_count(bufnr)
  end
  local is_readable = vim.uv.fs_stat(path).type == 'file' and vim.uv.fs_access(path, 'R')
  return is_readable and #vim.iter(io.lines(path)):take(max):totable() or 0
end

---@type mcp-tools.Subcommand
M.add = {
  usage = 'FILE [FIRST [LAST]]',
  description = 'mention a file, some of its lines, or a directory to an agent',
  run = function(rest)
    local name, first, last = rest:match('^(.-)%s+(%d+)%s*(%d*)$')
    if not name or vim.uv.fs_stat(rest) then
      name, first, last = rest, nil, nil
    end
    name = vim.uv.fs_stat(name) and name or vim.fn.expand(name)
    if rest == '' then
      return notify.error('add: name a file')
    elseif not vim.uv.fs_stat(name) then
      return notify.error(('no such file: %s'):format(sanitize.line(rest)))
    end
    local file = { path = vim.fn.fnamemodify(name, ':p'), first = tonumber(first) }
    if file.first then
      local wanted = tonumber(last) or file.first
      file.last = math.min(wanted, line_count(file.path, wanted))
      if file.first < 1 or file.first > file.last then
        return notify.error(('no such lines: %s'):format(sanitize.line(rest)))
      end
    end
    local places = places_of({ file })
    if #places > 0 then
      with_target(targets(), function(target)
        deliver(target, { places = places, text = '', submit = false })
      end)
    end
  end,
  complete = function(lead)
    return vim.fn.getcompletion(lead, 'file')
  end,
}

---@type mcp-tools.Subcommand
M.type = {
  usage = 'TEXT',
  range = true,
  bang = true,
  description = 'type TEXT into the terminal of an agent; with `!` also <Enter>. {selection} in it is replaced by the'
    .. ' lines of the range or the whole buffer, {diagnostics} by those of the current file or the range',
  run = function(text, bang, range)
    local expanded = expand(text, leave_visual(range))
    if not expanded then
      return
    end
    local list = vim.tbl_filter(function(target)
      return target.terminal ~= nil
    end, targets())
    if #list == 0 then
      return notify.error('no agent runs in a terminal of this editor', 'Start one with :McpTools terminal')
    end
    with_target(list, function(target)
      deliver(target, { places = {}, text = expanded, submit = bang })
    end)
  end,
}

return M
