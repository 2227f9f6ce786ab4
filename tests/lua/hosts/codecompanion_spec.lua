local t = require('helpers')
local config = require('mcp-tools.config')
local host = require('mcp-tools.hosts.codecompanion')
local mcp = require('mcp-tools')

local CHECKOUTS = vim.env.CODECOMPANION_PATH

local function register(name, def)
  mcp.register(vim.tbl_extend('force', { name = name, description = name, needs_approval = false }, def))
end

local function says(def)
  register(
    'says',
    vim.tbl_extend('force', {
      args = { value = { type = 'string', required = true } },
      execute = function(ctx, args)
        ctx('it says ' .. args.value)
      end,
    }, def or {})
  )
end

before_each(function()
  config.setup({ approval = { default = 'allow' } })
end)

describe('the tools for CodeCompanion', function()
  it('are what is on, with their schemas, and a group of all', function()
    says()
    local tools = host.tools()
    local tool = tools.nvim_says.callback()
    t.eq('nvim_says', tool.schema['function'].name)
    t.eq({ 'value' }, tool.schema['function'].parameters.required)
    t.eq({ 'nvim_says' }, tools.groups.nvim_tools.tools)
    t.eq(false, tools.nvim_says.opts.require_approval_before)
  end)

  it('are narrowed, and what is left out cannot be called', function()
    says()
    register('reads', {
      annotations = { read_only = true },
      execute = function(ctx)
        ctx('read')
      end,
    })
    local tools = host.tools({ readonly = true, group = 'mine' })
    t.eq({ 'nvim_reads' }, tools.groups.mine.tools)
    local outcome
    require('mcp-tools.hosts.assistant').start('codecompanion', 'says', {}, { readonly = true }, {}, function(found)
      outcome = found
    end)
    t.wait(function()
      return outcome
    end)
    t.eq('unknown_tool', outcome.error.code)
  end)

  it('take what a definition has for this host alone', function()
    says({ hosts = { codecompanion = { system_prompt = 'be brief' }, other = { system_prompt = 'no' } } })
    t.eq('be brief', host.tools().nvim_says.callback().system_prompt)
  end)

  it('ask the person, as a client of MCP would', function()
    config.setup({ approval = { default = 'deny' } })
    says({ needs_approval = true })
    local outcome
    host.tools().nvim_says.callback().cmds[1]({ bufnr = 1 }, { value = 'x' }, {
      output_cb = function(found)
        outcome = found
      end,
    })
    t.wait(function()
      return outcome
    end)
    t.eq('error', outcome.status)
    t.matches('not run', outcome.data)
  end)
end)

--- A checkout of the plugin, and of what it needs, set up without a network.
local function real()
  for path in CHECKOUTS:gmatch('[^:]+') do
    vim.opt.runtimepath:prepend(path)
  end
  local function adapter()
    return require('codecompanion.adapters').extend('openai', {
      env = { api_key = 'none' },
      schema = { model = { default = 'gpt-4o', choices = { ['gpt-4o'] = {} } } },
    })
  end
  require('codecompanion').setup({
    adapters = { http = { openai = adapter } },
    interactions = {
      chat = { adapter = 'openai', tools = { opts = { auto_submit_errors = false, auto_submit_success = false } } },
    },
    extensions = { mcp_tools = { callback = 'mcp-tools.hosts.codecompanion', opts = {} } },
  })
end

if CHECKOUTS then
  describe('in a chat of CodeCompanion', function()
    it('a model calls tools, and reads what came of them; the extension follows the registry', function()
      says()
      real()
      local there = require('codecompanion.config').interactions.chat.tools
      t.wait(function()
        return there.nvim_says
      end)
      register('waits', {
        execute = function(ctx)
          ctx:on_cancel(function()
            _G.stopped = true
          end)
        end,
      })
      t.wait(function()
        return there.nvim_waits
      end)
      local chat = require('codecompanion').chat()
      chat.tools:refresh({ adapter = chat.adapter })
      local function call(id, name, arguments)
        return { id = id, _index = 0, type = 'function', ['function'] = { name = name, arguments = arguments } }
      end
      local function told()
        local texts = {}
        for _, message in ipairs(chat.messages) do
          if message.role == 'tool' then
            table.insert(texts, message.content)
          end
        end
        return texts
      end
      chat.tools:execute(chat, { call('a', 'nvim_says', '{"value":"x"}'), call('b', 'nvim_says', '{"value":3}') })
      t.wait(function()
        return #told() == 2
      end)
      t.eq('it says x', told()[1])
      t.matches('value: must be string', told()[2])

      chat.tools:execute(chat, { call('c', 'nvim_waits', '{}') })
      t.wait(function()
        return chat.tool_orchestrator and chat.tool_orchestrator.current_job
      end)
      chat.tool_orchestrator:cancel()
      t.wait(function()
        return _G.stopped
      end)
      mcp.unregister('waits')
      t.wait(function()
        return not there.nvim_waits
      end)
    end)
  end)
end
