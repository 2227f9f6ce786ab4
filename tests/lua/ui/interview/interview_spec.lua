-- every Neovim
local answers = require('mcp-tools.ui.interview.answers')
local config = require('mcp-tools.config')
local interview = require('mcp-tools.ui.interview')
local mcp_tools = require('mcp-tools')
local t = require('helpers')

describe('an editor without a user', function()
  before_each(function()
    config.setup({ tools = { interview = true } }) -- a group of guill/mcp-tools.nvim
    require('mcp-tools.core').get()
  end)

  after_each(config.reset)

  local function call(args)
    local result, err, ended
    mcp_tools.call('interview', args, function(...)
      result, err = ...
      ended = true
    end)
    t.wait(function() return ended end)
    return result, err
  end

  it('reports that, after it has checked the questions', function()
    t.fails('capability_missing', 'no UI', call({ questions = { { question = 'a' } } }))
    local args = { questions = { { question = 'a', choices = { 'b' }, default_choice = 3 } } }
    t.fails('validation_error', 'Question 1: default_choice .* got 3', call(args))
    for _, other in ipairs({ {}, { questions = {} }, { questions = { { choices = {} } } }, { questions = 'x' } }) do
      t.fails('validation_error', nil, call(other))
    end
    t.eq(0, interview.count())
  end)

  it('closes the questions after timeout_ms', function()
    local ask = mcp_tools.interview
    mcp_tools.interview = function() return { cancel = t.returns(true) } end
    local result = call({ questions = { { question = 'a' } }, timeout_ms = 1 })
    mcp_tools.interview = ask
    t.eq({ completed = false, timed_out = true, answers = {} }, result)
  end)

  it('gets no answer after a cancel', function()
    local called = false
    local handle = mcp_tools.interview({ { question = 'a' } }, nil, function() called = true end)
    handle:cancel()
    vim.wait(20)
    t.eq(false, called)
    t.raises('cb: expected callable', function() mcp_tools.interview({}, {}, nil) end)
  end)
end)

it('8 interviews of a session may be open, besides those of others', function()
  local uis, handles = vim.api.nvim_list_uis, {}
  vim.api.nvim_list_uis = t.returns({ {} })
  local function ask(session)
    local fault
    local function ended(_, err) fault = err end
    table.insert(handles, mcp_tools.interview({ { question = 'a' } }, { session = session }, ended))
    vim.wait(20, function() return fault end)
    return fault
  end
  for _ = 1, 8 do
    t.eq(nil, ask('s1'))
  end
  t.fails('busy', '8 interviews of this session are open', nil, ask('s1'))
  t.eq({ nil, nil, 10 }, { ask('s2'), ask(), interview.count() })
  for _, handle in ipairs(handles) do
    handle:cancel()
  end
  vim.api.nvim_list_uis = uis
end)

it('faults of questions have the number of the question', function()
  for _, case in ipairs({
    { {}, 'questions array is required and must not be empty' },
    { 'x', 'questions array is required' },
    { { { question = 'a' }, { question = ' ' } }, 'Question 2: question text is required' },
    { { { question = 'a', choices = { 1 } } }, 'Question 1: choices must be a list of texts' },
    { { { question = 'a', choices = { 'b' }, default_choice = 1 } }, 'Question 1: default_choice .* got 1' },
    { { { question = 'a', default_choice = 0 } }, 'Question 1: default_choice .* got 0' },
    { { { question = 'a', choices = { 'b' }, default_choice = 'b' } }, 'Question 1: default_choice .* got b' },
  }) do
    t.matches(case[2], answers.fault(case[1]))
  end
  t.eq(nil, answers.fault({ { question = 'a', choices = { 'b', 'c' }, default_choice = 1 } }))
end)

describe('answers', function()
  it('of one choice are its text, or the last typed text', function()
    local all = answers.new({ { question = 'q', choices = { 'a', 'b' } } })
    t.eq({ 'missing', nil }, { all:next(), all:answer(1) })
    all:choose(1)
    all:choose(2)
    t.eq({ 'b', false, true }, { all:answer(1), all:is_chosen(1), all:is_chosen(2) })
    all:set_text(' mine\n')
    t.eq({ 'mine', false }, { all:answer(1), all:is_chosen(2) })
    all:set_text(' ')
    t.eq('b', all:answer(1))
    all:set_text('mine')
    all:choose(1)
    t.eq({ 'a', 'end' }, { all:answer(1), all:next() })
    t.eq({ completed = true, answers = { { question = 'q', answer = 'a' } } }, all:result())
  end)

  it('of several choices are lists in the order of the choices, text last', function()
    local all = answers.new({ { question = 'q', choices = { 'a', 'b', 'c' }, multiselect = true, default_choice = 2 } })
    t.eq({ 'c' }, all:answer(1))
    all:choose(1)
    all:choose(3)
    all:choose(3)
    all:set_text('d')
    t.eq({ 'a', 'c', 'd' }, all:answer(1))
    all:choose(1)
    all:choose(3)
    all:set_text('')
    t.eq({ {}, 'end' }, { all:answer(1), (all:next()) })
  end)

  it('of the user are known without the defaults', function()
    local all = answers.new({ { question = 'one', default = 'text' }, { question = 'two' }, { question = 'three' } })
    t.eq('', all:typed())
    all:next()
    all:set_text('a\nb')
    all:next()
    all:set_text('c')
    t.eq('a\nb\nc', all:typed())
  end)

  it('are kept when the user goes back, and start with the defaults', function()
    local all = answers.new({
      { question = 'one', default = 'text' },
      { question = 'two', choices = { 'a', 'b' }, default_choice = 1, default = 'not yet' },
    })
    t.eq({ false, 'text', 'question' }, { all:back(), all:answer(1), (all:next()) })
    t.eq({ 'b', true, 'not yet' }, { all:answer(2), all:is_chosen(2), all:text() })
    all:choose(1)
    t.eq(true, all:back())
    all:set_text('')
    t.eq({ '', 'question', 'a' }, { all:answer(1), all:next(), all:answer(2) })
  end)
end)
