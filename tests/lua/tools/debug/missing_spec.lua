-- The debugger tools without nvim-dap.

local p = require('tools_project')
local t = require('helpers')

p.each({ 'debug' })

it('report that, and run no file of the project instead', function()
  p.write('dap.lua', '_G.ran = true\nreturn { run = function() end }\n')
  local path = p.write('a.py', 'x = 1\n')
  for name, args in pairs({
    debug_run = { program = path },
    debug_breakpoints = { set = { { path = path, line = 1 } } },
  }) do
    p.fails('not_found', 'nvim%-dap is not installed', name, args)
  end
  p.fails('not_found', 'nvim%-dap is not installed', 'debug_breakpoints', { clear = true })
  p.fails('not_found', 'no active debug session', 'debug_step', { how = 'continue' })
  t.eq({ breakpoints = {}, total = 0 }, p.ok('debug_breakpoints'))
  t.matches('nvim%-dap is not installed', p.ok('debug_inspect').message)
  t.eq(nil, rawget(_G, 'ran'))
end)
