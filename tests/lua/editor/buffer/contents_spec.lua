-- every Neovim
-- The text of a buffer, its file on disk, and the buffer that a call refers to.

local Call = require('mcp-tools.calls.call')
local contents = require('mcp-tools.editor.buffer.contents')
local Ctx = require('mcp-tools.calls.ctx')
local disk = require('mcp-tools.editor.buffer.disk')
local Double = require('lsp_double')
local project = require('editor_project')
local t = require('helpers')
local target = require('mcp-tools.editor.buffer.target')

local api = vim.api

describe('the whole text of a buffer', function()
  local bufnr

  before_each(function() bufnr = api.nvim_create_buf(true, false) end)

  after_each(function() pcall(api.nvim_buf_delete, bufnr, { force = true }) end)

  it('consists of all lines, in any number of slices', function()
    for _, count in ipairs({ 1, 1999, 2000, 2001, 4000, 5001 }) do
      local lines, pauses = t.lines(count, 'line %d'), 0
      api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
      local text = contents.of_buffer(bufnr, function() pauses = pauses + 1 end)
      t.eq(table.concat(lines, '\n') .. '\n', text)
      t.eq(math.ceil(count / 2000) - 1, pauses)
    end
    api.nvim_buf_set_lines(bufnr, 0, -1, false, {})
    t.eq('\r\n', contents.of_buffer(bufnr, function() end, '\r\n'))
  end)

  it('is consistent even if the text changes while it is read', function()
    api.nvim_buf_set_lines(bufnr, 0, -1, false, t.lines(5000, 'line %d'))
    for _, times in ipairs({ 1, math.huge }) do
      local changed = 0
      local text = contents.of_buffer(bufnr, function()
        if changed < times then
          changed = changed + 1
          api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'change ' .. changed })
        end
      end)
      t.eq(table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') .. '\n', text)
    end
  end)

  it('is nil when the buffer is deleted while it is read', function()
    api.nvim_buf_set_lines(bufnr, 0, -1, false, t.lines(5000, 'line %d'))
    local function delete()
      if api.nvim_buf_is_valid(bufnr) then
        api.nvim_buf_delete(bufnr, { force = true })
      end
    end
    t.eq(nil, contents.of_buffer(bufnr, delete))
  end)
end)

describe('a file on disk', function()
  local function refresh(bufnr)
    local state
    disk.refresh(bufnr, function(got) state = got end)
    return t.wait(function() return state end)
  end

  local path, bufnr
  local function lines() return vim.api.nvim_buf_get_lines(bufnr, 0, -1, false) end

  after_each(function() vim.o.autoread = true end)
  project.each(nil, function()
    path = project.edit('a.txt', 'one\n')
    bufnr = vim.api.nvim_get_current_buf()
  end)

  describe('a file that another process changed', function()
    for _, autoread in ipairs({ true, false }) do
      it('is reloaded into a clean buffer, with autoread ' .. tostring(autoread), function()
        vim.o.autoread = autoread
        t.eq('same', refresh(bufnr))
        project.write('a.txt', 'one\ntwo\n')
        t.eq({ 'reloaded', 'same', { 'one', 'two' } }, { refresh(bufnr), refresh(bufnr), (lines()) })
      end)
    end

    it('has the line breaks and the encoding of the new file', function()
      vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'caf\195\169' })
      vim.cmd('silent write! ++ff=dos ++enc=latin1 | silent edit!')
      t.eq({ 'dos', 'latin1' }, { vim.bo.fileformat, vim.bo.fileencoding })
      for _, own in ipairs({ 'unset', true, false }) do
        vim.bo.autoread = own ~= 'unset' and own or nil
        if own == false then
          vim.cmd('setlocal noautoread')
        end
        project.write('a.txt', 'caf\195\169 ' .. tostring(own) .. '\n')
        t.eq('reloaded', refresh(bufnr))
        t.eq({ 'caf\195\169 ' .. tostring(own) }, lines())
        t.eq({ 'unix', 'utf-8' }, { vim.bo.fileformat, vim.bo.fileencoding })
        t.eq(own, vim.bo.autoread == nil and 'unset' or vim.bo.autoread)
        vim.cmd('silent write! ++ff=dos ++enc=latin1 | silent edit!')
      end
      vim.bo.autoread = nil
      project.write('a.txt', 'one\r\ntwo\r\n')
      t.eq({ 'reloaded', { 'one', 'two' } }, { refresh(bufnr), (lines()) })
    end)

    it('is detected even if it was written during the check', function()
      vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'a draft' })
      vim.uv.sleep(20) -- file times are as coarse as the ticks of the clock
      local state
      disk.refresh(bufnr, function(got) state = got end)
      vim.uv.sleep(20) -- the thread has read the file; its result is not processed yet
      project.write('a.txt', 'one\ntwo\n')
      t.wait(function() return state end)
      t.eq({ 'conflict', 'conflict' }, { state, refresh(bufnr) })
    end)

    it('is not reloaded while the buffer is modified, which is reported each time', function()
      vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'mine' })
      project.write('a.txt', 'theirs\n')
      t.eq({ 'conflict', 'conflict', { 'mine' } }, { refresh(bufnr), refresh(bufnr), (lines()) })
      project.write('a.txt', 'theirs again\n')
      t.eq('conflict', refresh(bufnr))
      vim.cmd('silent undo')
      vim.bo[bufnr].modified = false
      t.eq({ 'reloaded', 'same', { 'theirs again' } }, { refresh(bufnr), refresh(bufnr), (lines()) })
    end)

    it('can be one that did not exist when its buffer was created', function()
      for _, mine in ipairs({ true, false }) do
        path = project.root .. (mine and '/mine.txt' or '/theirs.txt')
        vim.o.hidden = true
        vim.cmd('silent edit ' .. path)
        bufnr = vim.api.nvim_get_current_buf()
        t.eq('same', refresh(bufnr))
        if mine then
          vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'mine' })
        end
        project.write(path, 'theirs\n')
        t.eq({ mine and 'conflict' or 'reloaded', mine and 'conflict' or 'same' }, { refresh(bufnr), refresh(bufnr) })
        t.eq({ mine and 'mine' or 'theirs' }, lines())
      end
      local save = require('mcp-tools.editor.buffer.save')
      bufnr = vim.fn.bufnr(project.root .. '/mine.txt')
      t.eq({ 'stale', nil }, { t.ok(save.now(bufnr)).code, (save.now(bufnr, { overwrite = true })) })
      t.eq({ 'same', { 'mine' } }, { refresh(bufnr), vim.fn.readfile(project.root .. '/mine.txt') })
    end)

    it('can be deleted, which is reported each time, and come back', function()
      os.remove(path)
      t.eq({ 'gone', 'gone', { 'one' } }, { refresh(bufnr), refresh(bufnr), (lines()) })
      project.write('a.txt', 'back\n')
      vim.bo[bufnr].modified = false
      t.eq({ 'reloaded', { 'back' } }, { refresh(bufnr), lines() })
    end)

    it('keeps the cursor and the view of the user', function()
      local text = t.lines(100, 'line %d')
      vim.fn.writefile(text, path)
      refresh(bufnr)
      vim.api.nvim_win_set_cursor(0, { 50, 3 })
      vim.cmd('normal! zt')
      local view = vim.fn.winsaveview()
      vim.fn.writefile(vim.list_extend(text, { 'more' }), path)
      t.eq({ 'reloaded', view }, { refresh(bufnr), (vim.fn.winsaveview()) })
    end)

    it('is reported to the language servers of its project, once', function()
      local own = Double.start(bufnr, project.root, {}, {})
      local other = Double.start(bufnr, project.base .. '/another', {}, {})
      t.wait(function() return own.client.initialized and other.client.initialized end)
      project.write('a.txt', 'one\ntwo\n')
      refresh(bufnr)
      refresh(bufnr)
      os.remove(path)
      refresh(bufnr)
      local uri = vim.uri_from_fname(path)
      local function heard(double)
        local function changes(each)
          return each.method == 'workspace/didChangeWatchedFiles' and each.params.changes or nil
        end
        return vim.iter(double.told):map(changes):totable()
      end
      t.eq({ { { uri = uri, type = 2 } }, { { uri = uri, type = 3 } } }, heard(own))
      t.eq({}, heard(other))
    end)
  end)

  it('a buffer without a file is unchanged', function()
    vim.cmd('silent edit ' .. project.root .. '/new.txt')
    t.eq('same', refresh(vim.api.nvim_get_current_buf()))
    vim.cmd.enew()
    t.eq('same', refresh(vim.api.nvim_get_current_buf()))
    t.eq({ 'same', 'same' }, { refresh(vim.api.nvim_create_buf(false, true)), (refresh(9999)) })
  end)
end)

describe('the buffer or file of a call', function()
  --- The ctx of a call that was approved for some targets.
  local function ctx_of(targets)
    local call = Call.new({ id = 'x', name = 'file_read', host = 'test' })
    call.root, call.targets = project.root, targets or {}
    return Ctx.new(call, function() end)
  end

  local function find(args, opts, targets)
    local answer
    target.find(ctx_of(targets), args, opts or {}, function(...) answer = { ... } end)
    t.wait(function() return answer end)
    return answer[1], answer[2]
  end

  --- A file that is open by the name of a link.
  local function open_by_link(name)
    local path = project.write('plain.txt', 'text')
    assert(vim.uv.fs_symlink(path, project.root .. '/' .. name))
    vim.cmd.edit(project.root .. '/' .. name)
    return path
  end

  project.each()

  it('is the current file without path and bufnr, if the tool allows that', function()
    vim.cmd.edit(project.write('a.txt', 'text'))
    t.eq({ 'a.txt', 'validation_error' }, { find({}, { current = true }).shown, select(2, find({})).code })
    t.eq('validation_error', select(2, find({ path = 'a.txt', bufnr = 0 }, { current = true })).code)
  end)

  it('is loaded hidden, and unloaded again', function()
    local path = project.write('a.txt', 'text')
    t.eq({ path = path, shown = 'a.txt' }, find({ path = 'a.txt' }))
    local found = find({ path = 'a.txt' }, { load = true })
    t.eq({ true, path }, { found.new, found.path })
    target.drop(found)
    t.ok(not api.nvim_buf_is_valid(found.bufnr))
  end)

  it('is refused when its file is open by a sensitive name, or marked in any buffer', function()
    local path = open_by_link('.env')
    local err, why = target.path_refusal(ctx_of(), path)
    t.eq({ 'access_denied', 'sensitive' }, { err and err.code, why })
    vim.cmd('silent! %bwipeout!')
    t.eq(nil, (target.path_refusal(ctx_of(), path)))
    open_by_link('other.txt')
    vim.b.sensitive = true
    vim.cmd.enew()
    t.eq('sensitive', select(2, target.path_refusal(ctx_of({ { given = path, path = path } }), path)))
    t.eq('access_denied', select(2, find({ path = path }, { load = true })).code)
  end)

  it('outside the project is accepted if the call was approved for it', function()
    local path = project.write(project.base .. '/outside.txt', 'text')
    t.matches('is outside the project', select(2, find({ path = path })).message)
    t.eq(path, find({ path = path }, nil, { { given = path, path = path } }).path)
  end)

  it('that is sensitive once it is loaded is unloaded', function()
    local path = project.write('a.txt', 'text')
    local hook = api.nvim_create_autocmd('BufReadPost', {
      callback = function(event) vim.b[event.buf].sensitive = true end,
    })
    local found, err = find({ path = path }, { load = true })
    api.nvim_del_autocmd(hook)
    t.eq({ nil, 'access_denied', -1 }, { found, err and err.code, (vim.fn.bufnr(path)) })
  end)

  it('that has no file and is not loaded is refused', function()
    local bufnr = api.nvim_create_buf(true, false)
    vim.cmd.bunload(bufnr)
    local _, err = find({ bufnr = bufnr }, { load = true })
    t.eq(('buffer %d is not loaded and has no file'):format(bufnr), err and err.message)
  end)
end)
