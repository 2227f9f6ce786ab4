-- Modules of other plugins, as the tools load them in an untrusted project.

local optional = require('mcp-tools.util.optional')
local project = require('editor_project')
local t = require('helpers')

local LIBRARY = [[
#include <stdlib.h>
__attribute__((constructor)) static void run(void) { setenv("RAN_A_LIBRARY", "yes", 1); }
]]

local here

before_each(function()
  here = vim.fn.getcwd()
  project.open()
  vim.cmd.cd(project.root)
end)
after_each(function()
  vim.cmd.cd(here)
  project.close()
end)

it('are not loaded from the working directory', function()
  for _, name in ipairs({ 'trap_one.lua', 'trap_two/init.lua', 'trap_three/part.lua' }) do
    project.write(name, '_G.ran = true\nreturn {}\n')
  end
  for _, module in ipairs({ 'trap_one', 'trap_two', 'trap_three.part' }) do
    local value, err = optional.load(module)
    t.eq(nil, value)
    t.matches('not found', err)
  end
  t.eq(nil, rawget(_G, 'ran'))
end)

it('are not loaded from it by their own require', function()
  local plugin = vim.fn.tempname()
  vim.fn.mkdir(plugin .. '/lua', 'p')
  vim.fn.writefile(
    { "return { inner = pcall(require, 'trap_inner'), path = package.path }" },
    plugin .. '/lua/outer.lua'
  )
  project.write('trap_inner.lua', '_G.ran = true\n')
  vim.opt.runtimepath:append(plugin)
  local path, cpath = package.path, package.cpath
  local outer = optional.load('outer')
  vim.opt.runtimepath:remove(plugin)
  t.eq({ false, nil }, { outer.inner, (rawget(_G, 'ran')) })
  t.ok(not outer.path:find('%./'))
  t.eq({ path, cpath }, { package.path, package.cpath })
end)

it('keep what a module adds to the search path', function()
  local path = package.path
  package.preload.adds_a_path = function()
    package.path = package.path .. ';/added/?.lua'
    return true
  end
  t.eq(true, optional.load('adds_a_path'))
  t.matches({ '/added/%?%.lua', '%./%?%.lua' }, package.path)
  package.path, package.preload.adds_a_path = path, nil
end)

it('run no native code of a project', function()
  if vim.fn.executable('cc') == 0 then
    return
  end
  project.offer({ 'test_run', 'debug' })
  local source = project.write('library.c', LIBRARY)
  for _, module in ipairs({ 'neotest', 'nio', 'dap' }) do
    local done = vim.system({ 'cc', '-shared', '-fPIC', '-o', project.root .. '/' .. module .. '.so', source }):wait()
    t.eq(0, done.code, done.stderr)
  end
  project.call('test_run', {})
  project.call('debug_inspect', {})
  t.eq('', vim.fn.getenv('RAN_A_LIBRARY') == vim.NIL and '' or 'ran')
end)
