-- The tools where nvim-dap is not installed.

local project = require('editor_project')
local t = require('helpers')
local tool_calls = require('tool_calls')

local call = tool_calls.call

before_each(function()
  project.open()
  project.offer({ 'dap' })
end)
after_each(project.close)

it('say so, and run no file of the project in its place', function()
  project.write('dap.lua', '_G.ran = true\nreturn { run = function() end }\n')
  local path = project.write('a.py', 'x = 1\n')
  for name, args in pairs({
    dap_run = { type = 'python', request = 'launch', name = 'x', program = path },
    dap_set_breakpoint = { filename = path, line = 1 },
    dap_remove_breakpoint = { filename = path, line = 1 },
    dap_clear_breakpoints = {},
    dap_configurations = {},
  }) do
    local result, err = call(name, args)
    t.eq(nil, result)
    t.eq('not_found', err.code)
    t.matches('nvim%-dap is not installed', err.message)
  end
  t.matches('no active debug session', select(2, call('dap_continue')).message)
  t.eq({ breakpoints = {}, total = 0 }, (call('dap_breakpoints')))
  t.eq({ sessions = {} }, (call('dap_sessions')))
  t.eq(false, call('dap_status').active)
  t.eq(nil, rawget(_G, 'ran'))
end)
