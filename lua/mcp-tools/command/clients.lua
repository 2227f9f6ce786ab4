--- Subcommands that change the configuration of AI clients: connect and disconnect.

local clients = require('mcp-tools.bridge.clients')
local diff = require('mcp-tools.ui.window.diff')
local keepers = require('mcp-tools.ui.window.keeper')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local suggest = require('mcp-tools.util.suggest')

---@type table<string, mcp-tools.Subcommand>
local M = {}

local show

--- Word → option of the command `mcp-tools`.
---@type table<string, string>
local CONNECT_OPTIONS = {}
for _, word in ipairs({ 'project', 'http', 'skill', 'hooks', 'lsp', 'permissions' }) do
  CONNECT_OPTIONS[word] = '--' .. word
end

--- Shows an error of the command `mcp-tools`, with the words of our command in place of its options.
---@param fault string
local function report(fault)
  local text = fault:gsub('%-%-(%l+)', function(word)
    return CONNECT_OPTIONS[word] and word
  end)
  notify.error(text)
end

--- Shortens a path, as a message has one line.
---@param path string
---@return string
local function short(path)
  return vim.fn.fnamemodify(path, ':~')
end

--- Returns how to report the outcome of a command.
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
---@param done? fun(advice: string) called after the file was written
local function write(verb, arguments, shown, done)
  local command = { verb, '--yes', '--shown', vim.fn.sha256(shown) }
  clients.run(vim.list_extend(command, arguments), function(answer, fault)
    if not answer then
      return report(fault)
    elseif answer.needed and not answer.written then
      notify.warn(short(answer.path) .. ' has changed; nothing was written. Review the new diff')
      return show(verb, arguments, done)
    end
    local advice = answer.advice or ''
    local changed = outcomes(verb, arguments)
    local outcome = ('%s %s'):format(arguments[1], changed)
    local lines = sanitize.lines((advice:gsub('%. ', '.\n')))
    if not done and #lines == 1 and advice ~= '' then
      notify.info(outcome, lines[1]) -- the file would not fit as well; it was the title of the diff
    else
      local _, others = answer.files:gsub(', ', '')
      notify.info(('%s (%s)'):format(outcome, others == 0 and answer.files or ('%d files'):format(others + 1)))
    end
    if done then
      done(advice)
    elseif #lines > 1 then -- a message would be cut
      scratch.show(verb .. ' ' .. arguments[1], lines, { title = 'what to do next', stay = not keepers.may_enter() })
    end
  end)
end

---@param verb string
---@param arguments string[] the client's name first
---@param done? fun(advice: string)
function show(verb, arguments, done)
  clients.run(vim.list_extend({ verb, '--dry-run' }, arguments), function(answer, fault)
    if not answer then
      return report(fault)
    elseif not answer.needed then
      local _, unchanged = outcomes(verb, arguments)
      return notify.info(('%s %s (%s)'):format(arguments[1], unchanged, short(answer.path)))
    end
    local buffer ---@type integer
    local is_accepted = false
    -- The answer takes a while, in which the user may have returned to another text.
    local keys_count_from = vim.uv.hrtime() + keepers.GUARD_NS
    local function confirm()
      if vim.uv.hrtime() < keys_count_from then
        return
      end
      is_accepted = true
      write(verb, arguments, answer.diff, done)
      scratch.close(buffer)
    end
    buffer = scratch.show(verb .. ' ' .. arguments[1], sanitize.lines(answer.diff), {
      filetype = 'diff',
      spans = diff.spans,
      title = answer.files,
      tall = true,
      stay = not keepers.may_enter(),
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
---@param done? fun(advice: string) called after the file was written
local function choose(verb, words, done)
  local scope = vim.list_contains(words, '--project') and { '--project' } or {}
  clients.run(vim.list_extend({ 'clients' }, scope), function(found, fault)
    if not found then
      return report(fault)
    end
    if verb == 'disconnect' then
      found = vim.tbl_filter(function(client)
        return client.state == 'connected'
      end, found)
      if #found == 0 then
        return notify.info('no client is connected' .. (#scope > 0 and ' by the files of this project' or ''))
      end
    end
    local prompt = ('%s which client?'):format(verb == 'connect' and 'Connect' or 'Disconnect')
    local installed = vim.tbl_filter(function(client)
      return client.installed or client.state == 'connected'
    end, found)
    if #installed > 0 and #installed < #found then
      found, prompt = installed, prompt .. ' (:McpTools connect NAME for one that is not installed)'
    end
    local function line(client)
      local is_here = client.installed or client.state == 'connected'
      return ('%s, %s'):format(client.title, is_here and client.state or 'not installed')
    end
    vim.ui.select(found, { prompt = prompt, format_item = line }, function(client)
      if client then
        show(verb, vim.list_extend({ client.name }, words), done)
      end
    end)
  end)
end

--- Makes the function of a subcommand.
---@param verb 'connect'|'disconnect'
---@param options table<string, string> word → option of the command `mcp-tools`
---@return fun(rest: string, bang: boolean, range: integer[]?, done: fun(advice: string)?) run see `choose`
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

return M
