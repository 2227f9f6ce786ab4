-- A project whose tests the runner's tools run, with tests for pytest where they are wanted.

local p = require('tools_project')

local M = {}

local TESTS = table.concat({
  'import pytest',
  'from shop import half',
  '',
  '',
  'def test_right():',
  '    assert half(4) == 2',
  '',
  '',
  'class TestHalf:',
  '    def test_wrong(self):',
  '        print("seen")',
  '        assert half(4) == 3, "password: letmein"',
  '',
  '    @pytest.mark.skip',
  '    def test_skipped(self):',
  '        pass',
  '',
  '',
  'def test_raises():',
  '    half("x")',
  '',
}, '\n')

--- A module, and tests of it: one is right, one wrong, one skipped, one throws.
function M.write_python()
  p.write('shop.py', 'def half(n):\n    return n // 2\n')
  p.write('tests/test_half.py', TESTS)
  p.write('conftest.py', '')
end

--- Does what `:trust` does.
---@param name string of a file
function M.trust(name)
  local path = p.root .. '/' .. name
  vim.cmd.edit(path)
  vim.secure.trust({ action = 'allow', bufnr = 0 })
  vim.cmd('silent bwipeout!')
end

--- An empty project. Closed by `tools_project.close`.
function M.open()
  vim.env.VIRTUAL_ENV = p.checkout .. '/.deps/venv'
  vim.env.PYTHONDONTWRITEBYTECODE = '1'
  vim.env.PYTEST_DISABLE_PLUGIN_AUTOLOAD = '1'
  p.open({ 'test_run', 'workflow' })
  vim.fn.delete(vim.fn.stdpath('state') .. '/trust')
end

return M
