-- every Neovim
local disk = require('mcp-tools.editor.buffer.disk')
local project = require('editor_project')
local t = require('helpers')

local function refresh(bufnr)
  local state
  disk.refresh(bufnr, function(got)
    state = got
  end)
  return t.wait(function()
    return state
  end)
end

local path, bufnr
local function lines()
  return vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
end

before_each(function()
  project.open()
  path = project.write('a.txt', 'one\n')
  vim.cmd('silent edit ' .. path)
  bufnr = vim.api.nvim_get_current_buf()
end)
after_each(function()
  vim.o.autoread = true
  project.close()
end)

describe('a file that others changed', function()
  for _, autoread in ipairs({ true, false }) do
    it('is read again into a clean buffer, with autoread ' .. tostring(autoread), function()
      vim.o.autoread = autoread
      t.eq('same', refresh(bufnr))
      project.write('a.txt', 'one\ntwo\n')
      t.eq({ 'reloaded', 'same' }, { refresh(bufnr), refresh(bufnr) })
      t.eq({ 'one', 'two' }, lines())
    end)
  end

  it('has the line breaks and the encoding that it has on the disk now', function()
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
    t.eq('reloaded', refresh(bufnr))
    t.eq({ 'one', 'two' }, lines())
  end)

  it('is one that was written while it was looked at, too', function()
    vim.api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'a draft' })
    vim.uv.sleep(20) -- times of files are as coarse as the clock's ticks
    local state
    disk.refresh(bufnr, function(got)
      state = got
    end)
    vim.uv.sleep(20) -- the thread that looks at the file is through; what it found is not taken up yet
    project.write('a.txt', 'one\ntwo\n')
    t.wait(function()
      return state
    end)
    t.eq({ 'conflict', 'conflict' }, { state, refresh(bufnr) })
  end)

  it('is left alone while the buffer has changes, and this is said each time', function()
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'mine' })
    project.write('a.txt', 'theirs\n')
    t.eq({ 'conflict', 'conflict' }, { refresh(bufnr), refresh(bufnr) })
    t.eq({ 'mine' }, lines())
    project.write('a.txt', 'theirs again\n')
    t.eq('conflict', refresh(bufnr))
    vim.cmd('silent undo')
    vim.bo[bufnr].modified = false
    t.eq({ 'reloaded', 'same' }, { refresh(bufnr), refresh(bufnr) })
    t.eq({ 'theirs again' }, lines())
  end)

  it('may be one that was not there when its buffer was made', function()
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
    t.eq('stale', t.ok(save.now(bufnr)).code)
    t.eq(nil, save.now(bufnr, { overwrite = true }))
    t.eq({ 'same', { 'mine' } }, { refresh(bufnr), vim.fn.readfile(project.root .. '/mine.txt') })
  end)

  it('may be gone, which is said each time, and come back', function()
    os.remove(path)
    t.eq({ 'gone', 'gone' }, { refresh(bufnr), refresh(bufnr) })
    t.eq({ 'one' }, lines())
    project.write('a.txt', 'back\n')
    vim.bo[bufnr].modified = false
    t.eq({ 'reloaded', { 'back' } }, { refresh(bufnr), lines() })
  end)

  it('leaves the cursor and the view of the person', function()
    local text = {}
    for i = 1, 100 do
      text[i] = 'line ' .. i
    end
    vim.fn.writefile(text, path)
    refresh(bufnr)
    vim.api.nvim_win_set_cursor(0, { 50, 3 })
    vim.cmd('normal! zt')
    local view = vim.fn.winsaveview()
    vim.fn.writefile(vim.list_extend(text, { 'more' }), path)
    t.eq('reloaded', refresh(bufnr))
    t.eq(view, vim.fn.winsaveview())
  end)

  it('is told to the language servers of its project, once', function()
    local heard = {}
    local function server(root)
      vim.lsp.start({
        name = root,
        root_dir = root,
        cmd = function()
          return {
            request = function(method, _, callback)
              if method == 'initialize' then
                vim.schedule(function()
                  callback(nil, { capabilities = {} })
                end)
              end
              return true, 1
            end,
            notify = function(method, params)
              if method == 'workspace/didChangeWatchedFiles' then
                table.insert(heard, { root, params.changes[1].uri, params.changes[1].type })
              end
              return true
            end,
            is_closing = function()
              return false
            end,
            terminate = function() end,
          }
        end,
      }, { bufnr = bufnr })
    end
    server(project.root)
    server(project.base .. '/another')
    t.wait(function()
      return #vim.lsp.get_clients() == 2 and vim.lsp.get_clients()[2].initialized
    end)
    project.write('a.txt', 'one\ntwo\n')
    refresh(bufnr)
    refresh(bufnr)
    os.remove(path)
    refresh(bufnr)
    local uri = vim.uri_from_fname(path)
    t.eq({ { project.root, uri, 2 }, { project.root, uri, 3 } }, heard)
  end)
end)

describe('what has no file', function()
  it('is the same as ever', function()
    vim.cmd('silent edit ' .. project.root .. '/new.txt')
    t.eq('same', refresh(vim.api.nvim_get_current_buf()))
    vim.cmd.enew()
    t.eq('same', refresh(vim.api.nvim_get_current_buf()))
    t.eq('same', refresh(vim.api.nvim_create_buf(false, true)))
    t.eq('same', refresh(9999))
  end)
end)
