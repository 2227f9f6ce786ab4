-- every Neovim
local config = require('mcp-tools.config')
local interview = require('mcp-tools.ui.interview')
local mcp_tools = require('mcp-tools')
local t = require('helpers')

describe('an editor without a person', function()
  before_each(function()
    config.setup({ tools = { 'interview' } })
    require('mcp-tools.core').get()
  end)

  after_each(function()
    config.reset()
  end)

  local function call(args)
    local result, err, ended
    mcp_tools.call('interview', args, function(...)
      result, err = ...
      ended = true
    end)
    t.wait(function()
      return ended
    end)
    return result, err
  end

  it('is told so at once, and what is wrong with the questions before', function()
    local _, err = call({ questions = { { question = 'a' } } })
    t.eq('capability_missing', err.code)
    t.matches('no UI', err.message)
    _, err = call({ questions = { { question = 'a', choices = { 'b' }, default_choice = 3 } } })
    t.eq({ 'validation_error', true }, { err.code, err.message:find('Question 1: default_choice .* got 3') ~= nil })
    for _, args in ipairs({ {}, { questions = {} }, { questions = { { choices = {} } } }, { questions = 'x' } }) do
      _, err = call(args)
      t.eq('validation_error', err.code)
    end
    t.eq(0, interview.count())
  end)

  it('hears nothing after a cancel', function()
    local called = false
    local handle = mcp_tools.interview({ { question = 'a' } }, nil, function()
      called = true
    end)
    handle:cancel()
    vim.wait(20)
    t.eq(false, called)
    t.raises('cb: expected callable', function()
      mcp_tools.interview({}, {}, nil)
    end)
  end)
end)
