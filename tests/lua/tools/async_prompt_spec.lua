local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local editor = require('editor_project')
local t = require('helpers')

local select = vim.ui.select

before_each(function()
  editor.open()
  config.setup({ tools = { 'test' } })
  core.get()
end)

after_each(function()
  vim.ui.select = select
  editor.close()
  core.get()
end)

describe('test_async_prompt', function()
  local shown

  --- A picker that replaces the editor's own; it chooses the first item.
  local function picker(items, opts, choose)
    shown = { prompt = opts.prompt, items = vim.tbl_map(opts.format_item or tostring, items) }
    choose(items[1], 1)
  end

  local function run(args)
    shown, vim.ui.select = nil, picker
    return editor.run('tool', 'test_async_prompt', args)
  end

  it('needs approval', function()
    t.eq('access_denied', run({ prompt = 'Which?', options = { 'a' } }).error.code)
    t.eq(nil, shown)
  end)

  it('makes control characters visible, and limits lengths', function()
    config.setup({ approval = { tools = { test_async_prompt = 'allow' } } })
    local outcome = run({ prompt = 'a\nb\27[2J\226\128\174c', options = { 'x\ny', 'z' } })
    t.eq(nil, outcome.error)
    t.eq({ prompt = 'a<U+000A>b<U+001B>[2J<U+202E>c', items = { 'x<U+000A>y', 'z' } }, shown)
    for _, args in ipairs({
      { prompt = ('a'):rep(501), options = { 'a' } },
      { prompt = 'a', options = { ('a'):rep(201) } },
      { prompt = 'a', options = vim.fn['repeat']({ 'a' }, 51) },
    }) do
      t.eq({ 'validation_error', nil }, { run(args).error.code, shown })
    end
  end)
end)
