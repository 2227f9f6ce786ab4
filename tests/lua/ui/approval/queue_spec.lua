-- slow, every Neovim
local Call = require('mcp-tools.calls.call')
local Question = require('mcp-tools.ui.approval.question')
local queue = require('mcp-tools.ui.approval')
local log = require('mcp-tools.log')
local notifications = require('notifications')
local t = require('helpers')
local text = require('mcp-tools.ui.approval.text')

local serial = 0

--- A question for askers, and the list of its answers.
local function ask(askers, ms, call, args)
  serial = serial + 1
  call = call or Call.new({ id = 'queue-' .. serial, name = 'x', host = 'test' })
  call:move('ask')
  local asked = { call = call, args = args or {}, reason = 'y', targets = {}, choices = { 'once', 'deny' }, root = '/' }
  local said = {}
  local function done(choice, err, by, reason)
    table.insert(said, { choice = choice, err = err, by = by, reason = reason })
  end
  local question = Question.new(asked, askers, done)
  queue.add(question, ms or 60000)
  return question, said
end

local function asker(more)
  return vim.tbl_extend('force', { serial = false, show = function() end, hide = function() end }, more or {})
end

--- A call of a tool with a preview.
local function call_of(preview)
  serial = serial + 1
  local call = Call.new({ id = 'previewed-' .. serial, name = 'x', host = 'test' })
  call.definition = { name = 'x', description = 'x', preview = preview }
  return call
end

--- A question whose text was rendered, as for a window.
local function ask_and_read(asker_of, call)
  local question, said = ask({ asker_of }, nil, call)
  question.root = '/p'
  text.page(question, 76)
  return question, said
end

local function is_shown(question)
  t.wait(function() return question.shown_at end)
end

--- Waits for the first item of a list.
local function has_one(list)
  t.wait(function() return list[1] end)
end

local function logged(part) return table.concat(log.lines(), '\n'):find(part, 1, true) ~= nil end

after_each(function()
  for _, question in ipairs(queue.list()) do
    question.call:cancel('user')
  end
end)

describe('an approval', function()
  it('is for the change that was shown, not for a later one', function()
    local line, renewed = 'first', {}
    local call = call_of(function() return '-' .. line end)
    local function renew(shown)
      for _, row in ipairs(text.page(shown, 76).list) do
        table.insert(renewed, row.text:match('%-%a+'))
      end
    end
    local question, said = ask_and_read(asker({ serial = true, renew = renew }), call)
    line = 'second'
    local taken, why = question:answer('once')
    t.eq({ false, { '-second' }, {} }, { taken, renewed, said })
    t.matches('answer again', why)
    t.ok(question:answer('once'))
    t.eq({ { '-second' }, 'once' }, { renewed, said[1].choice })
  end)

  it('of a client, and a denial, do not run the preview again', function()
    for by, choice in pairs({ client = 'once', user = 'deny' }) do
      local count = 0
      local function preview()
        count = count + 1
        return tostring(count)
      end
      local question = ask_and_read(asker(), call_of(preview))
      t.ok(question:answer(choice, by))
      t.eq(1, count)
    end
  end)
end)

describe('a preview that is completed later', function()
  local again, known, renewed

  --- A visible question whose preview is not complete.
  local function ask_and_show()
    known, renewed = 'later', {}
    local call = call_of(function(_, more)
      again = more or again
      return known
    end)
    local function renew(question) table.insert(renewed, question.preview) end
    local question, said = ask_and_read(asker({ serial = true, renew = renew }), call)
    question.read = true
    return question, said
  end

  it('is shown again, and must be read', function()
    local question, said = ask_and_show()
    known = '-a difference'
    again()
    has_one(renewed)
    t.eq({ { '-a difference' }, nil }, { renewed, question.read })
    t.ok(question:answer('once'))
    again()
    again({ code = 'not_found', message = 'gone' })
    local passed = false
    vim.schedule(function() passed = true end)
    t.wait(function() return passed end)
    t.eq({ 1, 1 }, { #renewed, #said })
  end)

  it('ends the question of a call that fails, unless it is about files outside', function()
    local _, said = ask_and_show()
    again({ code = 'not_found', message = 'gone' })
    has_one(said)
    t.eq({ 'gone', 'preview' }, { said[1].err.message, said[1].by })
    local question = ask_and_show()
    question.targets = { { path = '/elsewhere/x', given = 'x' } }
    again({ code = 'not_found', message = 'gone' })
    has_one(renewed)
    t.ok(not question.closed)
  end)
end)

it('the answers say what a permission covers', function()
  --- The texts of a question's answers, by key.
  local function texts_of(question)
    local texts = {}
    for _, choice in ipairs(question:offered()) do
      texts[choice.key] = choice.long
    end
    return texts
  end

  local call = call_of()
  call.session = 's'
  local question = ask({ asker() }, nil, call)
  question.choices = { 'once', 'deny', 'session', 'always', 'never' }
  local texts = texts_of(question)
  t.eq({ 'Allow every x in this session', 'Always allow every x in this project' }, { texts.s, texts.a })
  question.files = { '/outside/a' }
  texts = texts_of(question)
  t.eq({ 'Allow x of this file in this session', 'Always allow x of this file' }, { texts.s, texts.a })
  call.session, call.client = nil, { name = '100%s' }
  t.eq("Allow x of this file by '100%s' until Neovim quits", texts_of(question).s)
end)

it('an answer before the question is shown is refused', function()
  local question = ask({ asker({ serial = true }) })
  notifications.collect()
  queue.answer_current('once')
  notifications.wait('a new question: read it first')
  notifications.restore()
  t.eq(nil, question.closed)
end)

describe('an asker that fails', function()
  it('denies the call and is logged', function()
    for _, is_serial in ipairs({ true, false }) do
      local function show() error('broken picker ' .. tostring(is_serial)) end
      local _, said = ask({ asker({ serial = is_serial, show = show }) })
      has_one(said)
      t.eq({ nil, 'access_denied', 'nobody to ask' }, { said[1].choice, said[1].err.code, said[1].by })
      t.ok(logged('broken picker ' .. tostring(is_serial)))
      t.eq(0, #queue.list())
    end
  end)

  it('does not affect other askers', function()
    local broken = asker({ show = function() error('no form') end })
    local question, said = ask({ broken, asker({ serial = true }) })
    is_shown(question)
    t.eq({ 0, true, 'once' }, { #said, (question:answer('once')), said[1].choice })
  end)

  it('to show a second question or more of its text allows nothing', function()
    local function fail() error('broken window') end
    local question, said = ask({ asker({ serial = true, update = fail, reveal = fail }) })
    is_shown(question)
    ask({ asker({ serial = true }) })
    t.ok(logged('broken window'))
    t.eq({ false, 0, true }, { (question:answer_shown('once')), #said, (question:answer_shown('deny')) })
  end)
end)

describe('the end of a call', function()
  it('ends its question, whatever the reason', function()
    for event, state in pairs({ cancel = 'cancelled', fail = 'failed' }) do
      local question, said = ask({ asker({ serial = true }) })
      is_shown(question)
      question.call:finish(event, {})
      t.eq({ {}, 1, state }, { queue.list(), #said, said[1] and said[1].by })
    end
  end)

  it('before its question does not block the next one', function()
    local call = Call.new({ id = 'over', name = 'x', host = 'test' })
    call:cancel('client')
    local _, said = ask({ asker({ serial = true }) }, nil, call)
    t.eq({ {}, 1 }, { queue.list(), #said })
    local next_one = ask({ asker({ serial = true }) })
    is_shown(next_one)
  end)
end)

it('the timeout of a question begins when it is shown, even if the editor was busy before', function()
  vim.uv.sleep(400) -- without a turn of the event loop, whose clock stops
  local began = vim.uv.hrtime()
  local _, said = ask({ asker() }, 500)
  has_one(said)
  t.eq('timeout', said[1].by)
  t.ok(vim.uv.hrtime() - began >= 499e6)
end)

describe('a picker', function()
  local select, input = vim.ui.select, vim.ui.input
  local picker = require('mcp-tools.ui.approval.askers').select

  before_each(function()
    vim.ui.select = function() end
  end)

  after_each(function()
    vim.ui.select, vim.ui.input = select, input
  end)

  --- The prompt for a call, which is made in little time.
  local function prompt_for(args, call)
    local prompt
    vim.ui.select = function(_, opts) prompt = opts.prompt end
    t.fast(ask, { picker }, nil, call, args)
    return t.fast(t.wait, function() return prompt end)
  end

  --- A call of a tool without a preview.
  local function call_of_plain(properties)
    local call = call_of(nil)
    call.definition.input_schema = { properties = properties or {} }
    return call
  end

  --- Whether the question is in the floating window of the other value of the option.
  local function is_in_float(question)
    return vim
      .iter(vim.api.nvim_list_bufs())
      :any(function(buffer) return vim.b[buffer].mcp_tools_approval == question.id end)
  end

  it('lists all arguments', function()
    local prompt = prompt_for({ a = ('x'):rep(100), command = 'rm -rf .' }, call_of_plain())
    t.matches('arguments { command: "rm %-rf %.", a: "x+" }', prompt)
  end)

  it('gives way to the floating window for arguments that it would cut', function()
    local prompt
    vim.ui.select = function(_, opts) prompt = opts.prompt end
    local args = { a = ('x'):rep(5000), command = 'rm -rf .' }
    local question, said = ask({ picker }, nil, call_of_plain(), args)
    t.wait(function() return is_in_float(question) end)
    t.eq({ nil, false }, { prompt, (question:answer_shown('once')) }) -- its end was not on the screen yet
    question:answer('deny')
    has_one(said)
    t.wait(function() return not is_in_float(question) end)
  end)

  it('gives way to the floating window for a change that does not fit above it', function()
    local choose, count = nil, 0
    vim.ui.select = function(_, _, on_choice)
      choose, count = on_choice, count + 1
    end
    local diff = '--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two'
    local long = diff .. ('\n+two'):rep(100)
    local call = call_of(function() return long end)
    call.definition.source = { origin = 'bundled' }
    local question = ask({ picker }, nil, call)
    t.wait(function() return is_in_float(question) end)
    t.eq(0, count)
    question:answer('deny')

    -- It may also become longer while the picker is open, which cannot be closed.
    local lines = vim.o.lines
    vim.o.lines = 40
    call = call_of(function() return diff end)
    call.definition.source = { origin = 'bundled' }
    local later, said = ask({ picker }, nil, call)
    t.wait(function() return choose end)
    later.preview = long
    later:renew()
    choose(later:offered()[1])
    t.wait(function() return is_in_float(later) end)
    t.eq(0, #said)
    vim.o.lines = lines
  end)

  it('escapes text that looks like another argument', function()
    local prompt = prompt_for({ text = 'x\n, path: "harmless"' })
    t.matches('{ text: "x<U%+000A>, path: \\"harmless\\"" }', prompt)
  end)

  it('reads no more of the arguments than is shown', function()
    local args = { z_path = 'a.txt', a = { text = ('\027'):rep(4e6) } }
    for i = 1, 500 do
      args['b' .. i] = i
    end
    local call = call_of_plain({ a = {}, z_path = {} })
    local question = t.fast(ask, { picker }, nil, call, args)
    t.fast(t.wait, function() return is_in_float(question) end)
  end)

  --- Windows that show a change, as text.
  local function changes()
    local texts = {}
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      local buffer = vim.api.nvim_win_get_buf(window)
      if vim.b[buffer].mcp_tools_change then
        table.insert(texts, table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n'))
      end
    end
    return texts
  end

  it('shows the change in a window until it is answered', function()
    local choose
    local lines, diff = vim.o.lines, '--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two'
    vim.o.lines = 40
    local call = call_of(function() return diff end)
    call.definition.source = { origin = 'bundled' }
    local prompt
    vim.ui.select = function(_, opts, on_choice)
      prompt, choose = opts.prompt, on_choice
    end
    local args = { path = 'a' }
    local question, said = ask({ picker }, nil, call, args)
    t.wait(function() return choose end)
    t.ok(not prompt:find('path', 1, true), prompt) -- the window has the arguments
    t.eq(1, #changes())
    t.matches('changes\n  │ %-%-%- a', changes()[1])
    choose(question:offered()[1])
    has_one(said)
    t.eq({ 'once', {}, diff }, { said[1].choice, changes(), call.approved_preview })
    vim.o.lines = lines
  end)

  it('asks again when the change is different', function()
    local prompts, preview, choose = {}, 'first', nil
    vim.ui.select = function(_, opts, on_choice)
      table.insert(prompts, opts.prompt)
      choose = on_choice
    end
    local call = call_of(function() return preview end)
    call.definition.source = { origin = 'bundled' }
    local question, said = ask({ picker }, nil, call)
    has_one(prompts)
    t.matches('first', changes()[1])
    preview = 'second'
    choose(question:offered()[1])
    t.wait(function() return prompts[2] end)
    t.matches('^The change is different now', prompts[2])
    t.matches('second', changes()[1])
    t.eq({ 1, 0 }, { #changes(), #said })
    choose(question:offered()[1])
    has_one(said)
    t.eq({ 'once', 'second' }, { said[1].choice, call.approved_preview })
  end)

  it('can deny with a reason', function()
    vim.ui.select = function(items, _, on_choice)
      on_choice(vim.iter(items):find(function(item) return item.name == 'reason' end))
    end
    vim.ui.input = function(_, done) done('not here') end
    local _, said = ask({ picker })
    has_one(said)
    t.eq({ 'deny', 'not here' }, { said[1].choice, said[1].reason })
  end)

  it('that returns an unknown item denies', function()
    for _, nonsense in ipairs({ 'once', { name = 'everything' }, 3 }) do
      vim.ui.select = function(_, _, on_choice) on_choice(nonsense) end
      local _, said = ask({ picker })
      has_one(said)
      t.eq('deny', said[1].choice)
    end
  end)
end)
