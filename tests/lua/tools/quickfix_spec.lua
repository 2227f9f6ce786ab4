-- every Neovim
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

local call, refused = project.call, project.refused

after_each(function() vim.cmd('silent! only!') end)
project.each({ 'editor_quickfix' })

describe('editor_quickfix with places', function()
  it('creates a list above the others and moves nothing that the user sees', function()
    vim.fn.setqflist({}, ' ', { title = 'mine', items = { { text = 'x' } } })
    vim.cmd('silent edit ' .. project.write('a.txt', 'äöü x\nline\n'))
    local before = { api.nvim_get_current_win(), vim.fn.winsaveview(), #api.nvim_list_wins() }
    local value = call('editor_quickfix', {
      title = 'to do',
      places = {
        { text = 'a\nheading\27[31m' },
        { path = 'a.txt', line = 1, column = 5, end_line = 1, end_column = 6, text = 'here', kind = 'warning' },
        { path = 'b.txt', line = 2, column = 3 },
      },
    })
    t.eq({ 2, 3, 'to do' }, { value.nr, value.total, value.title })
    local items = vim.fn.getqflist()
    t.eq({ 'a heading<U+001B>[31m', 0 }, { items[1].text, items[1].valid })
    t.eq({ 8, 9, 'W', 'here' }, { items[2].col, items[2].end_col, items[2].type, items[2].text })
    t.eq(project.root .. '/b.txt', api.nvim_buf_get_name(items[3].bufnr))
    t.eq(before, { api.nvim_get_current_win(), vim.fn.winsaveview(), #api.nvim_list_wins() })
    t.eq('mine', vim.fn.getqflist({ nr = 1, title = 0 }).title)
    t.eq(4, call('editor_quickfix', { action = 'append', places = { { text = 'more' } } }).total)
    t.eq({ 1, 2 }, { call('editor_quickfix', { action = 'replace', places = { { text = 'x' } } }).total, value.nr })
  end)

  it('shows how many entries the list will have', function()
    local function shown(action)
      local preview = require('mcp-tools.tools.editor.quickfix').preview
      return preview({ action = action, list = 'quickfix', places = { { text = 'x' }, { text = 'y' } } })
    end
    vim.fn.setqflist({}, ' ', { title = 'mine', items = { { text = 'a' }, { text = 'b' }, { text = 'c' } } })
    t.matches('3 entries now, and 5 ', shown('append'))
    t.matches('3 entries now, and 2 ', shown('replace'))
    t.matches('^A new list of 2 entries', shown('new'))
  end)

  it('creates location lists of the current window', function()
    call('editor_quickfix', { list = 'location', places = { { text = 'here' } } })
    t.eq('here', vim.fn.getloclist(0)[1].text)
    t.eq('here', call('editor_quickfix', { list = 'location' }).entries[1].text)
    t.eq({ 0, {} }, { call('editor_quickfix', {}).total, call('editor_quickfix', {}).entries })
  end)

  it('reads positions as compilers and grep print them', function()
    local places = { 'a b.txt:3: see this', 'b.txt:4:7: error', 'c.txt:5-9', 'd.txt:6:text:1' }
    local actual = project.text('editor_quickfix', { places = places, title = 'places' })
    t.eq("The quickfix list 'places' has 4 entries.", actual)
    t.eq(
      "quickfix list 'places': 4 entries, the user is at 1\n"
        .. 'a b.txt:3: see this\nb.txt:4: error\nc.txt:5-9\nd.txt:6: text:1',
      project.text('editor_quickfix', {})
    )
    t.eq(7, vim.fn.getqflist()[2].col)
  end)

  it('reports invalid arguments and creates no list', function()
    for _, place in ipairs({ 'a.txt', { path = 'a.txt' } }) do
      refused('editor_quickfix', 'validation_error', 'places%[1%]: no line', { places = { { text = 'x' }, place } })
    end
    refused('editor_quickfix', 'validation_error', 'too large', { places = { 'a.txt:99999999999' } })
    refused('editor_quickfix', 'validation_error', 'kind', { places = { { text = 'x', kind = 'odd' } } })
    t.eq(0, vim.fn.getqflist({ nr = '$' }).nr)
  end)

  it('needs approval only before it removes entries of others', function()
    local needs = require('mcp-tools.tools.editor.quickfix').needs_approval
    t.eq({ false, false }, { needs({ action = 'replace' }), needs({ action = 'append', places = {} }) })
    t.matches('replaces', needs({ action = 'replace', places = {} }))
  end)
end)

describe('many calls of editor_quickfix', function()
  local function titles()
    local list = {}
    for nr = 1, vim.fn.getqflist({ nr = '$' }).nr do
      list[nr] = vim.fn.getqflist({ nr = nr, title = 0 }).title
    end
    return list
  end

  it('keep the lists of the user on the stack, newer ones as well', function()
    for i = 1, 4 do
      vim.fn.setqflist({}, ' ', { title = 'mine ' .. i })
    end
    vim.cmd('silent 2chistory')
    for i = 1, 12 do
      local value = call('editor_quickfix', { title = 'new ' .. i, places = { { text = 'entry ' .. i } } })
      t.eq({ 'entry ' .. i, 'new ' .. i }, { vim.fn.getqflist()[1].text, value.title })
    end
    t.eq({ 'mine 1', 'mine 2', 'mine 3', 'mine 4', 'new 12' }, titles())
    local needs = require('mcp-tools.tools.editor.quickfix').needs_approval
    local args = { action = 'new', list = 'quickfix', places = {} }
    t.eq(false, needs(args))
    vim.fn.setqflist({}, 'f')
    for i = 1, 10 do
      vim.fn.setqflist({}, ' ', { title = 'mine ' .. i })
    end
    t.matches('oldest list', needs(args))
  end)

  it('ask before they create buffers for many files', function()
    local list = t.list(101, function(i) return { path = ('none/%d.txt'):format(i), line = 1 } end)
    local needs = require('mcp-tools.tools.editor.quickfix').needs_approval
    t.matches('many files', needs({ action = 'append', list = 'quickfix', places = list }))
    table.remove(list)
    t.eq(false, needs({ action = 'append', list = 'quickfix', places = list }))
  end)

  it('resolve each path once, and are refused if they are too long together', function()
    local places = t.list(1000, function(i) return ('deep/%sf%d.txt:1: x'):format(('x/'):rep(20), i % 2) end)
    local resolve, count = vim.uv.fs_realpath, 0
    vim.uv.fs_realpath = function(...)
      count = count + 1
      return resolve(...)
    end
    local value, err = call('editor_quickfix', { places = places })
    vim.uv.fs_realpath = resolve
    t.eq({ nil, 1000 }, { err, value.total })
    t.ok(count < 50, count)
    places = t.list(1000, function(i) return ('%sf%d.txt:1: x'):format(('x/'):rep(200), i) end)
    refused('editor_quickfix', 'too_large', 'use several calls', { places = places })
    refused('editor_quickfix', 'validation_error', 'places%[0%]', { places = { 'a\0b:1: x' } })
  end)

  it('append up to a limit', function()
    local list = vim.fn['repeat']({ { text = 'x' } }, 1000)
    for _ = 1, 10 do
      call('editor_quickfix', { action = 'append', places = list })
    end
    refused('editor_quickfix', 'too_large', 'create a new list', { action = 'append', places = { { text = 'x' } } })
  end)
end)

describe('editor_quickfix without places', function()
  it('returns entries in pages, columns in characters, and the current entry of the user', function()
    vim.cmd('silent edit ' .. project.write('a.txt', 'äöü x\n'))
    local items = {}
    for i = 1, 250 do
      items[i] = { bufnr = api.nvim_get_current_buf(), lnum = 1, col = 8, text = 'entry ' .. i, type = 'E' }
    end
    vim.fn.setqflist({}, ' ', { title = 'found', items = items, idx = 7 })
    local value = call('editor_quickfix', { limit = 2, offset = 3 })
    t.eq({ 'found', 250, 7, 1 }, { value.title, value.total, value.current, value.lists })
    t.eq({ path = 'a.txt', line = 1, column = 5, kind = 'error', text = 'entry 4' }, value.entries[1])
    t.eq(50, #call('editor_quickfix', { offset = 200 }).entries)
    t.matches(
      "^quickfix list 'found': 250 entries, the user is at 7; 4%-5 shown, offset=5 continues\na.txt:1: error: entry",
      project.text('editor_quickfix', { limit = 2, offset = 3 })
    )
    vim.fn.setqflist({}, ' ', { title = 'newer', items = {} })
    value = call('editor_quickfix', { nr = 1 })
    t.eq({ 'found', 2, 100 }, { value.title, value.lists, #value.entries })
    refused('editor_quickfix', 'not_found', 'no list 5, there are 2', { nr = 5 })
  end)

  it('pauses between entries, even if the list or its window is deleted meanwhile', function()
    local quickfix = require('mcp-tools.editor.quickfix')
    local entries = { { text = 'a' }, { text = 'b' }, { text = 'c' } }
    for _, is_location in ipairs({ false, true }) do
      vim.cmd('silent split')
      local list = { window = is_location and api.nvim_get_current_win() or nil }
      if is_location then
        vim.fn.setloclist(0, {}, ' ', { items = entries })
      else
        vim.fn.setqflist({}, ' ', { items = entries })
      end
      local pauses = 0
      local items = quickfix.items(list, quickfix.get(list, { id = 0 }).id, 1, 3, function()
        pauses = pauses + 1
        if pauses == 2 then
          vim.fn.setqflist({}, 'f')
          vim.cmd('silent close')
        end
      end)
      t.eq({ 2, 3 }, { #items, pauses })
    end
  end)

  it('removes secrets, except from the line of a readable file', function()
    vim.cmd('silent edit ' .. project.write('a.txt', 'one\n  password = shown\n'))
    local bufnr = api.nvim_get_current_buf()
    vim.fn.setqflist({
      { bufnr = bufnr, lnum = 2, text = 'password = shown' },
      { bufnr = bufnr, lnum = 1, text = 'cfg: password = hunter2secret' },
      { bufnr = bufnr, lnum = 2, text = 'token="hunter2secret"' },
      { bufnr = bufnr, text = 'password = hunter2secret' },
      { filename = project.write('closed.txt', 'one\n'), lnum = 1, text = 'password: hunter2secret' },
      { text = 'password: hunter2secret' },
    })
    local texts = vim.tbl_map(function(entry) return entry.text end, call('editor_quickfix', {}).entries)
    t.eq({
      'password = shown',
      'cfg: password = [secret]',
      'token="[secret]"',
      'password = [secret]',
      'password: [secret]',
      'password: [secret]',
    }, texts)
  end)

  it('withholds the text of unreadable files and says so', function()
    vim.fn.setqflist({
      { filename = project.write('.env', 'KEY=hidden'), lnum = 1, text = 'KEY=hidden' },
      { filename = project.write(project.base .. '/outside.txt', 'x'), lnum = 1, text = 'outside' },
    })
    local entries = call('editor_quickfix', {}).entries
    t.eq({ path = '.env', line = 1, withheld = 'sensitive' }, entries[1])
    t.eq({ nil, 'outside the project' }, { entries[2].text, entries[2].withheld })
  end)
end)
