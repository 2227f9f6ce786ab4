-- every Neovim
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('editor_project')
local t = require('helpers')

local refused = project.refused

describe('tools that show the state of the editor', function()
  local api = vim.api

  local function edit(name, text)
    vim.cmd('silent edit! ' .. project.write(name, text))
    return api.nvim_get_current_buf()
  end

  local function open_float()
    local place = { relative = 'editor', row = 1, col = 1, width = 5, height = 1 }
    api.nvim_open_win(api.nvim_create_buf(false, true), true, place)
  end

  local function keys(text) api.nvim_feedkeys(api.nvim_replace_termcodes(text, true, false, true), 'xt', false) end

  after_each(function() vim.cmd('silent! tabonly! | silent! only!') end)
  project.each({ 'editor' })

  describe('editor_state', function()
    it('returns the current file, the symbol around the cursor, and open files', function()
      edit('other.txt', 'x\n')
      api.nvim_buf_set_lines(0, 0, 0, false, { 'unsaved' })
      local bufnr = edit('a.lua', 'local function one()\n  return "ü" -- x\nend\n')
      vim.bo.filetype = 'lua'
      api.nvim_win_set_cursor(0, { 2, 12 })
      local before = project.view()
      local state = project.call('editor_state')
      t.eq({ before, 'n', project.root, project.root }, { project.view(), state.mode, state.root, state.cwd })
      local current = state.current
      t.has({ path = 'a.lua', bufnr = bufnr, line = 2, column = 12, text = '  return "ü" -- x', lines = 3 }, current)
      t.eq({ name = 'one', kind = 'function', start_line = 1, end_line = 3 }, current.symbol)
      t.eq({ 2, 1, nil }, { state.files_total, state.modified_total, state.selection })
      t.has({ path = 'other.txt', modified = true }, state.files[1])
      t.has({ path = 'a.lua', visible = true }, state.files[2])
      t.eq('… 1 more', project.text('editor_state', { limit = 1 }):match('[^\n]+$'))
      local text = 'a.lua, 3 lines; cursor in line 2, column 12, in one (lines 1-3)\n2:   return "ü" -- x\n\n'
      t.eq(text .. '2 open files, 1 unsaved\nother.txt: unsaved\na.lua: shown', project.text('editor_state'))
      vim.cmd('silent bwipeout! other.txt')
    end)

    it('does not report a terminal or a float as the current file', function()
      edit('a.txt', 'text\n')
      open_float()
      t.eq('a.txt', project.call('editor_state').current.path)
    end)

    it('returns the selection, truncated if it is long', function()
      edit('a.txt', 'one two\nthree\n' .. ('x'):rep(20000) .. '\n')
      keys('gg4lvj<Esc>')
      local found = project.call('editor_state').selection
      t.has({ text = 'two\nthree', start_line = 1, start_column = 5, active = false }, found)
      t.has({ end_line = 2, end_column = 5 }, found)
      t.matches('Selected last %(characters%), 1:5 to 2:5:\ntwo\nthree\n', project.text('editor_state'))
      keys('GV<Esc>')
      found = project.call('editor_state').selection
      t.eq({ true, true }, { found.truncated, #found.text < 17000 })
      t.matches('only the beginning', project.text('editor_state'))
    end)

    it('withholds the text of sensitive files', function()
      edit('.env', 'TOKEN=abc\n')
      keys('ggV<Esc>')
      local state = project.call('editor_state')
      t.eq({ '.env', nil, 'sensitive' }, { state.current.path, state.current.text, state.current.withheld })
      t.eq({ nil, 'sensitive' }, { state.selection.text, state.selection.withheld })
      t.matches('1: withheld: sensitive', project.text('editor_state'))
    end)
  end)

  describe('editor_registers', function()
    it('returns the beginning of a large register and its size, and reads no more of it', function()
      vim.fn.setreg('b', ('a line of a register\n'):rep(100000))
      local largest, found = 0, nil
      local function list() found = project.call('editor_registers', { names = 'b', max_bytes = 100 }).registers[1] end
      t.calls(vim.fn, 'eval', list, function(value) largest = math.max(largest, #tostring(value)) end)
      t.eq({ 2100000, true, 'lines' }, { found.bytes, found.truncated, found.kind })
      t.matches('^a line of a register\n', found.text)
      t.ok(#found.text <= 110 and largest < 10000, ('%d bytes'):format(largest))
      vim.fn.setreg('b', '')
    end)

    it('returns registers that are not empty, truncated and without secrets', function()
      edit('.env', 'MY_VALUE_OF_ENV=abcdef\nx\n')
      keys('gg"ayy')
      edit('a.txt', ('ü'):rep(50) .. '\n')
      keys('gg"byy0"cyl')
      local before = project.view()
      local by_name = {}
      for _, each in ipairs(project.call('editor_registers', { names = 'abca', max_bytes = 11 }).registers) do
        t.eq(nil, by_name[each.register])
        by_name[each.register] = each
      end
      t.eq(before, project.view())
      t.ok(not by_name.a.text:find('abcdef', 1, true), by_name.a.text)
      t.eq({ 'ü', 'characters', nil }, { by_name.c.text, by_name.c.kind, by_name.c.truncated })
      t.has({ text = 'üüüüü…', kind = 'lines', truncated = true, bytes = 101 }, by_name.b)
      t.ok(#project.call('editor_registers').registers >= 4)
      local text = project.text('editor_registers', { names = 'b', max_bytes = 11 })
      t.eq('"b (lines, the beginning of 101 bytes): üüüüü…', text)
    end)

    it('refuses unknown registers, and asks before it reads the clipboard', function()
      refused('editor_registers', 'validation_error', 'no register =', { names = 'a=' })
      config.setup({ approval = { rule = function() end } })
      t.ok(project.call('editor_registers', { names = 'a"' }))
      t.fails('not_found', nil, project.call('editor_registers', { names = 'a+' })) -- without a question
      local function paste() return { { 'copied' }, 'v' } end
      vim.g.clipboard = { name = 'ours', copy = { ['+'] = '', ['*'] = '' }, paste = { ['+'] = paste, ['*'] = paste } }
      vim.g.loaded_clipboard_provider = nil
      vim.cmd.runtime('autoload/provider/clipboard.vim')
      local _, err = project.call('editor_registers', { names = 'a+' })
      vim.g.clipboard = nil
      vim.g.loaded_clipboard_provider = nil
      t.eq('access_denied', err.code) -- there is no user to ask
      local function messages() return api.nvim_exec2('messages', { output = true }).output end
      t.wait(function() return messages():find('editor_registers', 1, true) end)
    end)
  end)

  describe('editor_marks', function()
    it('returns marks, jumps and changes with their lines', function()
      local bufnr = edit('a.txt', 'one\n  ütwo x\nthree\n')
      keys('ggjfxmaGmB')
      api.nvim_buf_set_lines(0, 2, 3, false, { 'changed' })
      edit('b.txt', 'other\n')
      vim.cmd.buffer(bufnr)
      local before = project.view()
      local found = project.call('editor_marks')
      t.eq(before, project.view())
      local by_name = {}
      for _, each in ipairs(found.marks) do
        by_name[each.mark] = each
      end
      t.eq({ 'a.txt', 2, 8, 'ütwo x' }, { by_name.a.path, by_name.a.line, by_name.a.column, by_name.a.text })
      t.eq({ 'a.txt', 3, 'changed' }, { by_name.B.path, by_name.B.line, by_name.B.text })
      t.ok(#found.jumps > 0)
      t.eq(#found.changes, found.changes_total)
      found = project.call('editor_marks', { kind = 'marks', limit = 1, path = 'a.txt' })
      t.eq({ 1, 1, nil }, { #found.marks, found.next_offset, found.jumps })
      t.matches('^%d+ marks\na a.txt:2:8: ütwo x\n', project.text('editor_marks', { kind = 'marks' }) .. '\n')
    end)

    it('refuses a file that is not open, and withholds sensitive lines', function()
      project.write('c.txt', 'x\n')
      refused('editor_marks', 'not_found', 'is not open', { path = 'c.txt' })
      t.fails('not_found', nil, project.call('editor_marks', { bufnr = 9999 }))
      edit('.env', 'TOKEN=abcdef\n')
      keys('ggmA')
      edit('b.txt', 'other\n')
      for _, each in ipairs(project.call('editor_marks').marks) do
        if each.mark == 'A' then
          t.eq({ '.env', nil, 'sensitive' }, { each.path, each.text, each.withheld })
        end
      end
      vim.cmd('delmarks A')
    end)
  end)

  describe('editor_lookup', function()
    local function lookup(what, query, more)
      return project.call('editor_lookup', vim.tbl_extend('force', { what = what, query = query }, more or {}))
    end

    before_each(function()
      local doc = project.base .. '/plugin/doc'
      local help = {
        '*own.txt*  A plugin',
        '',
        ('='):rep(78),
        'FIRST                                          *own-first* *own-1st*',
        '',
        'Text of the first,',
        'two lines.',
        '',
        'own.second({x})                                *own.second()*',
        '    Text of the second, a zebracrossing.',
        '',
        ('='):rep(78),
        'LAST                                           *own-last*',
        'The end.',
      }
      project.write(doc .. '/own.txt', table.concat(help, '\n') .. '\n')
      local function tag(name) return ('%s\town.txt\t/*%s*\n'):format(name, name) end
      local tags = vim.tbl_map(tag, { 'own-1st', 'own-first', 'own-last', 'own.second()', 'own-gone' })
      project.write(doc .. '/tags', table.concat(tags))
      vim.opt.runtimepath:append(project.base .. '/plugin')
    end)

    after_each(function() vim.opt.runtimepath:remove(project.base .. '/plugin') end)

    it('finds mappings of all modes, those of the buffer first', function()
      edit('a.txt', 'x\n')
      vim.g.mapleader = ' '
      vim.keymap.set({ 'n', 'x' }, '<Leader>zz', ':echo 1<CR>', { desc = 'Say One' })
      vim.keymap.set('n', '<Leader>zy', function() end, { desc = 'say two', buffer = true })
      vim.keymap.set('i', '<Leader>zx', 'x', { desc = 'say three' })
      local found = lookup('mappings', 'say')
      t.eq(4, found.total)
      t.matches('^n <Leader>zy %(this buffer%): say two %-> Lua function %(.*editor_spec.lua:%d+%)$', found.rows[1])
      t.matches('^n <Leader>zz: Say One %-> :echo 1<CR>', found.rows[2])
      t.eq({ 1, 4 }, { #lookup('mappings', 'say', { limit = 1 }).rows, found.total })
      for _, map in ipairs({ { { 'n', 'x' }, '<Leader>zz' }, { 'i', '<Leader>zx' } }) do
        vim.keymap.del(unpack(map))
      end
    end)

    it('finds options by name, and changed ones', function()
      edit('a.txt', 'x\n')
      vim.bo.shiftwidth = 3
      t.matches('^shiftwidth=3 %(buffer; default 8', lookup('options', 'sw').rows[1])
      t.matches('^shiftwidth=3', lookup('options', 'shiftw').rows[1])
      t.matches('\nshiftwidth=3 ', project.text('editor_lookup', { what = 'options' }))
      t.matches('^autoread=true', lookup('options', 'autoread').rows[1])
    end)

    it('finds messages, the latest first, without secrets', function()
      vim.cmd('messages clear')
      for i = 1, 5 do
        api.nvim_echo({ { 'Message ' .. i } }, true, {})
      end
      api.nvim_echo({ { 'password=hunter2secret' } }, true, {})
      local found = lookup('messages', 'message', { limit = 2 })
      t.eq({ { 'Message 5', 'Message 4' }, 5 }, { found.rows, found.total })
      t.matches('password=%[secret%]', lookup('messages').rows[1])
      local function text_of(args)
        return project.text('editor_lookup', vim.tbl_extend('error', args, { what = 'messages' }))
      end
      local first = '5 messages; 1-1 shown, offset=1 continues\nMessage 5'
      t.eq(first, text_of({ query = 'message', limit = 1 }))
      t.eq("Nothing found for 'no such' in messages.", text_of({ query = 'no such' }))
    end)

    it('returns a whole help topic, without opening anything', function()
      local before = project.view()
      local found = lookup('help', 'own-first')
      t.eq({ before, 'own-first in own.txt, line 4' }, { project.view(), found.head })
      t.matches('^FIRST .*\n\nText of the first,\ntwo lines%.$', table.concat(found.rows, '\n'))
      found = lookup('help', 'own.second')
      t.eq('    Text of the second, a zebracrossing.', found.rows[2])
      t.matches('^own%-last in own.txt', lookup('help', 'OWN-LAST').head)
    end)

    it('treats wildcards and patterns literally', function()
      for _, topic in ipairs({ ('*'):rep(200), ('\\(\\S\\{-}\\)\\{-}'):rep(12), ('?'):rep(200), ('[^a]'):rep(50) }) do
        t.eq(nil, lookup('help', topic).head)
      end
      for topic, tag in pairs({ ['\\{-'] = '/\\{-', ['g??'] = 'g??', ['[:alpha:]'] = '[:alpha:]' }) do
        t.eq(tag, lookup('help', topic).head:match('^%S+'))
      end
    end)

    it('reads the help of Neovim', function()
      local found = lookup('help', 'nvim_buf_set_lines')
      t.matches('^nvim_buf_set_lines%(%) in api.txt', found.head)
      t.ok(found.total < 60) -- only one function
      t.matches("^'tabstop' in options.txt, line %d+; see also", lookup('help', 'tabstop').head)
      t.matches('^CTRL%-W in', lookup('help', 'CTRL-W').head)
    end)

    it('finds lines of the help by words if no tag contains them', function()
      t.eq({ 'own.txt:10: Text of the second, a zebracrossing.' }, lookup('help', 'zebraCrossing second').rows)
      t.eq({}, lookup('help', 'own-gone').rows)
      t.matches('query', select(2, project.call('editor_lookup', { what = 'help' })).message)
    end)

    it('stops when it is cancelled', function()
      local call = project.start('editor_lookup', { what = 'help', query = 'the' })
      call:cancel('test')
      t.eq('cancelled', call.outcome.error.code)
    end)
  end)

  it('editor_notify shows a message with the name of its sender and escaped control characters', function()
    t.eq({ shown = true }, project.call('editor_notify', { message = 'done\27[31m \u{202e}x', level = 'warn' }))
    t.wait(function()
      local output = api.nvim_exec2('messages', { output = true }).output
      return output:find('[mcp-tools] test: done<U+001B>[31m <U+202E>x', 1, true)
    end)
    project.call('editor_notify', { message = 'first\n[mcp-tools] not ours' })
    local function messages() return api.nvim_exec2('messages', { output = true }).output end
    t.wait(function() return messages():find('first\n  [mcp-tools] not ours', 1, true) end)
    t.fails('validation_error', nil, project.call('editor_notify', { message = 'x', level = 'loud' }))
    local last
    for _ = 1, 30 do
      last = project.run('tool', 'editor_notify', { message = 'again' })
    end
    t.eq('rate_limited', last.error.code)
    t.fails('validation_error', nil, project.call('editor_notify', { message = ('x'):rep(2001) }))
  end)

  describe('editor_open', function()
    it('shows a file in the window of the user, which can jump back', function()
      edit('a.txt', 'one\n')
      project.write('b.txt', 'x\n  ü y\n' .. ('z\n'):rep(100))
      local window, before = api.nvim_get_current_win(), #api.nvim_list_wins()
      local shown = project.call('editor_open', { path = 'b.txt', line = 2, column = 5 })
      t.eq({ 'b.txt', window, 2, 5, true }, { shown.path, shown.window, shown.line, shown.column, shown.entered })
      t.eq({ { 2, 5 }, before }, { api.nvim_win_get_cursor(0), #api.nvim_list_wins() })
      t.eq('b.txt', vim.fs.basename(api.nvim_buf_get_name(0)))
      t.eq(3, project.call('editor_open', { bufnr = 0, line = 2 }).column)
      shown = project.call('editor_open', { path = 'b.txt', line = 90 })
      t.ok(vim.fn.line('w0') <= 90 and vim.fn.line('w$') >= 90)
      vim.cmd('exe "normal! \\<C-o>\\<C-o>\\<C-o>"')
      t.eq({ 'a.txt', true }, { vim.fs.basename(api.nvim_buf_get_name(0)), vim.bo[shown.bufnr].buflisted })
    end)

    it('does not use a terminal, a float or a fixed window', function()
      edit('a.txt', 'one\n')
      local text = api.nvim_get_current_win()
      project.write('b.txt', 'x\n')
      for _, make in ipairs({
        t.terminal,
        open_float,
        function()
          vim.cmd.new()
          vim.wo.winfixbuf = true
        end,
      }) do
        api.nvim_win_call(text, function() vim.cmd('silent edit a.txt') end)
        make()
        local own, bufnr = api.nvim_get_current_win(), api.nvim_get_current_buf()
        local shown = project.call('editor_open', { path = 'b.txt' })
        t.eq({ text, false }, { shown.window, shown.entered })
        t.eq({ own, bufnr }, { api.nvim_get_current_win(), api.nvim_get_current_buf() })
        api.nvim_win_close(own, true)
      end
    end)

    it('opens a window if no other can show the file', function()
      edit('a.txt', 'one\n')
      project.write('b.txt', 'x\n')
      vim.wo.winfixbuf = true
      local own = api.nvim_get_current_win()
      local shown = project.call('editor_open', { path = 'b.txt' })
      t.ok(shown.window ~= own)
      t.eq({ own, 2 }, { api.nvim_get_current_win(), #api.nvim_list_wins() })
      vim.wo.winfixbuf = false
      vim.cmd.only()
      vim.o.hidden = false
      api.nvim_buf_set_lines(0, 0, -1, false, { 'changed' })
      shown = project.call('editor_open', { path = 'b.txt' })
      vim.o.hidden = true
      t.eq({ false, 2 }, { shown.window == own, #api.nvim_list_wins() })
    end)

    it('highlights lines until the text is edited', function()
      local bufnr = edit('a.txt', ('line\n'):rep(9))
      local function rows()
        local namespace = api.nvim_get_namespaces()['mcp-tools.highlight']
        local marks = api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { details = true })
        return vim.tbl_map(function(mark) return { mark[2] + 1, mark[4].end_row } end, marks)
      end
      local shown = project.call('editor_open', { path = 'a.txt', ranges = { '3-4', '9' } })
      t.eq({ { { 3, 4 }, { 9, 9 } }, 3 }, { rows(), shown.line })
      local text = project.text('editor_open', { path = 'a.txt', line = 2, end_line = 5 })
      t.matches('^The user sees a.txt:2 in their window; lines are highlighted', text)
      t.eq({ { 2, 5 } }, rows())
      api.nvim_exec_autocmds('InsertEnter', { buffer = bufnr })
      t.eq({}, rows())
    end)

    it('has a rate limit', function()
      edit('1.txt', 'x\n')
      local last
      for _ = 1, 70 do
        local client = { kind = 'tool', host = 'mcp', session = 'busy' }
        last = t.ended(core.get().executor:execute('editor_open', { path = '1.txt' }, client))
      end
      t.eq('rate_limited', last.error.code)
      t.ok(last.error.retry_after_ms > 0)
    end)

    it('reloads a file that has changed on disk', function()
      local bufnr = edit('a.txt', 'one\n')
      edit('b.txt', 'x\n')
      vim.uv.fs_utime(project.write('a.txt', 'one\ntwo\n'), 1, 1)
      project.call('editor_open', { path = 'a.txt', line = 2 })
      t.eq({ bufnr, { 'one', 'two' } }, { api.nvim_get_current_buf(), api.nvim_buf_get_lines(0, 0, -1, false) })
    end)

    it('changes nothing with invalid arguments', function()
      edit('a.txt', 'one\n')
      project.write('b.txt', 'x\n')
      project.call('editor_open', { path = 'b.txt' })
      vim.cmd.edit('a.txt')
      local before = project.view()
      for _, case in ipairs({
        { {}, 'validation_error', 'exactly one of path and bufnr' },
        { { path = 'b.txt', line = 2 }, 'validation_error', 'line: 2 is beyond the end %(1 lines%)' },
        { { path = 'b.txt', line = 1, column = 9 }, 'validation_error', 'column: 9 is beyond the end of line 1' },
        { { path = 'b.txt', column = 1 }, 'validation_error', 'column: give line' },
        { { path = 'none.txt' }, 'not_found', 'no file' },
        { { path = '.' }, 'tool_error', 'directory' },
        { { path = 'b.txt', ranges = { '1-2' } }, 'validation_error', 'not a range' },
        { { path = 'b.txt', ranges = { 'x' } }, 'validation_error', 'ranges%[0%]' },
      }) do
        t.fails(case[2], case[3], project.call('editor_open', case[1]))
      end
      local after = project.view()
      before.errmsg, after.errmsg = nil, nil
      t.eq(before, after)
    end)
  end)
end)

describe('tools that run code in the editor', function()
  project.each({ 'editor_command', 'editor_eval_lua' })

  describe('editor_command', function()
    it('returns the output, truncated when it is long', function()
      t.eq({ output = 'hello' }, project.call('editor_command', { command = 'echo "hello"' }))
      t.eq('hello', project.text('editor_command', { command = 'echo "hello"' }))
      local long = project.call('editor_command', { command = 'echo repeat("ü", 500)', max_bytes = 101 })
      t.eq({ ('ü'):rep(50) .. '…', true }, { long.output, long.truncated })
      project.call('editor_command', { command = 'let g:a = 1\nlet g:b = 2' })
      t.eq({ 1, 2 }, { vim.g.a, vim.g.b })
    end)

    it('returns errors as errors, and redacts secrets', function()
      refused('editor_command', 'tool_error', 'E492', { command = 'nosuchcommand' })
      t.matches('%[secret%]', project.call('editor_command', { command = 'echo "password=hunter2"' }).output)
    end)
  end)

  describe('editor_eval_lua', function()
    it('returns the result and the output', function()
      local code = 'print("hi", 1) print("two") local a, b = ... return a + b'
      local value = project.call('editor_eval_lua', { code = code, args = { 1, 2 } })
      t.eq({ output = 'hi 1\ntwo', result = '3', type = 'number' }, value)
      t.eq('hi 1\ntwo\nresult (number): 3', project.text('editor_eval_lua', { code = code, args = { 1, 2 } }))
      t.eq({ result = 'text', type = 'string' }, project.call('editor_eval_lua', { code = 'return "text"' }))
      t.eq({ result = '{"a":[1,2]}', type = 'table' }, project.call('editor_eval_lua', { code = 'return {a={1,2}}' }))
      t.matches('<function 1>', project.call('editor_eval_lua', { code = 'return {print}' }).result)
      t.eq({}, project.call('editor_eval_lua', { code = 'local a' }))
      local long = project.call('editor_eval_lua', { code = 'return ("x"):rep(1000)', max_bytes = 100 })
      t.eq({ ('x'):rep(100) .. '…', true }, { long.result, long.truncated })
    end)

    it('reports errors of the code', function()
      refused('editor_eval_lua', 'validation_error', '^code: code:1:', { code = 'return +' })
      local _, err = project.call('editor_eval_lua', { code = 'local x\nerror("boom")' })
      t.eq('tool_error', err.code)
      t.eq(nil, err.errors) -- only invalid arguments have a list
      t.matches('code:2: boom', err.message)
      t.matches('nil', select(2, project.call('editor_eval_lua', { code = 'error()' })).message)
    end)

    it('redacts secrets', function()
      vim.cmd('silent edit ' .. project.write('.env', 'SOME_OF_THE_ENV=abcdef\n'))
      local code = 'return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false))'
      local result = project.call('editor_eval_lua', { code = code }).result
      t.ok(not result:find('abcdef', 1, true), result)
    end)
  end)

  describe('both', function()
    it('always ask, and show the code', function()
      config.setup({ approval = { rule = function() end } })
      for name, args in pairs({
        editor_command = { command = 'let g:ran = 1' },
        editor_eval_lua = { code = 'vim.g.ran = 1' },
      }) do
        t.fails('access_denied', nil, project.call(name, vim.deepcopy(args))) -- there is no user to ask
        local _, text = next(args)
        t.ok(core.get().registry:find_tool(name).preview(args):find(text, 1, true))
      end
      t.eq(nil, vim.g.ran)
    end)

    it('exist only if their own name is in the options', function()
      config.reset()
      config.setup({ tools = { 'editor' } })
      local tools = core.get().registry
      for _, name in ipairs({ 'editor_command', 'editor_eval_lua' }) do
        t.eq(nil, tools:find_tool(name))
      end
      t.ok(tools:find_tool('editor_state'))
    end)
  end)
end)
