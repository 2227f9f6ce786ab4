-- every Neovim
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

describe('a write by a tool', function()
  local bufnr

  local function lines() return api.nvim_buf_get_lines(bufnr, 0, -1, false) end

  project.each({ 'buffer', 'file' }, function()
    vim.cmd('silent edit ' .. project.write('a.txt', 'one\ntwo\n'))
    bufnr = api.nvim_get_current_buf()
  end)

  describe('does not overwrite what another process writes while autocommands run:', function()
    before_each(function()
      project.once('BufWritePre', '*/a.txt', function() project.write('a.txt', 'one\ntwo\nthree\n') end)
    end)

    it('file_edit edits it', function()
      local edits = { { old_text = 'two', new_text = 'TWO' } }
      t.ok(project.call('file_edit', { path = 'a.txt', save = true, edits = edits }))
      t.eq('one\nTWO\nthree\n', project.disk('a.txt'))
    end)

    it('file_write is refused', function()
      project.call('file_read', { path = 'a.txt' })
      project.refused('file_write', 'stale', 'changed on disk', { path = 'a.txt', text = 'new\n' })
      t.eq({ 'one\ntwo\nthree\n', { 'one', 'two' } }, { project.disk('a.txt'), lines() })
    end)

    it('file_save is refused', function()
      api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'mine' })
      project.refused('file_save', 'tool_error', 'changed on disk', { paths = { 'a.txt' } })
      t.eq({ 'one\ntwo\nthree\n', { 'mine', 'one', 'two' } }, { project.disk('a.txt'), lines() })
      t.eq(true, vim.bo[bufnr].modified)
    end)
  end)

  local function edit(text)
    local edits = { { old_text = 'two', new_text = text } }
    return project.call('file_edit', { path = 'a.txt', save = true, edits = edits })
  end

  for name, code in pairs({ Lua = 'lua error("no linter")', Vim = 'call NoSuchFunction()' }) do
    it('succeeds if an autocommand fails after it: ' .. name, function()
      project.once('BufWritePost', '*/a.txt', code)
      t.ok(edit('TWO'))
      t.eq({ 'one\nTWO\n', { 'one', 'TWO' } }, { project.disk('a.txt'), lines() })
      t.eq({ false, 'same' }, { vim.bo[bufnr].modified, require('mcp-tools.editor.buffer.disk').check(bufnr) })
    end)
  end

  describe('while an autocommand of another write processes events', function()
    --- Edits a file during a write of a.txt.
    local function meanwhile(path, edits, write)
      local call
      project.once('BufWritePre', '*/a.txt', function()
        call = project.start('file_edit', { path = path, save = true, edits = edits })
        vim.wait(100, function() return call:ended() end)
        t.eq(false, call:ended())
      end)
      write()
      return t.ended(call, 2000, 'the edit')
    end

    it('is made later, and stays when the other write is cancelled', function()
      local first
      project.once('BufWritePost', '*/a.txt', function() first:cancel('test') end)
      local edits = { { old_text = 'one', new_text = 'ONE' } }
      local done = meanwhile('a.txt', edits, function()
        local others = { { old_text = 'two', new_text = '2' } }
        first = project.start('file_edit', { path = 'a.txt', save = true, edits = others })
        t.ended(first, 2000, 'the first edit')
      end)
      t.eq({ nil, 'ONE\ntwo\n' }, { done.error, project.disk('a.txt') })
      t.eq({ { 'ONE', 'two' }, false }, { lines(), vim.bo[bufnr].modified })
    end)

    it('runs its own autocommands, also for a file that was closed', function()
      project.write('b.txt', 'one\n')
      local events = {}
      for _, event in ipairs({ 'BufReadPost', 'BufWritePre', 'BufWritePost' }) do
        project.once(event, '*/b.txt', function() table.insert(events, event) end)
      end
      local edits = { { old_text = 'one', new_text = 'ONE' } }
      local done = meanwhile('b.txt', edits, function() vim.cmd('silent write') end)
      t.eq({ nil, 'ONE\n' }, { done.error, project.disk('b.txt') })
      t.eq({ 'BufReadPost', 'BufWritePre', 'BufWritePost' }, events)
    end)
  end)

  describe('to a full disk', function()
    if vim.fn.executable('prlimit') == 0 then -- Linux only
      return
    end
    local LIMIT = 8192

    --- Limits the size of files that this process writes while `fn` runs.
    local function limited(fn)
      local signal = vim.uv.new_signal() -- otherwise it ends the process
      signal:start('sigxfsz', function() end)
      local function set(size)
        local command = { 'prlimit', '--pid', tostring(vim.uv.os_getpid()), '--fsize=' .. size .. ':' }
        t.eq(0, vim.system(command):wait().code)
      end
      set(LIMIT)
      local ok, thrown = pcall(fn)
      set('unlimited')
      signal:close()
      assert(ok, thrown)
    end

    for name, is_open in pairs({ open = true, closed = false }) do
      it('restores the file, which is ' .. name, function()
        if not is_open then
          vim.cmd.bwipeout()
        end
        limited(function()
          local _, err = edit(('x'):rep(LIMIT))
          t.matches('written only in part and may be damaged: .*; the file was restored', t.ok(err).message)
        end)
        t.eq('one\ntwo\n', project.disk('a.txt'))
        if is_open then
          t.eq({ { 'one', 'two' }, false }, { lines(), vim.bo[bufnr].modified })
        end
      end)
    end

    it('keeps unsaved changes, and the text of a file that it cannot restore', function()
      local long = ('y'):rep(LIMIT)
      api.nvim_buf_set_lines(bufnr, -1, -1, false, { 'mine', long })
      limited(function()
        local _, err = edit('TWO')
        t.matches('a%.txt was written only in part.*; the file was restored', t.ok(err).message)
      end)
      t.eq({ 'one\ntwo\n', { 'one', 'two', 'mine', long } }, { project.disk('a.txt'), lines() })
      t.eq(true, vim.bo[bufnr].modified)
      vim.cmd('silent write')
      limited(function()
        local _, err = edit('TWO')
        t.matches('the edit of a%.txt was not undone: the file could not be restored', t.ok(err).message)
      end)
      t.eq({ { 'one', 'two', 'mine', long }, true }, { lines(), vim.bo[bufnr].modified })
    end)
  end)
end)
