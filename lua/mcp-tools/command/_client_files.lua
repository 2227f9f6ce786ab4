--- What `:McpTools connect` and `:McpTools disconnect` have in common: the change is shown, `y` writes it.
---
--- Receives: what was typed.
--- Sends: it to `mcp-tools`; the diff to a window of its own.
--- Does not know about: a client's files.

local clients = require('mcp-tools.bridge.clients')
local notify = require('mcp-tools.notify')
local diff = require('mcp-tools.ui.layout.diff')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.layout.scratch')
local suggest = require('mcp-tools.util.suggest')

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
function M.choose(verb, words, done)
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
---@return fun(rest: string)
function M.run(verb, options)
  return function(rest)
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
      return M.choose(verb, words)
    elseif not vim.list_contains(names, name) then
      local near = suggest(name, names)
      local advice = near and ('did you mean %s?'):format(near) or ('there are ' .. table.concat(names, ', '))
      return notify.error(('no client is called %s; %s'):format(name, advice))
    end
    show(verb, vim.list_extend({ name }, words))
  end
end

--- Completes clients, then words.
---@param options table<string, string>
---@return fun(lead: string, rest: string): string[]
function M.complete(options)
  return function(_, rest)
    return rest:find('%S') and vim.tbl_keys(options) or clients.NAMES
  end
end

return M
