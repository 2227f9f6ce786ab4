--- Subcommands for AI clients' own configuration: connect and disconnect.

local clients = require('mcp-tools.bridge.clients')
local diff = require('mcp-tools.ui.window.diff')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local suggest = require('mcp-tools.util.suggest')

---@type table<string, mcp-tools.Subcommand>
local M = {}

local show

--- Short, as people know it: a message has one line.
---@param path string
---@return string
local function told(path)
  return vim.fn.fnamemodify(path, ':~')
end

---@param verb string
---@param arguments string[]
---@param shown string diff that was agreed to: what has changed since is shown again
---@param done? fun() called once it is written
local function write(verb, arguments, shown, done)
  local agreed = { verb, '--yes', '--shown', vim.fn.sha256(shown) }
  clients.run(vim.list_extend(agreed, arguments), function(answer, fault)
    if not answer then
      return notify.error(fault)
    elseif answer.needed and not answer.written then
      notify.warn(told(answer.path) .. ' was changed meanwhile; nothing was written. This is the change now')
      return show(verb, arguments, done)
    end
    local what = verb == 'connect' and 'is connected' or 'is disconnected'
    notify.info(('%s %s (%s). %s'):format(arguments[1], what, told(answer.path), answer.advice or ''))
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
      local is = verb == 'connect' and 'is connected already' or 'is not connected'
      return notify.info(('%s %s (%s)'):format(arguments[1], is, told(answer.path)))
    end
    local window = verb .. ' ' .. arguments[1]
    local lines = sanitize.lines(answer.diff)
    local function agree()
      if not scratch.reveal() then
        write(verb, arguments, answer.diff, done)
      end
    end
    scratch.show(window, lines, {
      filetype = 'diff',
      spans = diff.spans,
      title = told(answer.path),
      keys = { { lhs = 'y', word = 'write this', description = 'write this', run = agree } },
    })
  end)
end

--- Asks which client.
---@param verb 'connect'|'disconnect'
---@param words string[] options of `mcp-tools`
---@param done? fun() called once it is written
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

--- The subcommand.
---@param verb 'connect'|'disconnect'
---@param options table<string, string> word → option of `mcp-tools`
---@return fun(rest: string, bang: boolean, range: integer[]?, done: fun()?) `done` is called once it is written
local function runner(verb, options)
  return function(rest, _, _, done)
    local words = vim.split(rest, '%s+', { trimempty = true })
    local name = not options[words[1] or ''] and table.remove(words, 1) or nil
    for i, word in ipairs(words) do
      if not options[word] then
        return notify.error(
          ('%s? :McpTools %s [CLIENT] [%s]'):format(word, verb, table.concat(vim.tbl_keys(options), '] ['))
        )
      end
      words[i] = options[word]
    end
    local names = clients.NAMES
    if not name then
      return choose(verb, words, done)
    elseif not vim.list_contains(names, name) then
      local near = suggest(name, names)
      local advice = near and ('did you mean %s?'):format(near) or ('there are ' .. table.concat(names, ', '))
      return notify.error(('no client is called %s; %s'):format(name, advice))
    end
    show(verb, vim.list_extend({ name }, words), done)
  end
end

--- Completes clients, then words.
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
  description = "put this server into an AI client's configuration: yours, or with `project` that of the project; it"
    .. ' finds the editor by itself, or with `http` by the URL and token of this project. `skill` adds a SKILL.md'
    .. ' that tells when to use the tools. The change is shown first',
  run = runner('connect', CONNECT_OPTIONS),
  complete = completer(CONNECT_OPTIONS),
  arguments = 4,
}

local DISCONNECT_OPTIONS = { project = '--project' }

---@type mcp-tools.Subcommand
M.disconnect = {
  usage = '[CLIENT] [project]',
  description = "take this server out of an AI client's configuration again; the change is shown first",
  run = runner('disconnect', DISCONNECT_OPTIONS),
  complete = completer(DISCONNECT_OPTIONS),
  arguments = 2,
}

return M
