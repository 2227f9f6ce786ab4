-- every Neovim
local core = require('mcp-tools.core')
local history = require('mcp-tools.editor.edit.history')
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

local bufnr, path

--- Calls a tool as a client does.
---@param client string?
---@return table? value
---@return mcp-tools.Error? err
---@return string? text
local function call(client, name, args)
  local fields = { kind = 'tool', host = 'mcp', client = { name = client } }
  local running = core.get().executor:execute(name, args, fields)
  local outcome = t.ended(running, 20000, name)
  return outcome.value, outcome.error, outcome.payload and outcome.payload.text
end

local function done(client, name, args)
  local value, err, text = call(client, name, args)
  t.eq(nil, err)
  return value, text
end

local function refused(code, pattern, args, client)
  t.fails(code, pattern, call(client or 'claude', 'change_revert', args))
end

local function edit(client, old_text, new_text, file)
  local one = { path = file or 'a.txt', old_text = old_text, new_text = new_text }
  return done(client, 'file_edit', { edits = { one } })
end

local function text(buffer) return table.concat(api.nvim_buf_get_lines(buffer or bufnr, 0, -1, false), ' ') end

--- A step of its own in the undo tree.
local function type_in(first, last, lines)
  api.nvim_buf_set_lines(bufnr, first, last, false, lines)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
end

local function revert(args) return done('claude', 'change_revert', args or vim.empty_dict()) end

--- What the user would notice when it changes.
local function seen()
  vim.cmd.redraw()
  return {
    api.nvim_get_current_buf(),
    #api.nvim_list_bufs(),
    vim.fn.winsaveview(),
    text(),
    api.nvim_buf_get_changedtick(bufnr),
    vim.fn.undotree(bufnr).seq_cur,
    vim.fn.bufnr('#'),
  }
end

project.each(nil, function()
  for _, change in ipairs(history.list()) do -- of earlier tests
    change.path, change.bufnr, change.owner = '/gone', nil, nil
  end
  project.offer({ 'change', 'file' })
  path = project.edit('a.txt', 'one\ntwo\nthree\nfour\nfive\n')
  bufnr = api.nvim_get_current_buf()
end)

describe('change_list', function()
  it("lists the client's, other agents' and the user's edits, newest first", function()
    type_in(0, 1, { 'ONE', 'and a half' })
    edit('claude', 'two', 'TWO')
    edit('codex', 'five', 'FIVE')
    vim.cmd('silent undo')
    local before = seen()
    local value, listed = done('claude', 'change_list', { path = 'a.txt' })
    t.eq({ before, 3, 3 }, { seen(), value.total, #value.edits })
    local lines = vim.split(listed, '\n')
    t.eq('3 edits, newest first', lines[1])
    local by_line = {}
    for i = 2, 4 do
      by_line[lines[i]:match('^a.txt:(%d+) ')] = lines[i]:gsub('%d%d:%d%d:%d%d', 'TIME'):gsub('#%d+ ', '#N ')
    end
    t.eq({
      ['1'] = ('a.txt:1 TIME #u%d.1 −1 +2 in the editor'):format(bufnr),
      ['3'] = 'a.txt:3 TIME #N −1 +1 by you, file_edit',
      ['6'] = 'a.txt:6 TIME #N −1 +1 by codex, file_edit, undone',
    }, by_line)
  end)

  it('lists branches of the undo tree, with limits of number and time', function()
    type_in(0, 1, { 'ONE' })
    type_in(1, 2, { 'TWO' })
    vim.cmd('silent undo')
    type_in(2, 3, { 'THREE' })
    local rows = {}
    for _, row in ipairs(done('claude', 'undo_tree', { bufnr = 0 }).edits) do
      table.insert(rows, { row.id:match('%d+$'), row.line, row.is_undone })
    end
    t.eq({ { '3', 3 }, { '2', 2, true }, { '1', 1 } }, rows)
    local value, listed = done('claude', 'change_list', { limit = 1, path = '.' })
    t.eq({ 1, 3 }, { #value.edits, value.total })
    t.matches('^3 edits, newest first; 1 shown\n', listed)
    t.eq('no edits', select(2, done('claude', 'change_list', { minutes = 0, path = project.write('b.txt', '') })))
    local _, err = call('claude', 'change_list', { path = 'none.txt' })
    t.eq({ 'not_found', 'path: there is no file none.txt' }, { err.code, err.message })
  end)

  it('compares no long text, and leaves no buffer behind when it is cancelled', function()
    local lines = t.lines(9000, 'line %d')
    type_in(0, -1, lines)
    local before = #api.nvim_list_bufs()
    local running = project.start('change_list', { path = 'a.txt' })
    t.wait(function() return running:ended() or #api.nvim_list_bufs() > before end, 5000, 'its copy')
    running:cancel('user')
    t.eq({ before, true }, { #api.nvim_list_bufs(), running:ended() })
    type_in(-1, -1, lines)
    t.eq(nil, done('claude', 'change_list', { path = 'a.txt' }).edits[1].added)
  end)

  it('compares unsaved text with the file on disk', function()
    local function unsaved(args)
      return select(2, done('claude', 'change_list', vim.tbl_extend('error', { unsaved = true }, args)))
    end
    t.eq('no unsaved changes', unsaved({}))
    type_in(1, 2, { 'TWO' })
    project.write('a.txt', 'one\ntwo\n')
    local diff = '--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,5 @@\n one\n-two\n+TWO\n+three\n+four\n+five'
    t.eq('unsaved changes in 1 file\na.txt: −1 +4\n' .. diff, unsaved({ path = 'a.txt' }))
    os.remove(path)
    t.matches('a.txt: −0 %+5; there is no such file on disk', unsaved({}))
    local lines = t.lines(4000, 'line %d of a long text')
    vim.cmd('silent edit! ' .. project.write('long.txt', table.concat(lines, '\n') .. '\n'))
    bufnr = api.nvim_get_current_buf()
    for i = 1, 4000, 20 do
      lines[i] = 'changed ' .. i
    end
    type_in(0, -1, lines)
    t.matches('long.txt: −200 %+200\n.*@@ %-1 %+1 @@\n', unsaved({ path = 'long.txt' }))
    type_in(0, -1, t.lines(4000, 'changed %d'))
    t.matches('long.txt: −4000 %+4000; too large to show', unsaved({ path = 'long.txt' }))
  end)

  it('returns no line of a sensitive file', function()
    vim.cmd('silent edit ' .. project.write('.env', 'SECRET=1\n'))
    bufnr = api.nvim_get_current_buf()
    type_in(0, 1, { 'SECRET=2' })
    local _, listed = done('claude', 'change_list', { unsaved = true })
    t.matches('%.env; .*sensitive', listed)
    t.eq(nil, listed:find('SECRET'))
    refused('access_denied', 'sensitive', { change = ('u%d.1'):format(bufnr) })
  end)
end)

describe('change_revert', function()
  it('reverts the last edits of the client one after the other, and keeps later ones of the user', function()
    edit('claude', 'two', 'TWO')
    edit('claude', 'four', 'FOUR')
    edit('codex', 'five', 'FIVE')
    type_in(0, 0, { 'zero' })
    api.nvim_win_set_cursor(0, { 6, 2 })
    local _, answer = revert()
    t.matches('^a.txt:5 −1 %+1, unsaved .*\nto undo this: change_revert with change #%d+$', answer)
    t.eq({ 'zero one TWO three four FIVE', { 6, 2 } }, { text(), (api.nvim_win_get_cursor(0)) })
    local id = answer:match('#(%d+)$')
    revert({ path = 'a.txt' })
    t.eq('zero one two three four FIVE', text())
    refused('not_found', 'no edit left to revert', {})
    revert({ change = id })
    t.eq('zero one two three FOUR FIVE', text())
    revert()
    t.eq('zero one two three four FIVE', text())
    vim.cmd('silent undo')
    t.eq('zero one two three FOUR FIVE', text())
  end)

  it('reverts all files of the last call, closed ones on disk, and deletes a new one', function()
    project.write('b.txt', 'two\n')
    local change = { path = 'a.txt', old_text = 'two', new_text = 'TWO' }
    local closed = vim.tbl_extend('force', change, { path = 'b.txt' })
    done('claude', 'file_edit', { edits = { change, closed, { path = 'new/c.txt', new_text = 'new\n' } } })
    t.eq('TWO\n', project.disk('b.txt'))
    local definition = require('mcp-tools.tools.change.revert')
    local shown = t.wait(function() -- the closed file has been read
      local preview = definition.preview({}, function() end, { client = { name = 'claude' } })
      return not preview:find('appears here') and preview
    end)
    t.matches({ '%-TWO\n%+two\n', 'Deletes new/c.txt, which edit #%d+ created' }, shown)
    local _, answer = revert()
    t.matches({ 'b.txt:1 −1 %+1, saved\n', 'new/c.txt: deleted' }, answer)
    t.eq({ 'two\n', 'one two three four five' }, { project.disk('b.txt'), text() })
    t.eq(nil, vim.uv.fs_stat(project.root .. '/new/c.txt'))
  end)

  it('reverts a call that edited a file twice, and restores both edits', function()
    require('mcp-tools').register({
      name = 'edit_twice',
      description = 'Edits a file twice.',
      run = function(ctx)
        for row, line in ipairs({ 'ONE', 'TWO' }) do
          local place = { start_line = row - 1, start_col = 0, end_line = row - 1, end_col = 3, text = line }
          require('mcp-tools.editor.edit').apply(bufnr, { place }, { ctx = ctx })
        end
        return 'done'
      end,
    })
    done('claude', 'edit_twice', vim.empty_dict())
    t.eq('ONE TWO three four five', text())
    local _, answer = revert()
    t.eq('one two three four five', text())
    refused('not_found', 'no edit left to revert', {})
    _, answer = revert({ change = answer:match('#(%d+)$') })
    t.eq('ONE TWO three four five', text())
    revert({ change = answer:match('#(%d+)$') })
    t.eq('one two three four five', text())
    refused('not_found', 'no edit left to revert', {})
  end)

  it('reverts one edit, also one of the user, and refuses a conflict', function()
    type_in(0, 1, { 'ONE' })
    edit('codex', 'two', 'TWO')
    local id = tostring(history.list({ bufnr = bufnr })[1].id)
    type_in(4, 5, { 'FIVE' })
    revert({ change = ('#u%d.1'):format(bufnr) })
    t.eq('one TWO three four FIVE', text())
    type_in(1, 2, { 'TWO and more' })
    local before = seen()
    refused('stale', 'a.txt changed later near line 1: revert that first', { change = id })
    t.eq(before, seen())
    vim.cmd('silent undo')
    revert({ change = '#' .. id })
    t.eq('one two three four FIVE', text())
    refused('stale', 'already been reverted', { change = id })
    refused('not_found', 'no such edit', { change = '9999' })
    refused('not_found', 'no such edit', { change = 'u1.99' })
    vim.cmd('silent undo 1 | silent undo 0')
    refused('stale', 'already been reverted', { change = ('u%d.1'):format(bufnr) })
  end)

  it('reverts all edits of a file in the last minutes', function()
    local time = os.time
    os.time = function() return time() + 600 end
    type_in(0, 1, { 'ONE' })
    edit('claude', 'two', 'TWO')
    local last = { path = 'a.txt', minutes = 5 }
    local ok, fault = pcall(refused, 'not_found', 'a.txt has not been edited in the last 5', last)
    os.time = time
    t.ok(ok, fault)
    local shown = require('mcp-tools.tools.change.revert').preview(last)
    t.matches('%-ONE\n%-TWO\n%+one\n%+two\n', shown)
    local _, answer = revert(last)
    t.eq('one two three four five', text())
    revert({ change = answer:match('#(%d+)$') })
    t.eq('ONE TWO three four five', text())
    refused('not_found', 'is not open', { path = project.write('b.txt', ''), minutes = 5 })
    refused('validation_error', 'path: is missing', { minutes = 5 })
    refused('validation_error', 'cannot be combined', { path = 'a.txt', minutes = 5, change = '1' })
  end)

  it('does not guess which edit is the last one of a client without a name', function()
    edit(nil, 'two', 'TWO')
    t.fails('validation_error', '^change: is missing', call(nil, 'change_revert', vim.empty_dict()))
    refused('not_found', 'no edit there left', { path = 'a.txt' })
    vim.bo.modifiable = false
    local id = tostring(history.list({ bufnr = bufnr })[1].id)
    refused('tool_error', 'not modifiable', { change = id })
  end)

  it('finds edits of a file that was moved', function()
    edit('claude', 'one', 'ONE')
    vim.cmd('silent write')
    done('claude', 'file_move', { path = 'a.txt', new_path = 'moved.txt' })
    local moved = done('claude', 'change_list', { path = 'moved.txt' }).edits[1]
    t.eq('moved.txt', moved.path)
    revert({ change = tonumber(moved.id) })
    t.matches('^one two', text())
  end)
end)
