-- every Neovim
local scratch = require('mcp-tools.ui.window.scratch')
local t = require('helpers')

local OPTIONS =
  { 'number', 'relativenumber', 'winfixheight', 'wrap', 'linebreak', 'breakindent', 'breakindentopt', 'winbar' }

local function values(scope)
  local out = {}
  for _, name in ipairs(OPTIONS) do
    out[name] = vim.api.nvim_get_option_value(name, { scope = scope })
  end
  return out
end

describe('the window at the bottom', function()
  it('takes the height that it needs, but no line of the command line', function()
    vim.o.cmdheight = 2
    scratch.show('test', t.lines(18, 'line %d'), { tall = true })
    t.eq(19, vim.api.nvim_win_get_height(0))
    vim.cmd.close()
    scratch.show('test', t.lines(200, 'line %d'), { tall = true })
    t.eq({ 2, vim.o.lines - 4 }, { vim.o.cmdheight, vim.api.nvim_win_get_height(0) })
    vim.cmd.close()
    vim.o.cmdheight = 1
  end)

  it("does not change the user's options for any window", function()
    vim.o.number, vim.o.relativenumber, vim.o.wrap, vim.o.linebreak = true, true, false, false
    local here, everywhere = values('local'), values('global')
    for _, title in ipairs({ 'above it', false }) do
      scratch.show('test', { 'a line' }, { title = title or nil })
      t.eq({ false, true }, { vim.wo.number, vim.wo.wrap })
      t.matches(title or 'test', vim.wo.winbar)
      t.eq(everywhere, values('global'))
      vim.cmd.close()
      t.eq(here, values('local'))
      vim.cmd.new('another')
      t.eq(here, values('local'))
      vim.cmd('bwipeout!')
    end
    scratch.show('test', { 'a line' })
    vim.cmd.edit(vim.fn.tempname())
    t.eq(true, vim.wo.number)
    vim.cmd('%bwipeout!')
  end)

  it('shows its keys while it has the focus, otherwise the keys that enter it', function()
    local here = vim.api.nvim_get_current_win()
    local window = vim.fn.bufwinid(scratch.show('test', { 'a line' }, { stay = true }))
    vim.cmd.vsplit() -- so that the window is not the next one
    local function winbar()
      return vim.api.nvim_eval_statusline(vim.wo[window].winbar, { winid = window, use_winbar = true }).str
    end
    t.eq('3 <C-W>w enters', vim.trim(winbar():match('test(.*)')))
    vim.cmd([[execute "normal! 3\<C-W>w"]])
    t.eq({ window, 'q close  ? keys' }, { vim.api.nvim_get_current_win(), vim.trim(winbar():match('test(.*)')) })
    vim.cmd.close()
    vim.api.nvim_set_current_win(here)
    vim.cmd.only()
  end)

  it('opens even if the screen has no room for another window', function()
    local lines, here = vim.o.lines, nil
    vim.o.lines = 12
    while pcall(vim.cmd.split) do
      here = vim.api.nvim_get_current_win()
    end
    local buffer = scratch.show('test', { 'one', 'two' }, { stay = true, title = 'above it' })
    t.eq(here, vim.api.nvim_get_current_win())
    local window = vim.fn.win_findbuf(buffer)[1]
    t.eq({ 3, buffer }, { vim.api.nvim_win_get_height(window), (scratch.show('test', { 'three' })) })
    t.eq({ window, 2 }, { vim.api.nvim_get_current_win(), vim.api.nvim_win_get_height(window) })
    vim.cmd('normal q')
    t.eq(false, scratch.update(buffer))
    vim.cmd('%bwipeout!')
    vim.cmd('silent! only')
    vim.o.lines = lines
  end)

  it('moves the cursor only when the row for it changes', function()
    local at, lines = 2, { 'one', 'two', 'three' }
    local buffer = scratch.show('test', function() return lines end, { at = function() return at end })
    local function row_after(row)
      vim.api.nvim_win_set_cursor(0, { row, 0 })
      lines = vim.list_extend({ 'more' }, lines)
      scratch.update(buffer)
      return vim.api.nvim_win_get_cursor(0)[1]
    end
    t.eq(2, vim.api.nvim_win_get_cursor(0)[1])
    t.eq(1, row_after(1))
    at = 3
    t.eq(3, row_after(1))
    vim.cmd.close()
  end)

  it('replaces a buffer of the same name from a restored session', function()
    vim.cmd('new | file mcp-tools://test')
    local restored = vim.api.nvim_get_current_buf()
    local buffer = scratch.show('test', { 'a line' })
    t.eq(false, vim.api.nvim_buf_is_valid(restored))
    t.eq({ 'a line' }, vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
    vim.cmd('%bwipeout!')
  end)

  it('does not reuse the window of another buffer, such as a text under review', function()
    local other = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(other, 'mcp-tools://new/1/a.txt')
    vim.cmd.sbuffer(other)
    scratch.show('test', { 'a line' })
    t.eq(1, #vim.fn.win_findbuf(other))
    vim.cmd('%bwipeout!')
  end)

  it('is updated in place while it is open', function()
    local lines = { 'one', 'two', 'three' }
    local buffer = scratch.show('test', function() return lines end)
    vim.api.nvim_win_set_cursor(0, { 2, 1 })
    lines = { 'four', 'five', 'six', 'seven' }
    t.eq({ true, { 2, 1 } }, { scratch.update(buffer), (vim.api.nvim_win_get_cursor(0)) })
    t.eq({ 5, 'six' }, { vim.api.nvim_win_get_height(0), vim.api.nvim_buf_get_lines(buffer, 2, 3, false)[1] })
    t.eq(false, vim.bo[buffer].modifiable)
    vim.cmd.close()
    t.eq(false, scratch.update(buffer))
  end)

  describe('with a key that accepts all lines', function()
    local accepted
    local function accept() accepted = true end
    local keys = { { lhs = 'y', description = 'accepts it', word = 'accept', run = accept, accepts = true } }

    local function presses()
      local count = 0
      vim.cmd.redraw()
      repeat
        vim.api.nvim_feedkeys('y', 'xt', false)
        vim.cmd.redraw()
        count = count + 1
        t.ok(count < 20, 'it never ends')
      until accepted
      vim.cmd.close()
      accepted = false
      return count
    end

    it('scrolls by a page until the last line was visible', function()
      vim.o.scrolloff = 99
      if vim.fn.has('nvim-0.11') == 1 then -- without a UI, `line('w$')` is 0 after `:redraw` in Neovim 0.10
        scratch.show('test', t.lines(40, 'line %d'), { keys = keys })
        t.eq(3, presses())
        scratch.show('test', t.lines(28, 'long %d ' .. ('word '):rep(50)), { keys = keys })
        local pages = vim.api.nvim_win_text_height(0, {}).all / 12
        t.ok(presses() <= math.ceil(pages) + 1, pages)
      end
      scratch.show('test', { 'short' }, { keys = keys })
      t.eq(1, presses())
      vim.o.scrolloff = 0
    end)

    it('shows the end of the text at the bottom of the window', function()
      scratch.show('test', t.lines(20, 'line %d'), { keys = keys })
      vim.cmd.redraw()
      vim.api.nvim_feedkeys('y', 'xt', false)
      vim.cmd.redraw()
      if vim.fn.has('nvim-0.11') == 1 then -- without a UI, Neovim 0.10 scrolls again
        t.eq(20 - (vim.api.nvim_win_get_height(0) - 1) + 1, vim.fn.winsaveview().topline) -- without the winbar
      end
      vim.api.nvim_feedkeys('y', 'xt', false)
      t.eq(true, accepted)
      accepted = false
      vim.cmd.close()
    end)

    it('counts a line as read that was visible earlier', function()
      scratch.show('test', t.lines(40, 'line %d'), { keys = keys })
      t.wait(function() return vim.wo.winbar:find('2 more pages') end)
      vim.cmd('normal! G')
      vim.cmd.redraw()
      vim.api.nvim_exec_autocmds('WinScrolled', {}) -- otherwise sent by the main loop
      vim.wait(10)
      vim.cmd('normal! gg')
      t.eq(1, presses())
    end)
  end)

  local function fill(rows) rows:add({ 'a row' }, { kind = 'row', id = 'row' }) end

  it('as a float shows its keys in the border, and passes them the item at the cursor', function()
    local pressed
    local function run(item) pressed = item.id end
    local keys = { { lhs = 'x', description = 'does it', word = 'do it', run = run } }
    scratch.show('test', fill, { rows = true, float = true, keys = keys })
    local footer = vim.iter(vim.api.nvim_win_get_config(0).footer):map(function(chunk) return chunk[1] end)
    t.eq(' q close  ? keys  x do it ', footer:join(''))
    vim.api.nvim_feedkeys('x', 'xt', false)
    t.eq('row', pressed)
    vim.cmd.close()
  end)

  it('keeps the cursor on its item when rows are inserted before it', function()
    local before = 0
    local buffer = scratch.show('test', function(rows)
      for i = 1, before do
        rows:add({ 'new ' .. i })
      end
      fill(rows)
    end, { rows = true })
    before = 2
    t.eq({ true, 3, 'a row' }, { scratch.update(buffer), vim.fn.line('.'), (vim.api.nvim_get_current_line()) })
    vim.cmd.close()
  end)

  it('is an ordinary window for a file that is opened in it', function()
    for _, alone in ipairs({ false, true }) do
      local path, ended = vim.fn.tempname(), false
      scratch.show('test', fill, { rows = true, on_close = function() ended = true end })
      if alone then
        vim.cmd.only()
      end
      vim.cmd.edit(path)
      t.eq({ true, path, '' }, { ended, vim.api.nvim_buf_get_name(0), vim.wo.winbar })
      vim.cmd('silent! only')
    end
  end)

  it('as a float closes when another window is entered, which it would cover', function()
    local buffer = scratch.show('float', fill, { rows = true, float = true })
    scratch.show('other', { 'a line' }, { stay = true })
    t.eq(true, vim.api.nvim_buf_is_valid(buffer))
    scratch.show('other', { 'a line' })
    t.wait(function() return not vim.api.nvim_buf_is_valid(buffer) end)
    vim.cmd.close()
  end)

  it('returns to the window that it was opened from, not to the one above it', function()
    local first = vim.api.nvim_get_current_win()
    for _, float in ipairs({ false, true }) do
      vim.cmd('belowright new')
      local below = vim.api.nvim_get_current_win()
      vim.api.nvim_set_current_win(first)
      scratch.show('test', fill, { rows = true, float = float })
      vim.cmd('normal q')
      t.eq(first, vim.api.nvim_get_current_win())
      scratch.close(scratch.show('test', fill, { rows = true, float = float }))
      t.eq(first, vim.api.nvim_get_current_win())
      local buffer = scratch.show('test', fill, { rows = true, float = float, stay = true })
      vim.api.nvim_set_current_win(below)
      scratch.close(buffer)
      t.eq(below, vim.api.nvim_get_current_win())
      vim.cmd.close()
    end
  end)

  it('is closed with its buffer, and its buffer with it, once', function()
    local ended = 0
    for _, float in ipairs({ true, false }) do
      for i, command in ipairs({ 'close', 'bwipeout' }) do
        local function on_close() ended = ended + 1 end
        local buffer = scratch.show('test', fill, { rows = true, float = float, on_close = on_close })
        local window = vim.api.nvim_get_current_win()
        vim.cmd(command)
        t.eq({ false, false }, { vim.api.nvim_win_is_valid(window), vim.api.nvim_buf_is_valid(buffer) })
        t.eq((float and 0 or 2) + i, ended)
      end
    end
  end)
end)
