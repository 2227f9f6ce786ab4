--- Tools for CodeCompanion, made from the registry.
---
--- Follows https://codecompanion.olimorris.dev/extending/tools, /extending/extensions and /usage/events.

local assistant = require('mcp-tools.callers.assistant')
local core = require('mcp-tools.core')
local log = require('mcp-tools.log')
local optional = require('mcp-tools.util.optional')

local M = {}

local HOST = 'codecompanion'
local GROUP = 'nvim_tools'
--- Options in addition to those of every assistant.
local OPTIONS = { group = 'string', on_progress = 'callable', on_state = 'callable' }
--- Keys of `interactions.chat.tools` that are not tools.
local RESERVED = { groups = true, opts = true }
--- Interval of the checks in ms while definitions are still loading.
local LOADING_MS = 10

---@class mcp-tools.CodeCompanionOpts : mcp-tools.AssistantOpts
---@field group? string name of the group with all these tools (default "nvim_tools")
---@field on_progress? fun(name: string, progress: mcp-tools.Progress)
---@field on_state? fun(name: string, state: any) an intermediate result

-- One call ---------------------------------------------------------------------------------------------------------

---@type table<integer, table<string, mcp-tools.AssistantHandle>> running calls by chat
local running = {}

local REASONS = { CodeCompanionChatStopped = 'user', CodeCompanionChatClosed = 'session_closed' }

--- Cancels the calls of a chat that is stopped or closed. CodeCompanion itself does so only during a request to its
--- model.
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

--- Calls a tool for a chat. `cb` runs only if the chat still exists.
---@param name string
---@param args table?
---@param opts mcp-tools.CodeCompanionOpts
---@param chat integer its buffer
---@param cb fun(outcome: mcp-tools.AssistantOutcome)
local function start(name, args, opts, chat, cb)
  local function hook(fn)
    return fn and function(value)
      fn(name, value)
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

---@param output string[]? argument of `output_cb` for each command of a tool
---@return string
local function last_output(output)
  local text = output and output[#output]
  return type(text) == 'table' and table.concat(text, '\n') or tostring(text or '')
end

--- What is added to the chat: the whole result for the model, one line for the user. CodeCompanion itself writes the
--- texts for a rejected or cancelled tool.
local OUTPUT = {
  success = function(self, stdout, meta)
    meta.tools.chat:add_tool_output(self, last_output(stdout), ('Ran `%s`'):format(self.name))
  end,
  error = function(self, stderr, meta)
    local text = last_output(stderr)
    meta.tools.chat:add_tool_output(self, text, ('`%s`: %s'):format(self.name, text:match('[^\n]*')))
  end,
}

-- The table --------------------------------------------------------------------------------------------------------

---@param exposed mcp-tools.ExposedTool
---@param opts mcp-tools.CodeCompanionOpts
---@return table tool as CodeCompanion resolves it
local function tool_of(exposed, opts)
  local name = exposed.name
  local tool = {
    name = name,
    schema = {
      type = 'function',
      ['function'] = { name = name, description = exposed.description, parameters = exposed.parameters },
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
  return vim.tbl_deep_extend('force', tool, exposed.extras)
end

--- Returns the tools for `interactions.chat.tools` in CodeCompanion's `setup()`. This plugin asks for approval, so
--- CodeCompanion does not. Loads all definitions at once; the extension below does so later.
---@param opts? mcp-tools.CodeCompanionOpts
---@return table tools by name; `groups` has one group with all of them
function M.tools(opts)
  opts = opts or {}
  assistant.check(opts, OPTIONS)
  local group = opts.group or GROUP
  local found, names = {}, {}
  for _, exposed in ipairs(assistant.offered(HOST, { tools = opts.tools, readonly = opts.readonly })) do
    local name = exposed.name
    if RESERVED[name] then
      log.warn("CodeCompanion does not get the tool '%s': the name is reserved", name)
    else
      table.insert(names, name)
      found[name] = {
        description = exposed.description,
        callback = function()
          return tool_of(exposed, opts)
        end,
        opts = vim.tbl_extend('force', { require_approval_before = false }, exposed.extras.opts or {}),
      }
    end
  end
  found.groups = {
    [group] = {
      description = 'Tools of the running Neovim instance: its buffers, language servers, windows and more',
      tools = names,
      opts = { collapse_tools = true },
    },
  }
  return found
end

-- The extension ----------------------------------------------------------------------------------------------------

--- Updates our tools in CodeCompanion's configuration: adds new ones and removes old ones. Other tools stay.
---@param chat_tools table `interactions.chat.tools`
---@param opts mcp-tools.CodeCompanionOpts
---@param ours table<string, table|false> the tools that were added, by name; false: another plugin has this name
local function merge(chat_tools, opts, ours)
  local tools = M.tools(opts)
  local groups = tools.groups
  tools.groups = nil
  for name in pairs(ours) do
    if not tools[name] then
      chat_tools[name] = chat_tools[name] ~= ours[name] and chat_tools[name] or nil
      ours[name] = nil
    end
  end
  for name, tool in pairs(tools) do
    if chat_tools[name] == nil or chat_tools[name] == ours[name] then
      chat_tools[name], ours[name] = tool, tool
    elseif ours[name] ~= false then
      ours[name] = false
      log.warn("CodeCompanion already has another tool '%s', which stays (see option tool_prefix)", name)
    end
  end
  chat_tools.groups = chat_tools.groups or {}
  for name, group in pairs(groups) do
    group.tools = vim.tbl_filter(function(tool)
      return chat_tools[tool] == tools[tool]
    end, group.tools)
    chat_tools.groups[name] = group
  end
end

local options ---@type mcp-tools.CodeCompanionOpts
local ours ---@type table<string, table|false>
local watches, due = false, false

local function update()
  local _, is_pending = core.begin()
  if is_pending('tools') then
    return vim.defer_fn(update, LOADING_MS)
  end
  due = false
  local config = assert(optional.load('codecompanion.config'))
  merge(config.interactions.chat.tools, options, ours)
end

local function update_soon()
  if not due then
    due = true
    vim.schedule(update)
  end
end

--- Starts the extension: `extensions = { mcp_tools = { opts = {…} } }`. The tools appear a moment later and follow the
--- registry.
---@param opts? mcp-tools.CodeCompanionOpts
function M.setup(opts)
  assistant.check(opts or {}, OPTIONS)
  options, ours = opts or {}, {} -- CodeCompanion's `setup` has created a new configuration
  if not watches then
    watches = true
    core.registry():on_change(function(kind)
      if kind == 'tools' then
        update_soon()
      end
    end)
  end
  update_soon()
end

return M
