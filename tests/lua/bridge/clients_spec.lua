local clients = require('mcp-tools.bridge.clients')
local project = require('mcp-tools.files.project')
local t = require('helpers')

describe('the clients that can be connected', function()
  it('are those that a file has, and nothing else that lies there', function()
    local wanted = {}
    for _, path in ipairs(vim.fn.globpath(project.plugin_dir() .. '/bridge/clients', '*.py', false, true)) do
      if table.concat(vim.fn.readfile(path), '\n'):find('\nCLIENT = ', 1, true) then
        table.insert(wanted, (vim.fn.fnamemodify(path, ':t:r'):gsub('_', '-')))
      end
    end
    table.sort(wanted)
    t.ok(#wanted > 10)
    t.eq(wanted, clients.names())
  end)
end)
