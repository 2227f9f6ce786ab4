--- Subcommands that change the configuration of AI clients: connect and disconnect.

local clients = require('mcp-tools.bridge.clients')
local diff = require('mcp-tools.ui.window.diff')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local suggest = require('mcp-tools.util.suggest')

---@type table<string, mcp-tools.Subcommand>
local M = {}

local show

--- Shortens a path, as a message has one line.
---@param path string
---@return string
local function short(path)
  return vim.fn.fnamemodify(path, ':~')
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
    local what = verb == 'connect' and 'is connected' or 'is disconnected'
    notify.info(('%s %s (%s). %s'):format(arguments[1], what, short(answer.path), answer.advice or ''))
    if done then
      done()
    end
  end)
  local buffer = vim.fn.bufnr(('mcp-tools://%s %s'):format(verb, arguments[1]))
  if buffer ~= -1 then
    vim.api.nvim_buf_delete(buffer, { force = true })
  end
end

---@param verb string
---@param arguments string[] the client's name first
---@param done? fun()
function show(verb, arguments, done)
  clients.run(vim.list_extend({ verb, '--dry-run' }, arguments), function(answer, fault)
    if not answer then
      return notify.error(fault)
    elseif not answer.needed then
      local is = verb == 'connect' and 'is already connected' or 'is not connected'
      return notify.info(('%s %s (%s)'):format(arguments[1], is, short(answer.path)))
    end
    local window = verb .. ' ' .. arguments[1]
    local lines = sanitize.lines(answer.diff)
    local function confirm()
      if not scratch.reveal() then
        write(verb, arguments, answer.diff, done)
      end
    end
    scratch.show(window, lines, {
      filetype = 'diff',
      spans = diff.spans,
      title = short(answer.path),
      keys = { { lhs = 'y', word = 'write', description = 'write this change', run = confirm } },
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

local CONNECT_OPTIONS = { project = '--project', http = '--http', skill = '--skill' }

---@type mcp-tools.Subcommand
M.connect = {
  usage = '[CLIENT] [project] [http] [skill]',
  description = "add this server to an AI client's configuration: to yours, or with `project` to that of the project."
    .. ' The client then finds the editor automatically, or with `http` by the URL and token of this project.'
    .. ' `skill` adds a SKILL.md that explains when to use the tools. The change is shown first',
  run = runner('connect', CONNECT_OPTIONS),
  complete = completer(CONNECT_OPTIONS),
  arguments = 4,
}

local DISCONNECT_OPTIONS = { project = '--project' }

---@type mcp-tools.Subcommand
M.disconnect = {
  usage = '[CLIENT] [project]',
  description = "remove this server from an AI client's configuration; the change is shown first",
  run = runner('disconnect', DISCONNECT_OPTIONS),
  complete = completer(DISCONNECT_OPTIONS),
  arguments = 2,
}

return M
