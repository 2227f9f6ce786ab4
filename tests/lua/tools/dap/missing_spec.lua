-- The tools where nvim-dap is not installed.

local p = require('tools_project')
local t = require('helpers')

before_each(function()
  p.open({ 'dap' })
end)
after_each(p.close)

it('report that, and run no file of the project in its place', function()
  p.write('dap.lua', '_G.ran = true\nreturn { run = function() end }\n')
  local path = p.write('a.py', 'x = 1\n')
  for name, args in pairs({
    dap_run = { type = 'python', request = 'launch', name = 'x', program = path },
    dap_set_breakpoint = { filename = path, line = 1 },
    dap_remove_breakpoint = { filename = path, line = 1 },
    dap_clear_breakpoints = {},
    dap_configurations = {},
  }) do
    p.fails('not_found', 'nvim%-dap is not installed', name, args)
  end
  p.fails('not_found', 'no active debug session', 'dap_continue')
  t.eq({ breakpoints = {}, total = 0 }, p.ok('dap_breakpoints'))
  t.eq({ sessions = {} }, p.ok('dap_sessions'))
  t.eq(false, p.ok('dap_status').active)
  t.eq(nil, rawget(_G, 'ran'))
end)
