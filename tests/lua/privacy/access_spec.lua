-- What clients may see of buffers and files: the same decision for every name of it.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('editor_project')
local access = require('mcp-tools.privacy.access')
local t = require('helpers')
local trusted = require('mcp-tools.privacy.trusted')

local SECRET = 'hidden-text'

project.each(nil, function()
  config.setup({ tools = { 'buffer', 'file', 'analyze_python' } })
  core.get()
end)

--- A buffer that was filled by a plugin.
local function shown(name, buftype)
  vim.cmd.enew()
  if name then
    vim.api.nvim_buf_set_name(0, name)
  end
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { SECRET, 'second' })
  vim.bo.buftype = buftype or ''
  vim.bo.modified = false
  return vim.api.nvim_get_current_buf()
end

--- A call, until it has ended or asks.
local function call(tool, args)
  local asked
  core.get().gateway.ask = function(question) asked = question end
  local made = core.get().executor:execute(tool, args, { host = 'test' })
  t.wait(function() return asked or made:ended() end)
  return made, asked
end

--- All ways to read the current buffer without a question.
local function ways(bufnr)
  local texts = {}
  local function add(outcome) table.insert(texts, vim.inspect(outcome.payload or outcome.error)) end
  vim.cmd('normal! ggVj\27')
  vim.diagnostic.set(vim.api.nvim_create_namespace('access-spec'), bufnr, {
    { lnum = 0, col = 0, message = SECRET .. ' is unused' },
  })
  vim.fn.setqflist({ { bufnr = bufnr, lnum = 1, text = SECRET } })
  for _, name in ipairs({ 'cursor', 'selection', 'buffers', 'diagnostics', 'quickfix', 'status' }) do
    add(project.run('resource', 'nvim://' .. name))
  end
  local name = vim.api.nvim_buf_get_name(bufnr)
  local encoded = name:gsub('[^%w/._-]', function(c) return ('%%%02X'):format(c:byte()) end)
  add(project.run('resource', 'nvim://buffer/' .. encoded))
  add(project.run('resource', 'nvim://buffer//' .. encoded))
  for _, prompt in ipairs({ 'explain_selection', 'analyze_module', 'explain_diagnostics', 'fix_diagnostics' }) do
    add(project.run('prompt', prompt))
    add(project.run('prompt', prompt, { path = name }))
  end
  for _, tool in ipairs({ 'file_read', 'analyze_python' }) do
    local made, asked = call(tool, { bufnr = bufnr })
    t.ok(asked or made.outcome.error, tool .. ' reads ' .. name)
    add(made.outcome or {})
    made:cancel('test')
    made = call(tool, { path = name ~= '' and name or 'x' })
    add(made.outcome or {})
    made:cancel('test')
  end
  return table.concat(texts, '\n')
end

describe('a buffer that is not a regular file', function()
  it('cannot be read in any way without a question', function()
    local cases = {
      { 'fugitive://' .. project.root .. '/.git//0/.env', 'nowrite' },
      { 'fugitive://' .. project.root .. '/.git//0/a.lua', 'nowrite' },
      { 'gitsigns://' .. project.root .. '/.git//:0:a.lua', 'acwrite' },
      { 'diffview://' .. project.root .. '/.git/abc123/a.lua', 'nowrite' },
      { 'suda:///etc/shadow', 'acwrite' },
      { 'suda:///etc/shadow' },
      { 'sudo:/etc/shadow' },
      { 'scp://host/a.lua' },
      { 'oil-ssh://host/a.lua', 'acwrite' },
      { 'http://host/a.lua' },
      { 'http://host/../../a.lua' },
      { 'zipfile://' .. project.root .. '/a.zip::a.lua' },
      { 'x:/a.lua', 'nofile' },
      { project.root .. '/a.lua', 'acwrite' },
      { project.root .. '/a.lua', 'nowrite' },
      { project.root .. '/a.lua', 'nofile' },
      { project.root .. '/notes.md.gpg' },
      { project.root .. '/a.zip', 'help' },
      { nil, 'nofile' },
      { nil, 'prompt' },
      { project.base .. '/outside.txt' },
    }
    for _, case in ipairs(cases) do
      local bufnr = shown(case[1], case[2])
      local label = ('%s (%s)'):format(case[1], case[2])
      t.ok(not ways(bufnr):find(SECRET, 1, true), label)
      vim.cmd('silent! %bwipeout!')
    end
  end)

  it('needs approval each time, and is denied if its name is sensitive', function()
    local function verdict(name, buftype)
      local made, asked = call('file_read', { bufnr = shown(name, buftype) })
      return asked and asked.reason or made.outcome.error.message, asked and asked.choices
    end
    local reason, choices = verdict('fugitive://' .. project.root .. '/.git//0/a.lua', 'nowrite')
    t.matches('fugitive://.* is not a regular file', reason)
    t.eq({ 'once', 'deny', 'never' }, choices)
    t.matches('is sensitive', (verdict('fugitive://' .. project.root .. '/.git//0/.env', 'nowrite')))
    t.matches('buffer %d+ is not a regular file', (verdict(nil, 'nofile')))
    t.matches('term://', (verdict('term://x', 'nofile')))
  end)

  it('is named without the password in its address', function()
    shown('scp://me:pass-word@host/a.lua')
    for _, way in ipairs({ 'buffers', 'cursor', 'status' }) do
      local text = project.contents('nvim://' .. way).text
      t.ok(not text:find('pass-word', 1, true), text)
    end
    local list = call('buffer_list', {}).outcome.value.buffers
    t.eq('scp://[secret]@host/a.lua', list[#list].path)
    local _, asked = call('file_read', { bufnr = vim.api.nvim_get_current_buf() })
    t.eq('scp://[secret]@host/a.lua is not a regular file', asked.reason)
  end)

  it('is not read instead of the file with its name', function()
    project.write('a.lua', 'on disk\n')
    shown(project.root .. '/a.lua', 'acwrite')
    local made = call('file_read', { path = project.root .. '/a.lua' })
    t.ended(made)
    t.eq('on disk', made.outcome.value.text)
    shown('http://host/../../../..' .. project.root .. '/a.lua')
    t.eq({}, access.showing(project.root .. '/http:/host'))
    t.eq(
      0,
      #vim.tbl_filter(
        function(bufnr) return access.buffer_kind(bufnr) == 'file' end,
        access.showing(project.root .. '/a.lua')
      )
    )
  end)
end)

it('buffers of a file are found among many, by the current target of a link', function()
  for i = 1, 300 do
    vim.fn.bufadd(('%s/many/%d.lua'):format(project.root, i))
  end
  vim.cmd.edit(project.write('many/7.lua', 'x'))
  vim.uv.fs_symlink(project.root .. '/many/7.lua', project.root .. '/link.lua')
  vim.fn.bufload(vim.fn.bufadd(project.root .. '/link.lua'))
  t.eq(2, #access.showing(project.root .. '/many/7.lua'))
  vim.uv.fs_unlink(project.root .. '/link.lua')
  vim.uv.fs_symlink(project.write('other.lua', 'y'), project.root .. '/link.lua')
  t.eq(1, #access.showing(project.root .. '/many/7.lua'))
end)

it('loaded buffers of files are found in one pass over all buffers, except those that show another file now', function()
  for i = 1, 50 do
    vim.fn.bufload(vim.fn.bufadd(project.write(('many/%d.lua'):format(i), 'x')))
  end
  local of, found, begun = access.loaded(), {}, vim.uv.hrtime()
  local passes = t.calls(vim.api, 'nvim_list_bufs', function()
    for i = 1, 50 do
      table.insert(found, of(('%s/many/%d.lua'):format(project.root, i)))
    end
  end)
  local most = 1 + math.ceil((vim.uv.hrtime() - begun) / 20e6)
  t.eq(50, #found)
  t.ok(passes <= most)
  vim.api.nvim_buf_set_name(found[7], project.root .. '/many/other.lua')
  t.eq(nil, of(project.root .. '/many/7.lua'))
  vim.cmd.bwipeout({ found[8], bang = true })
  t.eq({ nil, found[9] }, { of(project.root .. '/many/8.lua'), (of(project.root .. '/many/9.lua')) })
end)

describe('text of the project', function()
  it('can be read from its files, and from a buffer without a file', function()
    vim.cmd.edit(project.write('a.lua', SECRET .. '\nsecond\n'))
    vim.cmd('normal! ggVj\27gg')
    t.eq(SECRET, project.data('nvim://cursor').cursor.text)
    t.eq(SECRET .. '\nsecond', project.data('nvim://selection').selection.text)
    t.eq(SECRET .. '\nsecond\n', project.contents('nvim://buffer/a.lua').text)
    t.eq(SECRET .. '\nsecond', call('file_read', { bufnr = 0 }).outcome.value.text)
    shown()
    t.eq(SECRET, project.data('nvim://cursor').cursor.text)
    t.eq(SECRET .. '\nsecond', call('file_read', { bufnr = 0 }).outcome.value.text)
  end)

  it('cannot be read from the file of a buffer that the user has marked', function()
    local unseen = 'unseen-text' -- no sensitive buffer had it before, which would redact it
    project.init()
    local path = project.write('a.lua', 'x\n')
    project.commit('first')
    project.write('a.lua', unseen .. '\nsecond\n')
    project.write('b.lua', '-- ' .. unseen:sub(1, 6) .. ' in b\n')
    vim.uv.fs_symlink(path, project.root .. '/link.lua')
    local function texts()
      local list = {}
      for prompt, args in pairs({
        search_code = { query = unseen:sub(1, 6) },
        review_changes = {},
        analyze_module = { path = 'a.lua' },
        write_tests = { path = 'link.lua', symbol = 'second' },
      }) do
        list[prompt] = vim.inspect(project.run('prompt', prompt, args))
      end
      return list
    end
    for prompt, text in pairs(texts()) do
      t.ok(text:find(unseen, 1, true), prompt)
    end
    local bufnr = vim.fn.bufadd(path)
    vim.b[bufnr].sensitive = true
    for loaded = 0, 1 do
      if loaded == 1 then
        vim.fn.bufload(bufnr)
      end
      for prompt, text in pairs(texts()) do
        t.ok(not text:find(unseen, 1, true), prompt)
      end
    end
    t.matches('b%.lua', texts().search_code)
  end)

  it('cannot be read from a buffer that the user has marked with any true value', function()
    for _, mark in ipairs({ 'v:true', '1', '"yes"' }) do
      vim.cmd.edit(project.write('a.lua', SECRET .. '\nsecond\n'))
      vim.cmd('let b:sensitive = ' .. mark)
      t.ok(not ways(vim.api.nvim_get_current_buf()):find(SECRET, 1, true), mark)
      vim.cmd('silent! %bwipeout!')
    end
  end)
end)

it('a prompt searches the given path, or the project if there is one', function()
  local function place(path, root)
    local resolved, why = access.prompt_path(path, root)
    return resolved or why
  end
  t.eq(project.root, place(nil, project.root))
  t.eq(project.root .. '/a.lua', place('a.lua', project.root))
  t.eq('.env is sensitive', place('.env', project.root))
  t.eq('../b is outside the project', place('../b', project.root))
  t.eq('no project is open', place(nil, '/'))
  t.eq('the project is sensitive', place(nil, project.root .. '/.git'))
end)

it('a file that could be trusted has a size limit, since it is read on the main thread', function()
  local path = vim.fn.tempname()
  local file = assert(io.open(path, 'w'))
  file:write(('x'):rep(4 * 1024 * 1024))
  file:flush()
  t.matches('is not trusted', select(2, trusted.read(path)))
  file:write('x')
  file:close()
  local text, why = trusted.read(path)
  t.eq({ nil, 'the file is larger than 4 MiB' }, { text, why })
end)
