-- every Neovim
local call_view = require('mcp-tools.ui.call_view')
local t = require('helpers')

local function shown() return vim.api.nvim_buf_get_lines(vim.fn.bufnr('mcp-tools://call x'), 0, -1, false) end

local function failed(message)
  return { outcome = { state = 'failed', error = { code = 'tool_error', message = message } }, created_at = 0 }
end

describe('the view of a call', function()
  after_each(function() vim.cmd('silent! %bwipeout!') end)

  it('shows progress and questions soon', function()
    local view = call_view.new('x', {})
    view.waits()
    t.eq({ '…' }, shown())
    view.progress({ done = 1, total = 2, message = 'one' })
    view.progress({ done = 2, total = 2, message = 'two' })
    view.asks('more?')
    t.wait(function() return vim.deep_equal({ '…', '1/2  one', '2/2  two', 'asks: more?' }, shown()) end)
  end)

  it('does not block the main thread, however much is reported, and shows the end of it', function()
    local view = call_view.new('x', {})
    view.waits()
    for i = 1, 5000 do
      view.progress({ done = i, total = 5000, message = 'a step' })
      view.log('info', { step = i })
    end
    t.wait(function() return shown()[#shown()] == 'log info: {"step":5000}' end)
    t.ok(#shown() <= 1000, #shown())
    view.done(failed('it broke'))
    local lines = shown()
    t.eq({ 'Error (tool_error): it broke', 'log info: {"step":5000}' }, { lines[1], lines[#lines] })
    t.ok(#lines <= 1000, #lines)
  end)

  it('does not change the result afterwards', function()
    local view = call_view.new('x', {})
    view.waits()
    for i = 1, 3 do
      view.progress({ done = i })
    end
    view.done(failed('it broke'))
    vim.wait(200)
    t.eq({ 'Error (tool_error): it broke' }, shown())
  end)

  it('shows each fault of the arguments once', function()
    local call = failed('Invalid arguments for x: name: missing (it has no argument nam)')
    call.outcome.error.errors = { { field = 'name', message = 'missing' } }
    call_view.new('x', { 'the tool has no argument nam, did you mean name?' }).done(call)
    t.eq({
      'Error (tool_error): Invalid arguments for x',
      '  name: missing',
      'the tool has no argument nam, did you mean name?',
    }, shown())
  end)

  it('shows JSON with a line for each value and sorted keys', function()
    local view = call_view.new('x', {})
    local payload = { kind = 'json', text = '{"b":{"c":null},"a":[1,0.1,{},[]]}' }
    view.done({ outcome = { state = 'done', payload = payload }, created_at = 0 })
    local want =
      { '{', '  "a": [', '    1,', '    0.1,', '    {},', '    []', '  ],', '  "b": {', '    "c": null', '  }' }
    t.eq(vim.list_extend(want, { '}' }), shown())
  end)
end)
