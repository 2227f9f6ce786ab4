local clients = require('mcp-tools.bridge.clients')
local project = require('mcp-tools.instances.project')
local t = require('helpers')

it('the clients of `connect` are those of the command mcp-tools', function()
  local wanted = {}
  for line in io.lines(project.python_package() .. '/client_config/known.py') do
    table.insert(wanted, line:match('^    "([%w-]+)": AiClient%('))
  end
  t.eq(wanted, clients.NAMES)
end)
