--- CodeCompanion as a host: its tools, made from the registry.
---
--- Receives: which tools it is to have; calls of its chats.
--- Sends: a table for `interactions.chat.tools`; to a chat what a tool gave.
--- Does not know about: how a tool is run (assistant.lua), CodeCompanion's own modules: what it needs is handed in.
---
--- Follows https://codecompanion.olimorris.dev/extending/tools, and /extending/extensions for `setup`.

local assistant = require('mcp-tools.hosts.assistant')
local core = require('mcp-tools.core')

local M = {}

local HOST = 'codecompanion'
local GROUP = 'nvim_tools'

---@class mcp-tools.CodeCompanionOpts : mcp-tools.AssistantOpts
---@field group? string name of the group of all of them (default "nvim_tools")
---@field on_progress? fun(name: string, progress: mcp-tools.Progress)
---@field on_state? fun(name: string, state: any) an intermediate result

---@param output string[]? what `output_cb` was given, of the commands of a tool
---@return string
local function last(output)
  local text = output and output[#output]
  return type(text) == 'table' and table.concat(text, '\n') or tostring(text or '')
end

--- What the chat is told: all of it for the model, a line for the person.
local OUTPUT = {
  success = function(self, stdout, meta)
    meta.tools.chat:add_tool_output(self, last(stdout), ('Ran `%s`'):format(self.name))
  end,
  error = function(self, stderr, meta)
    local text = last(stderr)
    meta.tools.chat:add_tool_output(self, text, ('`%s`: %s'):format(self.name, text:match('[^\n]*')))
  end,
}

---@param offered mcp-tools.Offered
---@param opts mcp-tools.CodeCompanionOpts
---@return table tool as CodeCompanion resolves it
local function tool_of(offered, opts)
  local name = offered.name
  local function hook(fn)
    return fn and function(what)
      fn(name, what)
    end
  end
  local wanted = { tools = opts.tools, readonly = opts.readonly }
  local made = {
    name = name,
    schema = {
      type = 'function',
      ['function'] = { name = name, description = offered.description, parameters = offered.parameters },
    },
    cmds = {
      function(tools, args, run)
        local ended = false
        local handle = assistant.start(HOST, name, args or vim.empty_dict(), wanted, {
          session = ('%s %s'):format(HOST, tools.bufnr or ''),
          progress = hook(opts.on_progress),
          state = hook(opts.on_state),
        }, function(outcome)
          ended = true
          run.output_cb({ status = outcome.ok and 'success' or 'error', data = outcome.text })
        end)
        if run.register_job then
          -- What stops the chat stops the job; it takes this one for a program.
          run.register_job({
            kill = function()
              return not ended and handle:cancel()
            end,
          })
        end
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
  local group = opts.group or GROUP
  local found, names = {}, {}
  for i, offered in ipairs(assistant.offered(HOST, { tools = opts.tools, readonly = opts.readonly })) do
    names[i] = offered.name
    found[offered.name] = {
      description = offered.description,
      callback = function()
        return tool_of(offered, opts)
      end,
      opts = { require_approval_before = false },
    }
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

--- Puts them among the tools that there are, and takes out those that are no more.
---@param there table `interactions.chat.tools` of CodeCompanion's configuration
---@param opts mcp-tools.CodeCompanionOpts
---@param ours table<string, true>
local function renew(there, opts, ours)
  local made = M.tools(opts)
  for name in pairs(ours) do
    if not made[name] then
      there[name], ours[name] = nil, nil
    end
  end
  there.groups = there.groups or {}
  for name, group in pairs(made.groups) do
    there.groups[name] = group
  end
  made.groups = nil
  for name, tool in pairs(made) do
    there[name], ours[name] = tool, true
  end
end

--- As an extension: `extensions = { mcp_tools = { callback = 'mcp-tools.hosts.codecompanion', opts = {…} } }`. Its
--- tools are there once it has started, and follow the registry.
---@param opts? mcp-tools.CodeCompanionOpts
function M.setup(opts)
  local ours, due = {}, false
  local function soon()
    if due then
      return
    end
    due = true
    vim.schedule(function()
      due = false
      local ok, config = pcall(require, 'codecompanion.config')
      if ok then
        renew(config.interactions.chat.tools, opts or {}, ours)
      end
    end)
  end
  core.registry():on_change(function(kind)
    if kind == 'tools' then
      soon()
    end
  end)
  soon()
end

return M
