-- slow, every Neovim
-- Texts and buffers of a file that is moved, with scripted language servers.

local Double = require('lsp_double')
local every = require('editor_project')
local t = require('helpers')

local root = every.root

local function move(path, new_path) return every.text('file_move', { path = path, new_path = new_path }) end

local doubles

after_each(function()
  for _, each in ipairs(doubles) do
    each.client:stop(true)
  end
  pcall(vim.api.nvim_del_augroup_by_name, 'format_on_save')
end)
every.each(nil, function()
  doubles = {}
  every.offer({ 'file' })
end)

--- A server that changes the first line of a file when another is moved.
---@param bufnr integer
---@param line integer of `other.txt` that it changes
---@param answer? any instead of the change
local function server(bufnr, line, answer)
  local capabilities = {
    workspace = { fileOperations = { willRename = { filters = { { pattern = { glob = '**' } } } } } },
  }
  local range = { start = { line = line, character = 0 }, ['end'] = { line = line, character = 3 } }
  local changes = { [vim.uri_from_fname(root .. '/other.txt')] = { { range = range, newText = 'new' } } }
  local double = Double.start(bufnr, root, capabilities, {
    ['workspace/willRenameFiles'] = answer or { changes = changes },
  })
  table.insert(doubles, double)
  t.wait(function() return double.client.initialized end)
  double:publish(bufnr, nil, {}) -- it has read the project
  return double
end

describe('a file that is moved', function()
  it('keeps its bytes, whatever encoding and line breaks its buffer has', function()
    local fileencodings = vim.o.fileencodings
    vim.o.fileencodings = 'utf-8'
    vim.api.nvim_create_autocmd('BufReadPost', { -- as an .editorconfig does
      group = vim.api.nvim_create_augroup('format_on_save', {}),
      callback = function(event)
        vim.bo[event.buf].fileformat = 'unix'
        vim.bo[event.buf].fileencoding = 'utf-8'
      end,
    })
    local bytes = 'caf\233 \0\1\255\r\nx\r\n'
    for name, is_shown in pairs({ ['closed.txt'] = false, ['shown.txt'] = true }) do
      local path = every.write(name, bytes)
      if is_shown then
        vim.cmd('silent edit ' .. path)
      end
      t.ok((move(name, 'moved/' .. name)))
      t.eq(bytes, every.disk('moved/' .. name))
    end
    vim.o.fileencodings = fileencodings
    vim.cmd('silent! buffer ' .. root .. '/moved/shown.txt')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'later' })
    vim.cmd('silent write!')
    t.eq('later\n', every.disk('moved/shown.txt'))
  end)

  it('is not the target of a link', function()
    every.write('real.txt', 'text')
    vim.uv.fs_symlink('real.txt', root .. '/link.txt')
    t.fails(nil, 'link.txt is a link to real.txt', move('link.txt', 'other.txt'))
    t.eq('text', every.disk('real.txt'))
  end)

  it('keeps its bytes, and is not formatted as on a save', function()
    vim.api.nvim_create_autocmd({ 'BufWritePre', 'BufWritePost' }, {
      group = vim.api.nvim_create_augroup('format_on_save', {}),
      callback = function(event) vim.api.nvim_buf_set_lines(event.buf, 0, 0, false, { 'formatted' }) end,
    })
    local texts =
      { ['a.txt'] = 'one\r\ntwo\r\n', ['b.txt'] = 'no end', ['c.txt'] = '\239\187\191bom\n', ['d.txt'] = 'caf\233\n' }
    for name, text in pairs(texts) do
      every.write(name, text)
      vim.cmd('silent edit ' .. name)
      local bufnr = vim.api.nvim_get_current_buf()
      local fixeol = vim.bo.fixendofline
      t.ok(move(name, 'to/' .. name))
      t.eq({ name, text }, { name, every.disk('to/' .. name) })
      local actual = { vim.api.nvim_buf_get_name(bufnr), vim.bo.modified, vim.bo.fixendofline }
      t.eq({ root .. '/to/' .. name, false, fixeol }, actual)
    end
    vim.api.nvim_del_augroup_by_name('format_on_save')
    vim.cmd('silent write')
  end)

  it('keeps what another process has written since it was opened', function()
    every.edit('a.txt', 'one\n')
    every.write('a.txt', 'one and theirs\n')
    t.ok(move('a.txt', 'b.txt'))
    t.eq('one and theirs\n', every.disk('b.txt'))
    t.eq({ 'one and theirs' }, vim.api.nvim_buf_get_lines(0, 0, -1, false))
  end)

  it('keeps what another process writes meanwhile', function()
    vim.cmd('silent edit ' .. every.write('meanwhile.txt', 'one\n'))
    local new = root .. '/moved.txt'
    vim.api.nvim_create_autocmd('BufFilePre', {
      group = vim.api.nvim_create_augroup('format_on_save', {}),
      once = true,
      callback = function() vim.fn.writefile({ 'theirs' }, new, 'a') end,
    })
    t.matches('is now moved.txt', move('meanwhile.txt', 'moved.txt'))
    every.text('file_edit', { path = 'moved.txt', old_text = 'one', new_text = 'two' })
    every.text('file_save', { path = 'moved.txt' })
    t.eq('two\ntheirs\n', every.disk('moved.txt'))
  end)

  it('does not name or open files that a server lists without changes', function()
    every.write('a.txt', 'one\n')
    every.write('other.txt', 'two\n')
    vim.cmd('silent edit a.txt')
    local untouched = { textDocument = { uri = vim.uri_from_fname(root .. '/other.txt') }, edits = {} }
    server(0, 0, { documentChanges = { untouched } })
    t.eq('a.txt is now b.txt\nno language server changed anything elsewhere', move('a.txt', 'b.txt'))
    t.eq(-1, vim.fn.bufnr('other.txt'))
  end)

  it('is reported to its servers with its new name', function()
    every.edit('a.txt', 'one\n')
    local double = server(0, 0, vim.NIL)
    t.ok(move('a.txt', 'b.txt'))
    local told = {}
    for _, each in ipairs(double.told) do
      local document = each.params and each.params.textDocument
      if document and (each.method:find('didOpen') or each.method:find('didClose')) then
        table.insert(told, each.method:match('did%u%l+') .. ' ' .. vim.fs.basename(document.uri))
      end
    end
    t.eq({ 'didClose a.txt', 'didOpen b.txt' }, vim.list_slice(told, #told - 1))
  end)

  it('reports why it could not be moved, and reverts the changes of servers', function()
    every.write('a.txt', 'one\n')
    every.write('other.txt', 'old\nold\n')
    every.write('file', 'x')
    vim.cmd('silent edit a.txt')
    server(0, 0)
    t.fails('tool_error', '^cannot move a.txt to file/a.txt: .*directory', move('a.txt', 'file/a.txt'))
    t.eq('old\nold\n', every.disk('other.txt'))
  end)

  it('changes nothing when the call is cancelled before all servers have answered', function()
    every.write('a.txt', 'one\n')
    every.write('other.txt', 'old\nold\n')
    vim.cmd('silent edit a.txt')
    server(0, 0)
    local second = server(0, 1, Double.SILENT)
    local call = every.start('file_move', { path = 'a.txt', new_path = 'b.txt' })
    t.wait(function() return #second.asked > 1 end, 10000, 'the second server')
    call:cancel('test')
    vim.wait(50)
    t.eq({ 'one\n', 'old\nold\n' }, { every.disk('a.txt'), every.disk('other.txt') })
    t.eq(0, vim.fn.filereadable('b.txt'))
  end)

  it('has the changes of all servers, each once', function()
    every.write('a.txt', 'one\n')
    every.write('other.txt', 'old\nold\n')
    vim.cmd('silent edit a.txt')
    server(0, 0)
    server(0, 1)
    server(0, 1)
    t.matches('changed by double, double, double: 2 places in 1 file', (move('a.txt', 'b.txt')))
    t.eq('new\nnew\n', every.disk('other.txt'))
  end)
end)

it('file_move of a directory is refused when a file in it is sensitive by the name of the directory', function()
  vim.fn.mkdir(root .. '/.aws/sso', 'p')
  vim.fn.writefile({ 'secret' }, root .. '/.aws/credentials')
  t.fails('access_denied', '%.aws/credentials', move('.aws', 'aws'))
  t.ok(vim.uv.fs_stat(root .. '/.aws/credentials'))
  vim.fn.delete(root .. '/.aws/credentials')
  t.matches('is now aws', (move('.aws', 'aws')))
  vim.fn.mkdir(root .. '/deploy/.aws', 'p')
  vim.fn.writefile({ 'secret' }, root .. '/deploy/.aws/credentials')
  t.matches('is now release', (move('deploy', 'release')))
end)
