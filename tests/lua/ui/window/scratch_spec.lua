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

  it('opens even if the screen has no room for another window', function()
    local lines, here = vim.o.lines, nil
    vim.o.lines = 12
    while pcall(vim.cmd.split) do
      here = vim.api.nvim_get_current_win()
    end
    local buffer = scratch.show('test', { 'one', 'two' }, { stay = true, title = 'above it' })
    t.eq(here, vim.api.nvim_get_current_win())
    local window = vim.fn.win_findbuf(buffer)[1]
    t.eq(3, vim.api.nvim_win_get_height(window))
    t.eq(buffer, scratch.show('test', { 'three' }))
    t.eq({ window, 2 }, { vim.api.nvim_get_current_win(), vim.api.nvim_win_get_height(window) })
    vim.cmd('normal q')
    t.eq(false, scratch.update(buffer))
    vim.cmd('%bwipeout!')
    vim.cmd('silent! only')
    vim.o.lines = lines
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
    t.eq(true, scratch.update(buffer))
    t.eq({ 2, 1 }, vim.api.nvim_win_get_cursor(0))
    t.eq(5, vim.api.nvim_win_get_height(0))
    t.eq('six', vim.api.nvim_buf_get_lines(buffer, 2, 3, false)[1])
    t.eq(false, vim.bo[buffer].modifiable)
    vim.cmd.close()
    t.eq(false, scratch.update(buffer))
  end)

  it('is revealed page by page for a key that agrees to all of it', function()
    local lines = t.lines(40, 'line %d')
    scratch.show('test', lines)
    vim.cmd.redraw()
    local pages = 0
    while scratch.reveal() do
      vim.cmd.redraw()
      pages = pages + 1
      t.ok(pages < 10, 'it never ends')
    end
    t.ok(pages == 2 or pages == 3, pages)
    t.eq(40, vim.fn.line('w$'))
    scratch.show('test', { 'short' })
    vim.cmd.redraw()
    t.eq(false, scratch.reveal())
    vim.cmd.close()
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
    t.eq(true, scratch.update(buffer))
    t.eq({ 3, 'a row' }, { vim.fn.line('.'), vim.api.nvim_get_current_line() })
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
