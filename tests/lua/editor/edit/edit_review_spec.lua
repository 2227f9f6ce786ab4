-- every Neovim
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local mcp_tools = require('mcp-tools')
local project = require('editor_project')
local review = require('mcp-tools.editor.review')
local t = require('helpers')

local api = vim.api
local attended

local PRESENTER = {
  is_attended = function() return attended end,
  show = function() end,
  update = function() end,
  hide = function() end,
}

local function setup(opts)
  local base = { tools = 'all', approval = { default = 'ask', groups = { buffer = 'allow', file = 'allow' } } }
  mcp_tools.setup(vim.tbl_deep_extend('force', base, opts or {}))
end

local function call(tool, args, fields)
  local about = vim.tbl_extend('force', { kind = 'tool', host = 'mcp', client = { name = 'claude' } }, fields or {})
  return core.get().executor:execute(tool, args, about)
end

local function shown()
  return t.wait(function() return review.current() end, 2000, 'a review')
end

local function outcome_of(one)
  local outcome = t.ended(one, 2000, 'the end of the call')
  return outcome, outcome.value
end

local function fails(one, code, pattern)
  local err = t.ok(outcome_of(one).error)
  t.eq(code, err.code)
  t.matches(pattern, err.message)
end

local function lines(bufnr) return api.nvim_buf_get_lines(bufnr or 0, 0, -1, false) end

local function edit(name, text)
  local path = project.write(name or 'a.txt', text or 'a\nb\nc\n')
  vim.cmd('silent edit ' .. path)
  return path
end

--- Waits for a number of reviews, and for files in the shown one.
local function waits(count, files)
  t.wait(function()
    local current = review.current()
    return review.count() == count and (not files or #current.files == files)
  end, 5000, 'the reviews')
  return review.current()
end

--- Waits until files have these lines, in the editor or on the disk.
local function become(expected)
  t.wait(function()
    return vim.iter(expected):all(
      function(where, wanted)
        return vim.deep_equal(wanted, type(where) == 'string' and vim.fn.readfile(where) or lines(where))
      end
    )
  end, 5000, vim.inspect(expected))
end

local EDITS = { { old_text = 'a', new_text = 'A' }, { old_text = 'c', new_text = 'C' } }

before_each(function()
  project.open()
  attended = true
  review.set_presenter(PRESENTER)
end)

after_each(function()
  for _, one in ipairs(review.list()) do
    one:close('the test is over')
  end
  review.set_presenter(nil)
  project.close()
end)

describe('with review.when = "ask" an edit', function()
  before_each(function() setup({ review = { when = 'ask' } }) end)

  it('is made as far as it is accepted, in one undo step, and the answer says what was not and why', function()
    local path = edit()
    local one = call('file_edit', { path = path, edits = EDITS })
    local open = shown()
    t.eq({ 'a', 'b', 'c' }, lines())
    t.eq({ 'claude', 'Edit files' }, { open.client.name, open.title })
    open:accept(1, 1)
    open:reject(1, 2, 'c stays')
    local outcome, answer = outcome_of(one)
    t.eq(nil, outcome.error)
    t.eq({ 'A', 'b', 'c' }, lines())
    t.eq({ { line = 1, removed = 1, added = 1 } }, answer.files[1].hunks)
    t.eq({ { path = 'a.txt', hunk = 2, line = 3, reason = 'c stays' } }, answer.rejected)
    t.eq(vim.b.changedtick, answer.files[1].changedtick)
    vim.cmd('silent undo')
    t.eq({ 'a', 'b', 'c' }, lines())
  end)

  it('of which all is rejected fails with the reason, and nothing is changed', function()
    local path = edit()
    local tick = vim.b.changedtick
    local one = call('file_edit', { path = path, edits = EDITS })
    shown():decide_rest('rejected', 'use tabs')
    fails(one, 'access_denied', 'a.txt:1: use tabs')
    t.eq({ { 'a', 'b', 'c' }, tick }, { lines(), vim.b.changedtick })
  end)

  it('has what the person typed meanwhile, and what they wrote into it', function()
    local path = edit()
    local one = call('file_edit', { path = path, edits = EDITS })
    local open = shown()
    api.nvim_buf_set_lines(0, 0, 0, false, { 'mine' })
    t.ok(open:edit(1, 1, { 'first', 'second' }))
    open:decide_rest('accepted')
    local _, answer = outcome_of(one)
    t.eq({ 'mine', 'first', 'second', 'b', 'C' }, lines())
    t.eq(true, answer.edited_by_user)
  end)

  it('is asked for by review instead of a question, but files outside are asked for before', function()
    config.reset()
    mcp_tools.setup({ tools = 'all', review = { when = 'ask' }, ui = { approval = 'event' } })
    local path = edit()
    local one = call('file_edit', { path = path, edits = EDITS })
    shown():decide_rest('accepted')
    t.eq(nil, outcome_of(one).error)
    t.eq('review', one.decision.by)
    local outside = project.write(project.base .. '/outside.txt', 'a\nc\n')
    one = call('file_edit', { path = outside, edits = EDITS })
    -- Nobody can be asked here.
    t.eq('access_denied', outcome_of(one).error.code)
    t.eq(nil, review.current())
  end)

  it('is not made where nobody could review it', function()
    local path = edit()
    attended = false
    fails(call('file_edit', { path = path, edits = EDITS }), 'access_denied', 'no user')
    t.eq({ 'a', 'b', 'c' }, lines())
  end)

  it('of several files is one review', function()
    local a, b = project.write('a.txt', 'old\n'), project.write('b.txt', 'old\nold\n')
    t.eq(nil, outcome_of(call('file_replace', { query = 'old', replacement = 'new' })).error)
    local args = { query = 'old', replacement = 'new', expected_count = 3 }
    local one = call('file_replace', args)
    local open = shown()
    t.eq(2, #open.files)
    open:accept(1, 1)
    open:reject(2, 1, 'not b')
    local outcome = outcome_of(one)
    t.eq({ { 'new' }, { 'old', 'old' } }, { vim.fn.readfile(a), vim.fn.readfile(b) })
    t.matches('rejected by the user: b.txt:1: not b', vim.inspect(outcome.payload))
  end)

  it('of a new file makes it with the text that was accepted', function()
    local path = project.root .. '/new.txt'
    local one = call('file_write', { path = path, text = 'one\ntwo\n' })
    local open = shown()
    t.ok(open.files[1].is_new)
    t.eq(nil, vim.uv.fs_stat(path))
    open:rewrite(1, { 'one', 'three' })
    open:decide_rest('accepted')
    local outcome = outcome_of(one)
    t.eq(nil, outcome.error)
    t.eq({ 'one', 'three' }, vim.fn.readfile(path))
    one = call('file_write', { path = project.root .. '/no.txt', text = 'x\n' })
    shown():decide_rest('rejected')
    t.eq('access_denied', outcome_of(one).error.code)
    t.eq(nil, vim.uv.fs_stat(project.root .. '/no.txt'))
  end)

  it('of how lines end waits for the review like any other', function()
    local path = project.write('a.txt', 'one\ntwo\n')
    local args = { path = path, text = 'one\r\ntwo' }
    outcome_of(call('file_read', { path = path }))
    local one = call('file_write', args)
    local open = shown()
    t.eq({ 'unix', true }, { vim.bo[open.files[1].bufnr].fileformat, vim.bo[open.files[1].bufnr].endofline })
    t.matches('CRLF', open.files[1].hunks[1].form)
    open:decide_rest('rejected')
    t.eq('access_denied', outcome_of(one).error.code)
    t.eq({ 'one', 'two', '' }, vim.fn.readfile(path, 'b'))
    one = call('file_write', args)
    shown():decide_rest('accepted')
    t.eq(nil, outcome_of(one).error)
    t.eq({ 'one\r', 'two' }, vim.fn.readfile(path, 'b'))
  end)

  it('is busy, not rejected, when too many wait for the person', function()
    for i = 1, 8 do
      call('file_edit', { path = project.write(i .. '.txt', 'a\n'), edits = { EDITS[1] } })
    end
    waits(8)
    local path = project.write('more.txt', 'a\n')
    local one = call('file_edit', { path = path, edits = { EDITS[1] } })
    fails(one, 'busy', 'nothing was changed: 8 reviews of this session')
    t.eq({ 'a' }, vim.fn.readfile(path))
  end)

  it('is over when its call is cancelled, and the time of the tool stands still until then', function()
    local path = edit()
    local one = call('file_edit', { path = path, edits = EDITS })
    shown()
    t.eq('waiting_input', one.state)
    t.eq(nil, one.deadline)
    core.get().executor:cancel(one.id, 'client')
    t.eq(nil, review.current())
    t.eq({ 'a', 'b', 'c' }, lines())
  end)

  it('whose text is another by now, or gone, is not told to be rejected', function()
    local ways = {
      ['lines have changed'] = function() api.nvim_buf_set_lines(0, 0, 1, false, { 'mine' }) end,
      ['was closed'] = function() vim.cmd('silent bwipeout!') end,
      ['renamed'] = function() vim.cmd('silent file b.txt') end,
    }
    for why, change in pairs(ways) do
      local path = edit('a.txt', 'a\nb\n')
      local one = call('file_edit', { path = path, edits = { EDITS[1] } })
      local seen = shown()
      change()
      seen:decide_rest('accepted')
      fails(one, 'stale', why .. '.*read it again')
      vim.cmd('silent! %bwipeout!')
    end
  end)

  it('leaves out a file that was closed meanwhile, and one hunk of a file that others have written', function()
    local a, b = project.write('a.txt', 'old\n'), edit('b.txt', 'old\nx\nold\n')
    t.eq(nil, outcome_of(call('file_replace', { query = 'old', replacement = 'new' })).error)
    vim.cmd('silent edit ' .. a)
    local args = { query = 'old', replacement = 'new', expected_count = 3 }
    local one = call('file_replace', args)
    local open = shown()
    open:accept(1, 1)
    open:accept(2, 1)
    vim.cmd('bdelete! ' .. a)
    t.wait(function() return open.files[1].gone end)
    project.write('b.txt', 'old\nx\nchanged by others\n')
    open:accept(2, 2)
    t.eq(nil, outcome_of(one).error)
    t.eq({ 'old' }, vim.fn.readfile(a))
    t.eq({ 'new', 'x', 'changed by others' }, lines(vim.fn.bufnr(b)))
  end)
end)

describe('the option review', function()
  local function is_reviewed(opts, client)
    setup(opts)
    local path = edit()
    local one = call('file_edit', { path = path, edits = EDITS }, { client = { name = client or 'claude' } })
    t.wait(function() return one:ended() or review.current() end)
    local is = review.current() ~= nil and not review.current().applied
    if review.current() then
      review.current():close('seen')
    end
    vim.cmd('silent! bwipeout!')
    return is
  end

  it('is for tools before groups before all', function()
    t.eq(false, is_reviewed({}))
    t.eq(true, is_reviewed({ review = { when = 'ask' } }))
    t.eq(false, is_reviewed({ review = { when = 'ask', groups = { file = 'never' } } }))
    t.eq(true, is_reviewed({ review = { tools = { file_edit = 'ask' } } }))
  end)

  it('is stricter for a client, never less so', function()
    t.eq(true, is_reviewed({ review = { when = 'never' }, clients = { gemini = { review = 'ask' } } }, 'gemini'))
    t.eq(false, is_reviewed({}, 'claude'))
    config.reset()
    t.eq(true, is_reviewed({ review = { when = 'ask' }, clients = { gemini = { review = 'never' } } }, 'gemini'))
  end)
end)

describe('with review.when = "after" an edit', function()
  before_each(function() setup({ review = { when = 'after' } }) end)

  it('is made at once, and what is rejected is taken back', function()
    local path = edit()
    t.eq(nil, outcome_of(call('file_edit', { path = path, edits = EDITS })).error)
    t.eq({ 'A', 'b', 'C' }, lines())
    local open = shown()
    t.ok(open.applied)
    open:reject(1, 1) -- keeps it
    open:accept(1, 2) -- takes it back
    become({ [0] = { 'A', 'b', 'c' } })
  end)

  it('that comes before the one before it is shown joins it as well', function()
    local a, b = edit('a.txt', 'a\n'), project.write('b.txt', 'a\n')
    local one = call('file_edit', { path = a, edits = { EDITS[1] } })
    local two = call('file_edit', { path = b, edits = { EDITS[1] } })
    t.eq({}, { outcome_of(one).error, outcome_of(two).error })
    waits(1, 2):decide_rest('accepted')
    become({ [vim.fn.bufnr(a)] = { 'a' }, [b] = { 'a' } })
  end)

  it('joins those before it that were not looked at yet, and leaves alone what the person has typed', function()
    local path = edit()
    t.eq(nil, outcome_of(call('file_edit', { path = path, edits = { EDITS[1] } })).error)
    shown()
    api.nvim_buf_set_lines(0, 1, 1, false, { 'mine' })
    local other = project.write('b.txt', 'a\n')
    t.eq(nil, outcome_of(call('file_edit', { path = other, edits = { EDITS[1] } })).error)
    t.eq(nil, outcome_of(call('file_edit', { path = path, edits = { EDITS[2] } })).error)
    t.eq(2, #waits(1, 2).files[1].hunks)
    review.current():decide_rest('accepted')
    become({ [0] = { 'a', 'mine', 'b', 'c' }, [other] = { 'a' } })
  end)

  it('takes back what was rejected, also when another edit comes before the rest was looked at', function()
    local a, b = edit('a.txt', 'a\n'), edit('b.txt', 'a\nb\nc\n')
    outcome_of(call('file_edit', { path = a, edits = { EDITS[1] } }))
    outcome_of(call('file_edit', { path = b, edits = EDITS }))
    local open = waits(1, 2)
    open:accept(1, 1)
    open:accept(2, 2)
    local later = call('file_edit', { path = b, edits = { { search = 'b\n', replace = 'new\n' } } })
    t.eq(nil, outcome_of(later).error)
    become({ [vim.fn.bufnr(a)] = { 'a' }, [0] = { 'A', 'new', 'c' } })
    t.eq(1, waits(1, 1):undecided())
  end)

  it('that makes a file is kept open as well, with what is changed in it; rejected, the file is deleted', function()
    local path = project.root .. '/new.txt'
    t.eq(nil, outcome_of(call('file_write', { path = path, text = 'a\n\nb\n' })).error)
    t.eq({ 1, true }, { #shown().files[1].hunks, shown().files[1].made })
    t.eq(nil, outcome_of(call('file_edit', { path = path, edits = { EDITS[1] } })).error)
    t.wait(function() return review.current() and vim.deep_equal({ 'A', '', 'b' }, review.current().files[1].base) end)
    t.ok(review.current().files[1].made)
    review.current():reject(1, 1) -- keeps it
    waits(0)
    t.eq({ 'A', '', 'b' }, vim.fn.readfile(path))

    local other = project.root .. '/other.txt'
    t.eq(nil, outcome_of(call('file_write', { path = other, text = 'a\n' })).error)
    shown():accept(1, 1)
    t.wait(function() return not vim.uv.fs_stat(other) and vim.fn.bufnr(other) == -1 end)
  end)
end)
