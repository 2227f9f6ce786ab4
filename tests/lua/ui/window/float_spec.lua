-- every Neovim
local float = require('mcp-tools.ui.window.float')
local help = require('mcp-tools.ui.window.help')
local keepers = require('mcp-tools.ui.window.keeper')
local log = require('mcp-tools.log')
local render = require('mcp-tools.ui.window.render')
local Rows = require('mcp-tools.ui.window.rows')
local scratch = require('mcp-tools.ui.window.scratch')
local t = require('helpers')

local api = vim.api

describe('the position of a floating window', function()
  before_each(function()
    vim.o.lines, vim.o.columns, vim.o.cmdheight = 24, 80, 1
  end)

  after_each(function() vim.cmd('silent! only | %bwipeout!') end)

  it('is in the half without the cursor', function()
    t.eq({ row = 14, height = 6 }, float.place(6))
    vim.cmd('botright 4new')
    t.eq({ row = 0, height = 6 }, float.place(6))
  end)

  it('leaves two fifths of the screen free, unless a little more shows the whole text', function()
    t.eq({ 13, 1 }, { float.place(1000).height, float.place(0).height })
    t.eq({ { row = 4, height = 16 }, 13 }, { float.place(16), float.place(17).height })
  end)

  it('does not change, unless it hides the line of the cursor', function()
    t.eq(9, float.place(6, nil, { row = 9, height = 6 }).row)
    vim.cmd('botright 12new')
    t.ok(float.place(6, nil, { row = 9, height = 6 }).row ~= 9)
  end)

  it('keeps its edge when the height changes', function()
    t.eq({ row = 11, height = 4 }, float.place(4, nil, { row = 9, height = 6 }))
    t.eq({ row = 7, height = 8 }, float.place(8, nil, { row = 9, height = 6 }))
    vim.cmd('botright 4new')
    t.eq({ row = 0, height = 8 }, float.place(8, nil, { row = 0, height = 6 }))
  end)

  it('is beside the opened window, and smaller if there is less room', function()
    vim.cmd('botright 5new')
    local opened = api.nvim_get_current_win()
    vim.cmd.wincmd('p')
    local at = float.place(12, opened)
    local top = api.nvim_win_get_position(opened)[1]
    t.ok(at.row + at.height + float.FRAME <= top, vim.inspect(at))
    t.ok(at.height < 13 and at.height >= 8, vim.inspect(at))
    api.nvim_win_close(opened, true)
    t.eq(float.place(12), float.place(12, opened))
  end)
end)

it('a floating window with the cursor does not cover the line that the user came from', function()
  vim.o.lines, vim.o.columns, vim.o.cmdheight = 24, 80, 1
  local function page(count)
    local rows = Rows.new(40)
    for i = 1, count do
      rows:line(tostring(i))
    end
    return rows
  end
  local shown = setmetatable({}, float.kind({ zindex = 50, max_width = 40 }))
  shown:open_page(page(6), float.buffer('mcp_tools_spec', true, {}))
  shown:enter()
  for _, case in ipairs({ { 9, 11 }, { 3, 17 }, { 6, 14 } }) do
    shown.rows = case[1]
    shown:move()
    t.eq({ { row = case[2], height = case[1] } }, shown.placed)
  end
  shown:close()
end)

---A kind of window with a line of text and a field below it.
local Window = float.kind({ zindex = 50, max_width = 40, field = 2 })

function Window:layout() return { { row = 2, height = 1 }, { row = 5, height = 1 } } end

function Window:frames()
  local frame = { title = { render.chunk(self.subject.text, 'Heading') } }
  return { frame, {} }
end

function Window:save() self.subject.saved = (self.subject.saved or 0) + 1 end

describe('a floating window', function()
  local keeper, closed, may_enter, fault, text

  local function open(subject)
    if fault then
      error(fault, 0)
    end
    local self = setmetatable({ subject = subject }, Window)
    local rows = Rows.new(self:width(), true)
    rows:line(subject.text)
    local keys = { x = { 'n', keeper:key(function() subject.pressed = true end), 'press' } }
    self.buffers = { float.buffer('mcp_tools_spec', subject.text, keys), float.buffer('mcp_tools_spec', 'field', {}) }
    render.update(self.buffers[1], rows.list)
    self:open({ {}, {} })
    return self
  end

  local function is_shown(subject)
    t.wait(function() return keeper:on_screen(subject) end)
    return keeper.shown
  end

  local function show()
    local one = { text = 'one' }
    keeper:show(one)
    is_shown(one)
    return one
  end

  before_each(function()
    closed, may_enter, fault = {}, false, nil
    text = api.nvim_get_current_win()
    keeper = keepers.new({
      name = 'spec',
      open = open,
      may_enter = function() return may_enter end,
      closed = function(subject) table.insert(closed, subject.text) end,
    })
  end)

  after_each(function()
    keeper:show(nil)
    t.wait(function() return not keeper.shown and not keeper.group end)
    vim.cmd('silent! tabonly | silent! only')
    t.eq(1, #api.nvim_list_wins())
  end)

  it('is open as long as its subject is shown, and is not entered automatically', function()
    local one, two = { text = 'one' }, { text = 'two' }
    keeper:show(one)
    local shown = is_shown(one)
    t.eq({ text, 'one' }, { api.nvim_get_current_win(), vim.b[shown.buffers[1]].mcp_tools_spec })
    t.eq({ 'one' }, api.nvim_buf_get_lines(shown.buffers[1], 0, -1, false))
    t.eq(false, vim.bo[shown.buffers[1]].modifiable)
    keeper:show(two)
    is_shown(two)
    t.eq({ false, false }, { api.nvim_win_is_valid(shown.windows[1]), api.nvim_buf_is_valid(shown.buffers[1]) })
    t.eq(nil, keeper:on_screen(one))
    keeper:hide(two)
    t.wait(function() return not keeper.shown end)
    t.eq({ 1, 0 }, { #api.nvim_list_wins(), #closed })
  end)

  it('opens again when something else closes it, on any tab page', function()
    local one = show()
    for _, command in ipairs({ 'only', 'tabnew', 'tabonly', 'tabnew', 'tabclose' }) do
      vim.cmd(command)
      t.wait(function() return keeper:on_screen(one) and #api.nvim_tabpage_list_wins(0) == 3 end)
    end
    t.eq(0, #closed)
    t.ok(one.saved >= 4)
  end)

  it('that is closed from inside is reported as closed, once', function()
    show()
    keeper:focus()
    vim.cmd.close()
    t.wait(function() return #closed > 0 end)
    keeper:show(nil)
    vim.wait(150)
    t.eq({ { 'one' }, 1 }, { closed, #api.nvim_list_wins() })
  end)

  it('keeps the cursor when the size of the screen changes', function()
    local before = is_shown(show())
    keeper:focus()
    for _, index in ipairs({ 1, 2 }) do
      keeper.shown:enter(index)
      api.nvim_exec_autocmds('VimResized', {})
      t.wait(function() return keeper.shown and keeper.shown ~= before and keeper.shown:cursor() == index end)
      before = keeper.shown
    end
    keeper:leave()
    t.eq(text, api.nvim_get_current_win())
  end)

  it('can be entered automatically once, and ignores keys for a moment', function()
    may_enter = true
    local one = show()
    t.eq(1, keeper.shown:cursor())
    vim.cmd.normal('x')
    t.eq(nil, one.pressed)
    t.wait(function()
      vim.cmd.normal('x')
      return one.pressed
    end)
    keeper:leave()
    vim.cmd.only()
    is_shown(one)
    t.eq(nil, keeper.shown:cursor())
  end)

  it('retries until the editor allows it to open', function()
    local one = { text = 'one' }
    fault = 'E565: Not allowed to change text or change window'
    keeper:show(one)
    vim.wait(150)
    t.eq({ nil, 1 }, { keeper.shown, #api.nvim_list_wins() })
    fault = nil
    is_shown(one)
  end)

  it('that can never be opened is logged once', function()
    local function count()
      local pattern = 'WARN .*the spec window could not be updated.*: a mistake of ours'
      return #vim.tbl_filter(function(line) return line:find(pattern) ~= nil end, log.lines())
    end
    fault = 'a mistake of ours'
    keeper:show({ text = 'one' })
    t.wait(function() return count() > 0 end, 3000)
    t.wait(function() return keeper.failures > 11 end)
    t.eq(1, count())
  end)

  it('returns to the previous window, or to another one when that is gone', function()
    local one = show()
    vim.cmd.new()
    local upper = api.nvim_get_current_win()
    keeper:focus()
    keeper:leave()
    t.eq(upper, api.nvim_get_current_win())
    keeper:focus()
    api.nvim_win_close(upper, true)
    t.eq(1, keeper.shown:cursor())
    keeper:leave()
    t.eq(text, api.nvim_get_current_win())
    keeper:focus()
    keeper:key(function() keeper:hide(one) end)() -- an answer
    t.eq(text, api.nvim_get_current_win())
  end)

  it('is not opened again if the user closes it after what it shows has ended', function()
    local one = show()
    keeper:focus()
    keeper:hide(one)
    vim.wait(50)
    vim.cmd.quit()
    vim.wait(300)
    t.eq({ nil, {} }, { keeper.shown, closed })
  end)

  it('stays until the user leaves it if its subject ends', function()
    local one, two = show(), { text = 'two' }
    local shown = keeper.shown
    keeper:focus()
    keeper:hide(one)
    keeper:show(two)
    vim.wait(50)
    t.eq({ shown.windows[1], nil }, { api.nvim_get_current_win(), keeper:on_screen(one) })
    t.matches('no longer waits', vim.inspect(api.nvim_win_get_config(shown.windows[1]).title))
    local ran = false
    keeper:key(function() ran = true end)()
    t.eq({ false, text }, { ran, api.nvim_get_current_win() })
    is_shown(two)
    keeper:hide(two)
  end)

  it('is left immediately if the user has answered by a command', function()
    local one, two = show(), { text = 'two' }
    keeper:focus()
    keeper:hide(one, true)
    keeper:show(two)
    is_shown(two)
    t.eq(text, api.nvim_get_current_win())
    keeper:hide(two)
  end)

  for _, event in ipairs({ 'WinEnter', 'WinLeave' }) do
    it(('is entered and left even if an autocommand for %s throws'):format(event), function()
      show()
      local id = api.nvim_create_autocmd(event, { callback = function() error('of the user') end })
      keeper:focus()
      local inside = keeper.shown:cursor()
      keeper:leave()
      local outside = api.nvim_get_current_win()
      api.nvim_del_autocmd(id)
      t.eq({ 1, text, '' }, { inside, outside, vim.o.eventignore })
    end)
  end
end)

it('a border has as many keys as fit, and the number of hidden lines', function()
  local keys = render.keys({ { 'y', 'yes' }, { '<C-X>', 'something long' }, { 'n', 'no' } }, 14)
  local texts = vim.tbl_map(function(chunk) return chunk[1] end, keys)
  t.eq({ { ' y ', 'yes ', ' n ', 'no ' }, { 'McpToolsNormal', 'McpToolsKey' } }, { texts, keys[1][2] })
  t.eq(' :McpTo ', render.keys({ { ':McpTools review', 'shows it' } }, 8)[1][1])
  t.eq({ '… 1 more line ', {} }, { render.with_more({}, 1)[1][1], (render.with_more({}, 0)) })
end)

describe('the help of a window', function()
  after_each(function()
    help.close()
    vim.cmd('silent! %bwipeout!')
  end)

  it('consumes the key that closes it, and no later ones', function()
    if vim.fn.has('nvim-0.11') == 0 then
      return -- this version cannot consume a key
    end
    local ran = {}
    for _, key in ipairs({ 'q', 'y' }) do
      vim.keymap.set('n', key, function() table.insert(ran, key) end, { buffer = 0 })
    end
    api.nvim_buf_set_lines(0, 0, -1, false, vim.tbl_map(tostring, vim.fn.range(1, 500)))
    help.toggle({ { lhs = 'q', description = 'leave' } })
    api.nvim_feedkeys('qyx', 'xt', false)
    t.eq({ { 'y' }, { 1, 0 }, '' }, { ran, api.nvim_win_get_cursor(0), api.nvim_get_current_line() })
    t.wait(function() return #api.nvim_list_wins() == 1 end)
  end)

  it('names the space bar', function()
    help.attach(0)
    vim.keymap.set('n', '<Space>', '<Nop>', { buffer = 0, desc = 'choose' })
    api.nvim_feedkeys('?', 'xt', false)
    local lines = {}
    for _, window in ipairs(api.nvim_list_wins()) do
      vim.list_extend(lines, api.nvim_buf_get_lines(api.nvim_win_get_buf(window), 0, -1, false))
    end
    t.matches('<Space>%s+choose', table.concat(lines, '\n'))
  end)
end)

local LINES = { 'a call', '  content: "{{{', '  rm -rf ~', '  }}}"', 'the end' }

function Window.open_lines()
  local self, rows = setmetatable({ subject = { text = '' } }, Window), Rows.new(40, true)
  vim.iter(LINES):each(function(line) rows:line(line) end)
  self.buffers = { float.buffer('mcp_tools_spec', true, {}) }
  render.update(self.buffers[1], rows.list)
  self:open({ {} })
  return self.windows[1]
end

local function shown(opts)
  return function()
    scratch.show('one', LINES)
    scratch.show('two', LINES, opts)
    return api.nvim_get_current_win()
  end
end

local OPEN = {
  ['a question'] = Window.open_lines,
  ['the window at the bottom, used again'] = shown({}),
  ['the dashboard'] = shown({ float = true }),
}

describe('options of the user for text', function()
  local own = { number = true, statuscolumn = '%l', signcolumn = 'yes', foldmethod = 'marker', foldlevel = 0 }
  own.spell, own.list, own.colorcolumn = true, true, '10'

  before_each(function()
    for name, value in pairs(own) do
      vim.o[name] = value
    end
  end)
  after_each(function()
    vim.cmd('silent! only')
    vim.cmd('%bwipeout!')
    for name in pairs(own) do
      vim.cmd('set ' .. name .. '&')
    end
  end)

  for what, open in pairs(OPEN) do
    it('have no effect in ' .. what, function()
      local here = api.nvim_get_current_win()
      local window = open()
      api.nvim_win_call(window, function()
        for line = 1, #LINES do
          t.eq({ line, -1 }, { line, vim.fn.foldclosed(line) })
        end
      end)
      t.eq(0, vim.fn.getwininfo(window)[1].textoff)
      t.eq({ false, false, '' }, { vim.wo[window].spell, vim.wo[window].list, vim.wo[window].colorcolumn })
      for name, value in pairs(own) do
        t.eq({ name, value, name, value }, { name, vim.wo[here][name], name, vim.go[name] })
      end
    end)
  end
end)
