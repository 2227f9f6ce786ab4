-- every Neovim
local Proposal = require('mcp-tools.editor.review.proposal')
local prepare = require('mcp-tools.editor.review.texts').prepare
local hunks = require('mcp-tools.editor.text.hunks')
local t = require('helpers')

local api = vim.api

local function proposal(base, text, fields)
  return Proposal.new(vim.tbl_extend('force', { path = '/p', base = base, text = text }, fields or {}))
end

local function buffer(lines)
  local bufnr = api.nvim_create_buf(true, false)
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  return bufnr
end

local function spans(one)
  return vim.tbl_map(function(hunk)
    return { hunk.start, hunk.count, #hunk.new, hunk.changed }
  end, one.hunks)
end

describe('hunks', function()
  it('make the one text of the other, whatever the two are, and any choice of them stays in order', function()
    math.randomseed(7)
    for _ = 1, 300 do
      local old, new = {}, {}
      for i = 1, math.random(0, 9) do
        old[i] = ('abc'):sub(math.random(3)):sub(1, 1)
      end
      for i = 1, math.random(0, 9) do
        new[i] = ('abc'):sub(math.random(3)):sub(1, 1)
      end
      local list = hunks.between(old, new)
      t.eq(
        new,
        hunks.applied(old, list, function()
          return true
        end)
      )
      t.eq(
        old,
        hunks.applied(old, list, function()
          return false
        end)
      )
    end
  end)

  it('follow any change of the text, or are marked: what one replaces is always what it was made for', function()
    math.randomseed(11)
    local function text(count)
      local lines = {}
      for i = 1, count do
        lines[i] = ('abcdefgh'):sub(math.random(8)):sub(1, 1) .. math.random(3)
      end
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

  it('that were overtaken fit again when the change is undone', function()
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

  it('becomes the text that the verdicts make', function()
    local one = proposal(BASE, TEXT)
    t.eq({ { 1, 1, 1 }, { 4, 1, 1 }, { 6, 0, 1 } }, spans(one))
    t.ok(one:accept(1))
    t.ok(one:reject(2, 'no capital'))
    t.eq(1, one:undecided())
    one:decide_rest('accepted')
    local _, text = one:final()
    t.eq('A\nb\nc\nd\ne\nf\n', text)
    t.eq({ { path = '/p', hunk = 2, line = 4, reason = 'no capital' } }, one:rejected())
  end)

  it('is nothing when all was rejected, and all when nothing would change', function()
    local one = proposal(BASE, TEXT)
    one:decide_rest('rejected', 'wrong file')
    t.eq(nil, (one:final()))
    t.eq(3, #one:rejected())
    local _, text = proposal(BASE, BASE):final()
    t.eq(BASE, text)
  end)

  it('keeps the form of line breaks, and whether there is one at the end', function()
    for _, each in ipairs({ 'a\r\nB\r\n', 'a\nB', 'a\nB\n', '', 'B', '\n\n' }) do
      local one = proposal('a\nb\n', each)
      one:decide_rest('accepted')
      local _, text = one:final()
      t.eq(each, text)
    end
  end)

  it('counts what the person writes into a hunk, or into the whole', function()
    local one = proposal(BASE, TEXT)
    t.ok(one:edit(1, { 'one', 'two' }))
    t.ok(one:accept(1))
    local lines = one:proposed()
    t.eq({ 'one', 'two', 'b', 'c', 'D', 'e', 'f' }, lines)
    lines[4] = 'see'
    t.ok(one:rewrite(lines))
    t.eq('accepted', one.hunks[1].verdict)
    one:decide_rest('accepted')
    local _, text = one:final()
    t.eq('one\ntwo\nb\nsee\nD\ne\nf\n', text)
    t.ok(one:is_edited())
  end)

  it('that is not editable takes no text', function()
    local one = proposal(BASE, TEXT, { editable = false })
    local ok, why = one:edit(1, { 'x' })
    t.eq(false, ok)
    t.matches('only be accepted or rejected', why)
    t.eq(false, (one:rewrite({ 'x' })))
  end)

  it('follows its buffer: what was typed beside it stays, what was typed over it cannot be accepted', function()
    local bufnr = buffer({ 'a', 'b', 'c', 'd', 'e' })
    local one = proposal(nil, TEXT, { bufnr = bufnr })
    api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'mine' })
    api.nvim_buf_set_lines(bufnr, 4, 5, false, { 'my d' })
    local ok, why = one:accept(2)
    t.eq(false, ok)
    t.matches('have changed', why)
    one:decide_rest('accepted')
    local _, text = one:final()
    t.eq('mine\nA\nb\nc\nmy d\ne\nf\n', text)
    t.eq({ { path = '/p', hunk = 2, line = 5, reason = 'its lines have changed during review' } }, one:rejected())
    local applied = buffer(api.nvim_buf_get_lines(bufnr, 0, -1, false))
    t.ok(require('mcp-tools.editor.edit').apply(applied, one:edits()))
    t.eq((one:final()), api.nvim_buf_get_lines(applied, 0, -1, false))
  end)

  it('made from an older text keeps what the person has not saved', function()
    local bufnr = buffer({ 'mine', 'a', 'b', 'c', 'd', 'e' })
    local one = proposal(BASE, TEXT, { bufnr = bufnr })
    one:decide_rest('accepted')
    local _, text = one:final()
    t.eq('mine\nA\nb\nc\nD\ne\nf\n', text)
  end)

  describe('of a long text', function()
    local lines, text = {}, nil
    for i = 1, 12000 do
      lines[i] = ('line %d of a text'):format(i)
    end
    local function prepared(fields)
      local done
      prepare(vim.tbl_extend('force', { path = '/p/x' }, fields), function(one)
        done = { one }
      end)
      t.eq(nil, done) -- the editor has its turns first
      return function()
        t.wait(function()
          return done
        end, 5000, 'the proposal')
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

    it('is what it is of a short one', function()
      local bufnr = long_buffer()
      for _, fields in ipairs({ { bufnr = bufnr }, { base = table.concat(lines, '\n') }, { is_new = true } }) do
        fields.text = text
        local one, other = prepared(fields)(), Proposal.new(vim.tbl_extend('force', { path = '/p/x' }, fields))
        t.eq({ #other.hunks, other.base }, { #one.hunks, one.base })
        one:decide_rest('accepted')
        other:decide_rest('accepted')
        t.eq(select(2, other:final()), select(2, one:final()))
      end
    end)

    it('follows what was typed meanwhile, and is none of a buffer that was closed', function()
      local bufnr = long_buffer()
      local get = prepared({ bufnr = bufnr, text = text })
      api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'mine' })
      local one = get()
      t.eq({ 'mine', 11, 12 }, { one.base[1], one.hunks[1].start, #one.hunks })
      get = prepared({ bufnr = bufnr, text = text })
      api.nvim_buf_delete(bufnr, { force = true })
      t.eq(nil, get())
    end)
  end)
end)
