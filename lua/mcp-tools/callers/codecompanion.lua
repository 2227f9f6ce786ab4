--- CodeCompanion as a host: its tools, made from the registry.
---
--- Follows https://codecompanion.olimorris.dev/extending/tools, /extending/extensions and /usage/events.

local assistant = require('mcp-tools.callers.assistant')
local core = require('mcp-tools.core')
local log = require('mcp-tools.log')
local optional = require('mcp-tools.util.optional')

local M = {}

local HOST = 'codecompanion'
local GROUP = 'nvim_tools'
--- Options that only this host has.
local OPTIONS = { group = 'string', on_progress = 'callable', on_state = 'callable' }
--- Keys of `interactions.chat.tools` that are no tools.
local RESERVED = { groups = true, opts = true }
--- ms between two looks while definitions are still being loaded.
local LOADING_MS = 10

---@class mcp-tools.CodeCompanionOpts : mcp-tools.AssistantOpts
---@field group? string name of the group of all of them (default "nvim_tools")
---@field on_progress? fun(name: string, progress: mcp-tools.Progress)
---@field on_state? fun(name: string, state: any) an intermediate result

-- One call ---------------------------------------------------------------------------------------------------------

---@type table<integer, table<string, mcp-tools.AssistantHandle>> calls that run, by chat
local running = {}

local REASONS = { CodeCompanionChatStopped = 'user', CodeCompanionChatClosed = 'session_closed' }

--- Ends the calls of a chat with it. CodeCompanion says so by itself only where a request to its model runs.
local function watch_chats()
  vim.api.nvim_create_autocmd('User', {
    group = vim.api.nvim_create_augroup('mcp-tools.callers.codecompanion', {}),
    pattern = vim.tbl_keys(REASONS),
    desc = 'mcp-tools: cancel the calls of the chat',
    callback = function(event)
      local chat = event.data and event.data.bufnr
      for _, handle in pairs(running[chat] or {}) do
        handle:cancel(REASONS[event.match])
      end
    end,
  })
end

--- Runs a tool for a chat; `cb` is told of it, unless the chat is gone by then.
---@param name string
---@param args table?
---@param opts mcp-tools.CodeCompanionOpts
---@param chat integer its buffer
---@param cb fun(outcome: mcp-tools.AssistantOutcome)
local function start(name, args, opts, chat, cb)
  local function hook(fn)
    return fn and function(what)
      fn(name, what)
    end
  end
  if not next(running) then
    watch_chats()
  end
  local calls = running[chat] or {}
  running[chat] = calls
  local handle
  handle = assistant.start(HOST, name, args or vim.empty_dict(), { tools = opts.tools, readonly = opts.readonly }, {
    session = ('%s %s'):format(HOST, chat),
    progress = hook(opts.on_progress),
    state = hook(opts.on_state),
  }, function(outcome)
    calls[handle.id] = nil
    if not next(calls) then
      running[chat] = nil
    end
    if vim.api.nvim_buf_is_valid(chat) then
      cb(outcome)
    end
  end)
  calls[handle.id] = handle
end

---@param output string[]? what `output_cb` was given, of the commands of a tool
---@return string
local function last(output)
  local text = output and output[#output]
  return type(text) == 'table' and table.concat(text, '\n') or tostring(text or '')
end

--- What the chat is told: all of it for the model, a line for the person. What it says of a tool that was rejected or
--- cancelled is its own.
local OUTPUT = {
  success = function(self, stdout, meta)
    meta.tools.chat:add_tool_output(self, last(stdout), ('Ran `%s`'):format(self.name))
  end,
  error = function(self, stderr, meta)
    local text = last(stderr)
    meta.tools.chat:add_tool_output(self, text, ('`%s`: %s'):format(self.name, text:match('[^\n]*')))
  end,
}

-- The table --------------------------------------------------------------------------------------------------------

---@param offered mcp-tools.Offered
---@param opts mcp-tools.CodeCompanionOpts
---@return table tool as CodeCompanion resolves it
local function tool_of(offered, opts)
  local name = offered.name
  local made = {
    name = name,
    schema = {
      type = 'function',
      ['function'] = { name = name, description = offered.description, parameters = offered.parameters },
    },
    cmds = {
      function(tools, args, run)
        start(name, args, opts, tools.bufnr, function(outcome)
          run.output_cb({ status = outcome.ok and 'success' or 'error', data = outcome.text })
        end)
      end,
    },
    output = OUTPUT,
  }
  return vim.tbl_deep_extend('force', made, offered.extras)
end

--- Its tools, for `interactions.chat.tools` in its `setup()`. Whether a call may run is asked by this plugin, so
--- CodeCompanion does not ask as well. Loads all definitions; the extension below does that later.
---@param opts? mcp-tools.CodeCompanionOpts
---@return table tools by name; `groups` has one with all of them
function M.tools(opts)
  opts = opts or {}
  assistant.check(opts, OPTIONS)
  local group = opts.group or GROUP
  local found, names = {}, {}
  for _, offered in ipairs(assistant.offered(HOST, { tools = opts.tools, readonly = opts.readonly })) do
    local name = offered.name
    if RESERVED[name] then
      log.warn("CodeCompanion does not get the tool '%s': it has another meaning for that name", name)
    else
      table.insert(names, name)
      found[name] = {
        description = offered.description,
        callback = function()
          return tool_of(offered, opts)
        end,
        opts = vim.tbl_extend('force', { require_approval_before = false }, offered.extras.opts or {}),
      }
    end
  end
  found.groups = {
    [group] = {
      description = "The tools of this Neovim: what only the person's running editor knows",
      tools = names,
      opts = { collapse_tools = true },
    },
  }
  return found
end

-- The extension ----------------------------------------------------------------------------------------------------

--- Puts them among the tools that there are, and takes out those that are no more. Others stay as they are.
---@param there table `interactions.chat.tools` of CodeCompanion's configuration
---@param opts mcp-tools.CodeCompanionOpts
---@param ours table<string, table|false> what was put there, by name; false = somebody else's stays
local function renew(there, opts, ours)
  local made = M.tools(opts)
  local groups = made.groups
  made.groups = nil
  for name in pairs(ours) do
    if not made[name] then
      there[name] = there[name] ~= ours[name] and there[name] or nil
      ours[name] = nil
    end
  end
  for name, tool in pairs(made) do
    if there[name] == nil or there[name] == ours[name] then
      there[name], ours[name] = tool, tool
    elseif ours[name] ~= false then
      ours[name] = false
      log.warn("CodeCompanion has a tool '%s' of its own, which stays (option tool_prefix)", name)
    end
  end
  there.groups = there.groups or {}
  for name, group in pairs(groups) do
    group.tools = vim.tbl_filter(function(tool)
      return there[tool] == made[tool]
    end, group.tools)
    there.groups[name] = group
  end
end

local options ---@type mcp-tools.CodeCompanionOpts
local ours ---@type table<string, table|false>
local watches, due = false, false

local function look()
  local _, is_pending = core.begin()
  if is_pending('tools') then
    return vim.defer_fn(look, LOADING_MS)
  end
  due = false
  local config = assert(optional.load('codecompanion.config'))
  renew(config.interactions.chat.tools, options, ours)
end

local function soon()
  if not due then
    due = true
    vim.schedule(look)
  end
end

--- As an extension: `extensions = { mcp_tools = { opts = {…} } }`. Its tools are there once it has started, and follow
--- the registry.
---@param opts? mcp-tools.CodeCompanionOpts
function M.setup(opts)
  assistant.check(opts or {}, OPTIONS)
  options, ours = opts or {}, {} -- CodeCompanion's own `setup` has made a new configuration
  if not watches then
    watches = true
    core.registry():on_change(function(kind)
      if kind == 'tools' then
        soon()
      end
    end)
  end
  soon()
end

return M
