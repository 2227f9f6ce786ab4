-- every Neovim
local hunks = require('mcp-tools.editor.text.hunks')
local project = require('editor_project')
local Proposal = require('mcp-tools.editor.review.proposal')
local review = require('mcp-tools.editor.review')
local t = require('helpers')

describe('a review', function()
  local api = vim.api
  local shown, ends, handles

  local PRESENTER = {
    is_attended = t.returns(true),
    show = function(one) table.insert(shown, 'show ' .. one.key) end,
    update = function(one) table.insert(shown, 'update ' .. one.key) end,
    hide = function(one) table.insert(shown, 'hide ' .. one.key) end,
  }

  local function open(key, files, more)
    local handle = review.open(vim.tbl_extend('force', {
      client = { name = 'claude' },
      key = key,
      title = key,
      files = files,
      on_end = function(outcome)
        ends[key] = ends[key] or {}
        table.insert(ends[key], outcome)
      end,
    }, more or {}))
    table.insert(handles, handle)
    return handle
  end

  local function opened(key)
    return t.wait(function()
      return vim.iter(review.list()):find(function(one) return one.key == key end)
    end, 2000, 'the review ' .. key)
  end

  local function ended(key)
    local list = t.wait(function() return ends[key] end, 2000, 'the end of ' .. key)
    t.eq(1, #list)
    return list[1]
  end

  local function file(name, text) return project.write(name, text) end

  --- Opens the review 'k' of a.txt.
  local function propose(old, new, more)
    local path = file('a.txt', old)
    open('k', { { path = path, text = new } }, more)
    return opened('k'), path
  end
  local function edit(path)
    vim.cmd('silent edit ' .. path)
    return api.nvim_get_current_buf()
  end

  after_each(function()
    for _, handle in ipairs(handles) do
      handle.close('the test is over')
    end
    review.set_presenter(nil)
  end)
  project.each(nil, function()
    shown, ends, handles = {}, {}, {}
    review.set_presenter(PRESENTER)
  end)

  it('takes over a file that only a closed review had loaded', function()
    local path = file('a.txt', 'a\nb\nc\n')
    open('one', { { path = path, text = 'A\nb\nc\n' } })
    opened('one')
    open('two', { { path = path, text = 'a\nb\nC\n' } })
    local two = opened('two')
    handles[1].close()
    t.settle() -- the end of a review is reported in a later turn
    t.eq({ 1, nil }, { two:undecided(), two.ended })
    two:decide_rest('accepted')
    t.eq({ 'a\nb\nC\n', 0 }, { ended('two').files[path], (vim.fn.bufloaded(path)) })
  end)

  it('stays visible when an earlier one took longer to read', function()
    local slow = file('slow.txt', ('line\n'):rep(60000))
    local fast = file('fast.txt', 'a\n')
    open('slow', { { path = slow, text = 'first\n' .. ('line\n'):rep(60000) .. 'more\n' } })
    open('fast', { { path = fast, text = 'b\n' } })
    opened('slow')
    t.eq({ 'fast', { 'show fast', 'update fast' } }, { review.current().key, shown })
  end)

  it('reports the accepted text and what was rejected and why, and writes nothing', function()
    local one, path = propose('a\nb\nc\nd\n', 'A\nb\nc\nD\n')
    t.ok(one:accept(1, 1))
    t.eq({}, ends)
    t.ok(one:reject(1, 2, 'keep it'))
    local outcome = ended('k')
    t.eq({ 'accepted', { [path] = 'A\nb\nc\nd\n' } }, { outcome.state, outcome.files })
    t.eq({ { path = path, hunk = 2, line = 4, reason = 'keep it' } }, outcome.rejected)
    t.eq('a\nb\nc\nd\n', table.concat(vim.fn.readfile(path), '\n') .. '\n')
    t.eq({ 'show k', 'update k', 'hide k' }, shown)
  end)

  it('of a text that is already in the file is accepted without being shown', function()
    local path = file('a.txt', 'a\n')
    open('k', { { path = path, text = 'a\n' } })
    local outcome = ended('k')
    t.eq({ 'accepted', { [path] = 'a\n' }, {} }, { outcome.state, outcome.files, shown })
  end)

  it('waits while another is shown; one can be postponed, and one can be closed', function()
    local path = file('a.txt', 'a\n')
    open('first', { { path = path, text = 'b\n' } })
    opened('first')
    local handle = open('second', { { path = path, text = 'c\n' } }, { client = { name = 'gemini' } })
    opened('second')
    t.eq('first', review.current().key)
    review.postpone()
    t.eq('second', review.current().key)
    handle.close('the client asked for that')
    t.eq({ 'closed', 'the client asked for that' }, { ended('second').state, ended('second').reason })
    t.eq('first', review.current().key)
    handle.close()
    t.eq(1, #ends.second)
  end)

  it('replaces an earlier one with the same key of the same client only', function()
    local path = file('a.txt', 'a\n')
    open('k', { { path = path, text = 'b\n' } })
    local one = opened('k')
    open('k', { { path = path, text = 'c\n' } }, { client = { name = 'gemini' } })
    t.wait(function() return review.count() == 2 end)
    t.eq(nil, one.ended)
    open('k', { { path = path, text = 'd\n' } })
    t.eq('closed', one.ended)
  end)

  it('is busy when too many of its session wait, and leaves room for other sessions', function()
    for i = 1, 8 do
      open('one' .. i, { { path = file(i .. '.txt', 'a\n'), text = 'b\n' } })
    end
    local path = file('more.txt', 'a\n')
    open('one9', { { path = path, text = 'b\n' } })
    local outcome = ended('one9')
    t.eq('busy', outcome.state)
    t.matches('8 reviews of this session .* propose it again', outcome.reason)
    open('one8', { { path = path, text = 'c\n' } }) -- takes the place of one
    open('other', { { path = path, text = 'b\n' } }, { client = { name = 'gemini' } })
    open('made', { { path = path, text = 'b\n' } }, { applied = true })
    opened('other')
    opened('made')
    t.wait(function() return review.count() == 10 end)
    t.eq(nil, review.busy({ name = 'gemini' }, 'another'))
    for i = 1, 22 do
      open('more' .. i, { { path = path, text = 'b\n' } }, { client = { name = 'agent' .. i % 4 } })
    end
    open('too much', { { path = path, text = 'b\n' } }, { client = { name = 'fifth' } })
    t.matches('^32 reviews', ended('too much').reason)
  end)

  it('ends when nobody decides in time', function()
    open('k', { { path = file('a.txt', 'a\n'), text = 'b\n' } }, { timeout = 1 })
    t.matches('not decided', ended('k').reason)
  end)

  it('applies nothing to a buffer that is closed or renamed', function()
    for how, reason in pairs({ ['bdelete!'] = 'closed', ['file other.txt'] = 'renamed' }) do
      local path = file(how:sub(1, 4) .. '.txt', 'a\nb\nc\n')
      edit(path)
      open(how, { { path = path, text = 'A\nb\nC\n' } })
      opened(how):accept(1, 1)
      vim.cmd(how)
      local outcome = ended(how)
      t.eq({ 'rejected', {} }, { outcome.state, outcome.files })
      t.matches(reason, outcome.rejected[1].reason)
    end
  end)

  it('follows the text that the user types, and a buffer that is reloaded', function()
    local path = file('a.txt', 'a\nb\nc\n')
    local bufnr = edit(path)
    open('k', { { path = path, text = 'a\nb\nC\n' } })
    local one = opened('k')
    api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'mine' })
    t.wait(function() return one.files[1].hunks[1].start == 4 end)
    vim.cmd('silent edit!')
    t.wait(function() return one.files[1].hunks[1].start == 3 end)
    t.eq(nil, one.ended)
  end)

  it('unloads a file that is in no window at its end', function()
    local one, path = propose('a\n', 'b\n')
    one:decide_rest('accepted')
    ended('k')
    t.wait(function() return vim.fn.bufloaded(path) == 0 end)
  end)

  it('ends even if its cleanup throws', function()
    local one = propose('a\n', 'b\n')
    table.insert(one.stops, 1, error)
    one:decide_rest('accepted')
    t.eq('accepted', ended('k').state)
  end)

  it('continues when its presenter throws', function()
    review.set_presenter({ show = error, update = error, hide = error })
    local one = propose('a\n', 'b\n')
    one:decide_rest('accepted')
    t.eq('accepted', ended('k').state)
  end)
end)

describe('a proposal', function()
  local api = vim.api

  local function proposal(base, text, fields)
    local made
    local all = vim.tbl_extend('force', { path = '/p', base = base, text = text }, fields or {})
    Proposal.new(all, function(one) made = one end)
    return made
  end

  local function buffer(lines)
    local bufnr = api.nvim_create_buf(true, false)
    api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
    return bufnr
  end

  --- The text that results when all hunks that are undecided are accepted.
  local function accepted(one)
    one:decide_rest('accepted')
    return select(2, one:final())
  end

  local function spans(one)
    return vim.tbl_map(function(hunk) return { hunk.start, hunk.count, #hunk.new, hunk.changed } end, one.hunks)
  end

  describe('hunks', function()
    it('turn one text into the other, for any two texts', function()
      math.randomseed(7)
      for _ = 1, 300 do
        local function text()
          local list = t.list(math.random(0, 9), function() return ('abc'):sub(math.random(3)):sub(1, 1) end)
          return list
        end
        local old, new = text(), text()
        local list = hunks.between(old, new)
        t.eq(new, hunks.applied(old, list, t.returns(true)))
        t.eq(old, hunks.applied(old, list, t.returns(false)))
      end
    end)

    it('follow any change of the text, or are marked as changed', function()
      math.randomseed(11)
      local function text(count)
        local lines = t.list(count, function() return ('abcdefgh'):sub(math.random(8)):sub(1, 1) .. math.random(3) end)
        return lines
      end
      for _ = 1, 300 do
        local old, new = text(math.random(0, 12)), text(math.random(0, 12))
        local list, before = hunks.between(old, new), old
        for _ = 1, 3 do
          local now = vim.list_slice(before)
          if math.random(2) == 1 and #now > 0 then
            table.remove(now, math.random(#now))
          else
            table.insert(now, math.random(#now + 1), 'typed')
          end
          hunks.follow(list, before, now)
          before = now
          for _, hunk in ipairs(list) do
            if not hunk.changed then
              t.eq(hunk.old, vim.list_slice(now, hunk.start, hunk.start + hunk.count - 1))
            end
          end
        end
      end
    end)

    it('that overlap a change fit again when the change is undone', function()
      local old = { 'a', 'b', 'c', 'd' }
      local list = hunks.between(old, { 'a', 'B', 'c', 'x', 'd' })
      local now = { 'zero', 'a', 'b!', 'c', 'd' }
      hunks.follow(list, old, now)
      t.eq({ 3, 1, true }, { list[1].start, list[1].count, list[1].changed })
      t.eq({ 5, 0 }, { list[2].start, list[2].count })
      t.ok(not list[2].changed)
      hunks.follow(list, now, old)
      t.eq({ 2, 1 }, { list[1].start, list[1].count })
      t.ok(not list[1].changed)
    end)
  end)

  describe('a proposal', function()
    local BASE, TEXT = 'a\nb\nc\nd\ne\n', 'A\nb\nc\nD\ne\nf\n'

    it('becomes the text that the decisions produce', function()
      local one = proposal(BASE, TEXT)
      t.eq({ { 1, 1, 1 }, { 4, 1, 1 }, { 6, 0, 1 } }, spans(one))
      t.ok(one:accept(1) and one:reject(2, 'no capital'))
      t.eq({ 1, 'A\nb\nc\nd\ne\nf\n' }, { one:undecided(), (accepted(one)) })
      t.eq({ { path = '/p', hunk = 2, line = 4, reason = 'no capital' } }, one:rejected())
    end)

    it('has no text when all was rejected, and its whole text when nothing would change', function()
      local one = proposal(BASE, TEXT)
      one:decide_rest('rejected', 'wrong file')
      t.eq({ nil, 3, BASE }, { (one:final()), (#one:rejected()), (select(2, proposal(BASE, BASE):final())) })
    end)

    it('keeps the line breaks, also a missing one at the end', function()
      for _, each in ipairs({ 'a\r\nB\r\n', 'a\nB', 'a\nB\n', '', 'B', '\n\n' }) do
        local one = proposal('a\nb\n', each)
        t.eq(each, accepted(one))
      end
    end)

    it('contains what the user writes into a hunk or into the whole text', function()
      local one = proposal(BASE, TEXT)
      t.ok(one:edit(1, { 'one', 'two' }) and one:accept(1))
      local lines = one:proposed()
      t.eq({ 'one', 'two', 'b', 'c', 'D', 'e', 'f' }, lines)
      lines[4] = 'see'
      t.ok(one:rewrite(lines))
      t.eq({ 'accepted', 'one\ntwo\nb\nsee\nD\ne\nf\n' }, { one.hunks[1].verdict, (accepted(one)) })
      t.ok(one:is_edited())
    end)

    it('that is not editable accepts no other text', function()
      local one = proposal(BASE, TEXT, { editable = false })
      local ok, why = one:edit(1, { 'x' })
      t.eq(false, ok)
      t.matches('only be accepted or rejected', why)
      t.eq(false, (one:rewrite({ 'x' })))
    end)

    it('follows its buffer: text typed beside a hunk stays, a hunk that was typed over cannot be accepted', function()
      local bufnr = buffer({ 'a', 'b', 'c', 'd', 'e' })
      local one = proposal(nil, TEXT, { bufnr = bufnr })
      api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'mine' })
      api.nvim_buf_set_lines(bufnr, 4, 5, false, { 'my d' })
      local ok, why = one:accept(2)
      t.eq(false, ok)
      t.matches('have changed', why)
      t.eq('mine\nA\nb\nc\nmy d\ne\nf\n', accepted(one))
      t.eq({ { path = '/p', hunk = 2, line = 5, reason = 'its lines have changed during review' } }, one:rejected())
      local applied = buffer(api.nvim_buf_get_lines(bufnr, 0, -1, false))
      t.ok(require('mcp-tools.editor.edit').apply(applied, one:edits()))
      t.eq((one:final()), api.nvim_buf_get_lines(applied, 0, -1, false))
    end)

    it('made from an older text keeps unsaved changes', function()
      local bufnr = buffer({ 'mine', 'a', 'b', 'c', 'd', 'e' })
      local one = proposal(BASE, TEXT, { bufnr = bufnr })
      t.eq('mine\nA\nb\nc\nD\ne\nf\n', accepted(one))
    end)

    describe('of a long text', function()
      local lines, text = t.lines(12000, 'line %d of a text'), nil
      local function begun(fields)
        local done
        Proposal.new(vim.tbl_extend('force', { path = '/p/x', text = text }, fields), function(one) done = { one } end)
        t.eq(nil, done) -- it is compared in slices
        return function()
          t.wait(function() return done end, 5000, 'the proposal')
          return done[1]
        end
      end
      local function long_buffer()
        local bufnr = api.nvim_create_buf(false, true)
        api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
        local other = vim.list_slice(lines)
        for i = 10, #other, 1000 do
          other[i] = 'another'
        end
        text = table.concat(other, '\r\n') .. '\r\n'
        return bufnr
      end

      it('has the hunks of its buffer, of an older text, and of a new file', function()
        local bufnr = long_buffer()
        for _, fields in ipairs({ { bufnr = bufnr }, { base = table.concat(lines, '\n') }, { is_new = true } }) do
          local one = begun(fields)()
          t.eq(fields.is_new and { 1, {} } or { 12, lines }, { #one.hunks, one.base })
          t.eq(text, accepted(one))
        end
      end)

      it('follows what is typed while it is compared, and ends when its buffer is closed', function()
        local bufnr = long_buffer()
        local compare = hunks.compare
        hunks.compare = function(...)
          hunks.compare = compare
          compare(...)
          api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'mine' })
        end
        local one = begun({ bufnr = bufnr })()
        t.eq({ 'mine', 11, 12 }, { one.base[1], one.hunks[1].start, #one.hunks })
        local get = begun({ bufnr = bufnr })
        api.nvim_buf_delete(bufnr, { force = true })
        t.eq(nil, get())
      end)
    end)
  end)
end)
