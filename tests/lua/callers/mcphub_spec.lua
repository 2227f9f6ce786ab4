local config = require('mcp-tools.config')
local mcp = require('mcp-tools')
local t = require('helpers')

it("the server for MCP Hub has the enabled tools, whose results are in MCP's format", function()
  config.setup({ approval = { default = 'allow' } })
  mcp.register({
    name = 'shows',
    description = 'shows it',
    args = { size = { type = 'integer', required = true } },
    callers = { mcphub = { needs_confirmation_window = true } },
    execute = function(ctx) ctx({ mcp.content.text('a picture'), mcp.content.image('\1', 'image/png') }) end,
  })
  local server = require('mcp-tools.callers.mcphub').server({ tools = 'shows' })
  t.eq({ 'nvim', 1 }, { server.name, #server.capabilities.tools })
  local tool = server.capabilities.tools[1]
  t.eq({ 'nvim_shows', 'shows it', { 'size' } }, { tool.name, tool.description, tool.inputSchema.required })
  t.eq(true, tool.needs_confirmation_window)
  local sent = {}
  local response = { send = function(_, result) table.insert(sent, result) end }
  t.eq({ nil, nil }, { tool.handler({ params = { size = 1 } }, response), (tool.handler({}, response)) })
  t.wait(function() return #sent == 2 end)
  t.eq({ 'text', 'image', nil }, { sent[1].content[1].type, sent[1].content[2].type, sent[1].isError })
  t.eq(true, sent[2].isError)
  t.matches('size: is required', sent[2].content[1].text)
end)

local CHECKOUTS = vim.env.MCPHUB
if CHECKOUTS then
  it('in MCP Hub itself is a connected server whose tools can be called', function()
    for path in CHECKOUTS:gmatch('[^:]+') do
      vim.opt.runtimepath:prepend(path)
    end
    config.setup({ approval = { default = 'allow' } })
    mcp.register({
      name = 'says',
      description = 'says it',
      args = { value = { type = 'string', required = true } },
      execute = function(ctx, args) ctx(args.value) end,
    })
    local definition = require('mcp-tools.callers.mcphub').server()
    local server = require('mcphub.native').add_server('nvim', definition)
    t.eq('connected', server.status)
    t.eq(false, require('mcphub.extensions.shared').needs_confirmation_window('nvim', 'nvim_says'))
    local answers = {}
    local opts = { callback = function(answer) table.insert(answers, answer.result) end }
    server:call_tool('nvim_says', { value = 'x' }, opts)
    server:call_tool('nvim_says', {}, opts)
    t.wait(function() return #answers == 2 end)
    t.eq({ { { type = 'text', text = 'x' } }, true }, { answers[1].content, answers[2].isError })
  end)
end
