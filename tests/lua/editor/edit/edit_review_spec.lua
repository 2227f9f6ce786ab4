-- every Neovim
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local history = require('mcp-tools.editor.edit.history')
local mcp_tools = require('mcp-tools')
local project = require('editor_project')
local review = require('mcp-tools.editor.review')
local screen = require('review_screen')
local t = require('helpers')

local api = vim.api
local attended
local EDITS = { { old_text = 'a', new_text = 'A' }, { old_text = 'c', new_text = 'C' } }

local function setup(opts)
  local base = { tools = 'all', approval = { default = 'ask', groups = { buffer = 'allow', file = 'allow' } } }
  mcp_tools.setup(vim.tbl_deep_extend('force', base, opts or {}))
end

local function call(tool, args, fields)
  local about = vim.tbl_extend('force', { kind = 'tool', host = 'mcp', client = { name = 'claude' } }, fields or {})
  return core.get().executor:execute(tool, args, about)
end

--- Begins an edit of a file; without `edits`: both EDITS.
local function start_edit(path, edits) return call('file_edit', { path = path, edits = edits or EDITS }) end

local function shown()
  return t.wait(function() return review.current() end, 2000, 'a review')
end

local function outcome_of(one) return t.ended(one, 2000, 'the end of the call') end

local function succeeds(one)
  local outcome = outcome_of(one)
  t.eq(nil, outcome.error)
  return outcome.value
end

local function fails(one, code, pattern) t.fails(code, pattern, nil, outcome_of(one).error) end

local function lines(bufnr) return api.nvim_buf_get_lines(bufnr or 0, 0, -1, false) end

local function edit(name, text) return project.edit(name or 'a.txt', text or 'a\nb\nc\n') end

--- Waits for a number of reviews, and of files in the visible one.
local function waits(count, files)
  t.wait(function()
    local current = review.current()
    return review.count() == count and (not files or #current.files == files)
  end, 5000, 'the reviews')
  return review.current()
end

--- Waits until buffers or files have these lines.
local function become(expected)
  t.wait(function()
    local function is_so(where, wanted)
      return vim.deep_equal(wanted, type(where) == 'string' and vim.fn.readfile(where) or lines(where))
    end
    return vim.iter(expected):all(is_so)
  end, 5000, vim.inspect(expected))
end

after_each(screen.end_unseen)
project.each(nil, function()
  attended = true
  screen.unseen(function() return attended end)
end)

describe('with review.when = "ask" an edit', function()
  before_each(function() setup({ review = { when = 'ask' } }) end)

  it('applies the accepted hunks in one undo step, and reports the rejected ones with reasons', function()
    local one = start_edit(edit())
    local open = shown()
    t.eq({ { 'a', 'b', 'c' }, 'claude', 'Edit files' }, { lines(), open.client.name, open.title })
    open:accept(1, 1)
    open:reject(1, 2, 'c stays')
    local answer = succeeds(one)
    t.eq({ { 'A', 'b', 'c' }, { { line = 1, removed = 1, added = 1 } } }, { lines(), answer.files[1].hunks })
    t.eq({ { path = 'a.txt', hunk = 2, line = 3, reason = 'c stays' } }, answer.rejected)
    t.eq(vim.b.changedtick, answer.files[1].changedtick)
    vim.cmd('silent undo')
    t.eq({ 'a', 'b', 'c' }, lines())
  end)

  it('that is rejected completely fails with the reason, and changes nothing', function()
    local path = edit()
    local tick = vim.b.changedtick
    local one = start_edit(path)
    shown():decide_rest('rejected', 'use tabs')
    fails(one, 'access_denied', 'a.txt:1: use tabs')
    t.eq({ { 'a', 'b', 'c' }, tick }, { lines(), vim.b.changedtick })
  end)

  it('keeps what the user has typed, also in a hunk', function()
    local one = start_edit(edit())
    local open = shown()
    api.nvim_buf_set_lines(0, 0, 0, false, { 'mine' })
    t.ok(open:edit(1, 1, { 'first', 'second' }))
    open:decide_rest('accepted')
    local answer = succeeds(one)
    t.eq({ { 'mine', 'first', 'second', 'b', 'C' }, true }, { lines(), answer.edited_by_user })
  end)

  it('asks with the review instead of a question, but asks first for files outside', function()
    config.reset()
    mcp_tools.setup({ tools = 'all', review = { when = 'ask' }, ui = { approval = 'event' } })
    local one = start_edit(edit())
    shown():decide_rest('accepted')
    succeeds(one)
    t.eq('review', one.decision.by)
    local outside = project.write(project.base .. '/outside.txt', 'a\nc\n')
    one = start_edit(outside)
    t.eq({ 'access_denied', nil }, { outcome_of(one).error.code, (review.current()) })
  end)

  it('asks before it saves other changes of the user, which the review does not show', function()
    config.reset()
    mcp_tools.setup({ tools = 'all', review = { when = 'ask' }, ui = { approval = 'event' } })
    local path = edit()
    local function start(text)
      return call('file_edit', { path = path, edits = { { old_text = text, new_text = text .. '!' } }, save = true })
    end
    local one = start('a')
    shown():decide_rest('accepted')
    succeeds(one)
    api.nvim_buf_set_lines(0, -1, -1, false, { 'mine' })
    fails(start('b'), 'access_denied', 'approval')
    t.eq({ 'a!', 'b', 'c' }, vim.fn.readfile(path))
  end)

  it('is reverted with a review, but asks before a file that it created is deleted', function()
    config.reset()
    mcp_tools.setup({ tools = 'all', review = { when = 'ask' }, ui = { approval = 'event' } })
    local path = project.root .. '/new.txt'
    local function accepted(tool, args)
      local one = call(tool, args)
      shown():decide_rest('accepted')
      succeeds(one)
    end
    local function is_refused(args) fails(call('change_revert', args), 'access_denied', 'approval') end
    accepted('file_write', { path = path, text = 'one\n' })
    local created = tostring(history.list()[1].id)
    is_refused(vim.empty_dict())
    is_refused({ change = created })
    accepted('file_edit', { path = path, edits = { { old_text = 'one', new_text = 'two' } } })
    accepted('change_revert', vim.empty_dict())
    is_refused({ change = created })
    t.eq({ 'one' }, vim.fn.readfile(path))
  end)

  it('is refused when no user can review it', function()
    local path = edit()
    attended = false
    fails(start_edit(path), 'access_denied', 'no user')
    t.eq({ 'a', 'b', 'c' }, lines())
  end)

  it('of several files is one review', function()
    local a, b = project.write('a.txt', 'old\n'), project.write('b.txt', 'old\nold\n')
    succeeds(call('file_replace', { query = 'old', replacement = 'new' }))
    local one = call('file_replace', { query = 'old', replacement = 'new', expected_count = 3 })
    local open = shown()
    t.eq(2, #open.files)
    open:accept(1, 1)
    open:reject(2, 1, 'not b')
    local outcome = outcome_of(one)
    t.eq({ { 'new' }, { 'old', 'old' } }, { vim.fn.readfile(a), vim.fn.readfile(b) })
    t.matches('rejected by the user: b.txt:1: not b', vim.inspect(outcome.payload))
  end)

  it('of a new file creates it with the accepted text', function()
    local path = project.root .. '/new.txt'
    local one = call('file_write', { path = path, text = 'one\ntwo\n' })
    local open = shown()
    t.ok(open.files[1].is_new)
    t.eq(nil, vim.uv.fs_stat(path))
    open:rewrite(1, { 'one', 'three' })
    open:decide_rest('accepted')
    succeeds(one)
    t.eq({ 'one', 'three' }, vim.fn.readfile(path))
    one = call('file_write', { path = project.root .. '/no.txt', text = 'x\n' })
    shown():decide_rest('rejected')
    t.eq({ 'access_denied', nil }, { outcome_of(one).error.code, (vim.uv.fs_stat(project.root .. '/no.txt')) })
  end)

  it('of a new empty file is reviewed as well', function()
    local path = project.root .. '/new/empty.txt'
    local function start() return call('file_write', { path = path, text = '' }) end
    local one = start()
    shown():decide_rest('rejected')
    fails(one, 'access_denied', 'empty.txt:1')
    t.eq(nil, vim.uv.fs_stat(vim.fs.dirname(path)))
    one = start()
    shown():decide_rest('accepted')
    succeeds(one)
    t.eq(0, vim.uv.fs_stat(path).size)
  end)

  it('of line endings is reviewed as well', function()
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
    succeeds(one)
    t.eq({ 'one\r', 'two' }, vim.fn.readfile(path, 'b'))
  end)

  it('is busy, not rejected, when too many wait for the user', function()
    for i = 1, 8 do
      start_edit(project.write(i .. '.txt', 'a\n'), { EDITS[1] })
    end
    waits(8)
    local path = project.write('more.txt', 'a\n')
    fails(start_edit(path, { EDITS[1] }), 'busy', 'nothing was changed: 8 reviews of this session')
    t.eq({ 'a' }, vim.fn.readfile(path))
  end)

  it('ends its review when the call is cancelled, and has no deadline until then', function()
    local one = start_edit(edit())
    shown()
    t.eq({ 'waiting_input', nil }, { one.state, one.deadline })
    core.get().executor:cancel(one.id, 'client')
    t.eq({ nil, { 'a', 'b', 'c' } }, { review.current(), (lines()) })
  end)

  it('is stale, not rejected, when its text has changed or is gone', function()
    local ways = {
      ['lines have changed'] = function() api.nvim_buf_set_lines(0, 0, 1, false, { 'mine' }) end,
      ['was closed'] = function() vim.cmd('silent bwipeout!') end,
      ['renamed'] = function() vim.cmd('silent file b.txt') end,
    }
    for why, change in pairs(ways) do
      local path = edit('a.txt', 'a\nb\n')
      local one = start_edit(path, { EDITS[1] })
      local seen = shown()
      change()
      seen:decide_rest('accepted')
      fails(one, 'stale', why .. '.*read it again')
      vim.cmd('silent! %bwipeout!')
    end
  end)

  it('skips a file that was closed, and a hunk that another process has changed', function()
    local a, b = project.write('a.txt', 'old\n'), edit('b.txt', 'old\nx\nold\n')
    succeeds(call('file_replace', { query = 'old', replacement = 'new' }))
    vim.cmd('silent edit ' .. a)
    local one = call('file_replace', { query = 'old', replacement = 'new', expected_count = 3 })
    local open = shown()
    open:accept(1, 1)
    open:accept(2, 1)
    vim.cmd('bdelete! ' .. a)
    t.wait(function() return open.files[1].gone end)
    project.write('b.txt', 'old\nx\nchanged by others\n')
    open:accept(2, 2)
    succeeds(one)
    t.eq({ { 'old' }, { 'new', 'x', 'changed by others' } }, { vim.fn.readfile(a), (lines(vim.fn.bufnr(b))) })
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

  it('applies to tools before groups before all', function()
    t.eq({ false, true }, { is_reviewed({}), (is_reviewed({ review = { when = 'ask' } })) })
    t.eq(false, is_reviewed({ review = { when = 'ask', groups = { file = 'never' } } }))
    t.eq(true, is_reviewed({ review = { tools = { file_edit = 'ask' } } }))
  end)

  it('can be stricter for a client, but not less strict', function()
    t.eq(true, is_reviewed({ review = { when = 'never' }, clients = { gemini = { review = 'ask' } } }, 'gemini'))
    t.eq(false, is_reviewed({}, 'claude'))
    config.reset()
    t.eq(true, is_reviewed({ review = { when = 'ask' }, clients = { gemini = { review = 'never' } } }, 'gemini'))
  end)
end)

describe('with review.when = "after" an edit', function()
  before_each(function() setup({ review = { when = 'after' } }) end)

  it('is applied immediately, and reverted when it is rejected', function()
    succeeds(start_edit(edit()))
    t.eq({ 'A', 'b', 'C' }, lines())
    local open = shown()
    t.ok(open.applied)
    open:reject(1, 1) -- keeps it
    open:accept(1, 2) -- takes it back
    become({ [0] = { 'A', 'b', 'c' } })
  end)

  it('that was saved is reverted on disk', function()
    local path = edit()
    succeeds(call('file_edit', { path = path, edits = EDITS, save = true }))
    t.eq({ 'A', 'b', 'C' }, vim.fn.readfile(path))
    shown():decide_rest('accepted')
    t.wait(function() return vim.deep_equal({ 'a', 'b', 'c' }, vim.fn.readfile(path)) end)
    t.eq(false, vim.bo.modified)
  end)

  it('joins one that is not shown yet', function()
    local a, b = edit('a.txt', 'a\n'), project.write('b.txt', 'a\n')
    local one, two = start_edit(a, { EDITS[1] }), start_edit(b, { EDITS[1] })
    t.eq({}, { outcome_of(one).error, outcome_of(two).error })
    waits(1, 2):decide_rest('accepted')
    become({ [vim.fn.bufnr(a)] = { 'a' }, [b] = { 'a' } })
  end)

  it('joins earlier ones that were not decided yet, and keeps what the user has typed', function()
    local path = edit()
    succeeds(start_edit(path, { EDITS[1] }))
    shown()
    api.nvim_buf_set_lines(0, 1, 1, false, { 'mine' })
    local other = project.write('b.txt', 'a\n')
    succeeds(start_edit(other, { EDITS[1] }))
    succeeds(start_edit(path, { EDITS[2] }))
    t.eq(2, #waits(1, 2).files[1].hunks)
    review.current():decide_rest('accepted')
    become({ [0] = { 'a', 'mine', 'b', 'c' }, [other] = { 'a' } })
  end)

  it('reverts what was rejected, even if another edit comes before the rest was decided', function()
    local a, b = edit('a.txt', 'a\n'), edit('b.txt', 'a\nb\nc\n')
    succeeds(start_edit(a, { EDITS[1] }))
    succeeds(start_edit(b))
    local open = waits(1, 2)
    open:accept(1, 1)
    open:accept(2, 2)
    succeeds(start_edit(b, { { search = 'b\n', replace = 'new\n' } }))
    become({ [vim.fn.bufnr(a)] = { 'a' }, [0] = { 'A', 'new', 'c' } })
    t.eq(1, waits(1, 1):undecided())
  end)

  it('of a new file joins its creation; rejected, the file is deleted', function()
    local path = project.root .. '/new.txt'
    succeeds(call('file_write', { path = path, text = 'a\n\nb\n' }))
    t.eq({ 1, true }, { #shown().files[1].hunks, shown().files[1].made })
    succeeds(start_edit(path, { EDITS[1] }))
    t.wait(function() return review.current() and vim.deep_equal({ 'A', '', 'b' }, review.current().files[1].base) end)
    t.ok(review.current().files[1].made)
    review.current():reject(1, 1) -- keeps it
    waits(0)
    t.eq({ 'A', '', 'b' }, vim.fn.readfile(path))

    local other = project.root .. '/other.txt'
    succeeds(call('file_write', { path = other, text = 'a\n' }))
    shown():accept(1, 1)
    t.wait(function() return not vim.uv.fs_stat(other) and vim.fn.bufnr(other) == -1 end)
  end)
end)
