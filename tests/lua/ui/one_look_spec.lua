-- every Neovim
local Answers = require('mcp-tools.ui.interview.answers')
local Call = require('mcp-tools.calls.call')
local Question = require('mcp-tools.ui.approval.question')
local help = require('mcp-tools.ui.window.help')
local render = require('mcp-tools.ui.window.render')
local t = require('helpers')

local api = vim.api

local ROOT = t.CHECKOUT

--- The sources that contain a text, below lua/mcp-tools.
local function files_with(text)
  local directory = ROOT .. '/lua/mcp-tools/'
  return vim
    .iter(vim.fn.globpath(directory, '**/*.lua', false, true))
    :filter(function(path) return table.concat(vim.fn.readfile(path), '\n'):find(text, 1, true) ~= nil end)
    :map(function(path) return path:sub(#directory + 1) end)
    :totable()
end

---The window that shows a buffer of the plugin.
local function window_of(variable)
  local function is_meant(window) return vim.b[api.nvim_win_get_buf(window)][variable] ~= nil end
  return t.wait(function() return vim.iter(api.nvim_list_wins()):find(is_meant) end)
end

local function keys_of(buffer)
  local keys = {}
  for _, map in ipairs(api.nvim_buf_get_keymap(buffer, 'n')) do
    keys[map.lhs] = map.callback
  end
  return keys
end

local function help_window()
  return vim.iter(api.nvim_list_wins()):find(function(window)
    local title = api.nvim_win_get_config(window).title
    return title and title[1][1] == ' keys '
  end)
end

--- Asserts that `?` shows the keys of the buffer, and `q` closes only them.
local function has_help(window)
  local buffer = api.nvim_win_get_buf(window)
  local keys, here = keys_of(buffer), api.nvim_get_current_win()
  t.ok(keys['?'] and keys.q)
  keys['?']()
  local shown = help_window()
  local lines = table.concat(api.nvim_buf_get_lines(api.nvim_win_get_buf(shown), 0, -1, false), '\n')
  t.matches({ '%f[%S]q .-%w', '%? +show the keys' }, lines)
  t.eq(here, api.nvim_get_current_win())
  keys.q()
  t.eq({ nil, true }, { help_window(), api.nvim_win_is_valid(window) })
end

describe('one look', function()
  it("opens windows in one module, except for the user's own texts, and defines highlights in one", function()
    t.eq({
      'agents/terminal.lua', -- a terminal of the user
      'editor/user/show.lua', -- a text of the project
      'ui/review/hunk_editor.lua', -- editable text
      'ui/review/split.lua', -- two texts side by side
      'ui/window/float.lua',
      'ui/window/help.lua',
      'ui/window/scratch.lua',
    }, files_with('nvim_open_win('))
    t.eq({ 'ui/window/render.lua' }, files_with('nvim_set_hl('))
  end)

  it('links its highlight groups, keeps those of the user, and follows the color scheme', function()
    render.define()
    t.eq('Title', api.nvim_get_hl(0, { name = render.group('Title') }).link)
    api.nvim_set_hl(0, 'McpToolsTitle', { bold = true })
    render.define()
    t.eq(true, api.nvim_get_hl(0, { name = 'McpToolsTitle' }).bold)
    vim.cmd('hi clear')
    t.eq('Title', api.nvim_get_hl(0, { name = 'McpToolsTitle' }).link)
    vim.cmd.colorscheme('blue')
    local frame = api.nvim_get_hl(0, { name = 'FloatBorder', link = false })
    t.ok(frame.fg)
    t.eq(frame.fg, api.nvim_get_hl(0, { name = 'McpToolsBorder' }).fg)
    vim.cmd.colorscheme('default')
  end)

  it('is legible in each color scheme that Neovim has', function()
    --- The relative luminance of a color, as WCAG 2 defines it.
    local function luminance(color)
      local sum = 0
      for weight, shift in pairs({ [0.2126] = 16, [0.7152] = 8, [0.0722] = 0 }) do
        local part = bit.band(bit.rshift(color, shift), 255) / 255
        sum = sum + weight * (part <= 0.03928 and part / 12.92 or ((part + 0.055) / 1.055) ^ 2.4)
      end
      return sum
    end
    local function contrast(one, other)
      one, other = luminance(one) + 0.05, luminance(other) + 0.05
      return math.max(one / other, other / one)
    end
    local least = { Normal = 2, Good = 2, Warn = 2, Bad = 2, Busy = 2, Border = 1.1 }
    local faults, fallback = {}, { dark = { fg = 0xe0e2ea, bg = 0x14161b }, light = { fg = 0x14161b, bg = 0xe0e2ea } }
    for _, scheme in ipairs(vim.fn.getcompletion('', 'color')) do
      for background, default in pairs(fallback) do
        vim.o.background = background
        vim.cmd.colorscheme(scheme)
        local text = api.nvim_get_hl(0, { name = render.group('Normal'), link = false })
        for name, wanted in pairs(vim.o.background == background and least or {}) do
          local fg = api.nvim_get_hl(0, { name = render.group(name), link = false }).fg or text.fg or default.fg
          local found = contrast(fg, text.bg or default.bg)
          if found < wanted then
            table.insert(faults, ('%s, %s: %s %.2f'):format(scheme, background, name, found))
          end
        end
      end
    end
    t.eq({}, faults)
    vim.o.background = 'dark'
    vim.cmd.colorscheme('default')
  end)
end)

describe('help', function()
  after_each(function()
    help.close()
    vim.cmd('silent! only')
    vim.cmd('%bwipeout!')
  end)

  it('is on ? in the bottom window, a question for approval, an interview, a review and a hunk editor', function()
    require('mcp-tools.ui.window.scratch').show('test', { 'a line' })
    has_help(api.nvim_get_current_win())

    local call = Call.new({ id = 'look', name = 'x', host = 'test' })
    call.definition = { name = 'x', description = 'x' }
    local asked = { call = call, args = {}, reason = 'y', targets = {}, choices = { 'once', 'deny' }, root = '/' }
    local said = 0
    local question = Question.new(asked, {}, function() said = said + 1 end)
    question.on_close = function() end
    local approval = require('mcp-tools.ui.approval.float')
    approval.show(question)
    local window = window_of('mcp_tools_approval')
    has_help(window)
    local keys = keys_of(api.nvim_win_get_buf(window))
    keys['?']()
    keys.y() -- text that the help covers is not approved unseen
    t.eq({ 0, nil }, { said, help_window() })
    keys.y()
    t.eq(1, said)
    approval.hide(question)

    local interview = { answers = Answers.new({ { question = 'a', choices = { 'b', 'c' } } }), waiting = 0 }
    local float = require('mcp-tools.ui.interview.float')
    float:show(interview)
    has_help(window_of('mcp_tools_interview'))
    float:hide(interview)

    local left = 0
    window = api.nvim_get_current_win()
    local function leave() left = left + 1 end
    local function nothing() end
    local windows = { { window = window, bufnr = api.nvim_win_get_buf(window) } }
    local review =
      require('mcp-tools.ui.review.keys').set(windows, { { 'q', leave, 'review later', 'later' } }, nothing, nothing)
    has_help(window)
    t.eq(0, left)
    review:remove()

    require('mcp-tools.ui.review.hunk_editor').open({ 'x' }, '', nothing, nothing)
    has_help(api.nvim_get_current_win())
  end)

  it('closes with the next key, and with its window', function()
    local scratch = require('mcp-tools.ui.window.scratch')
    scratch.show('test', { 'a line' })
    for _, key in ipairs({ 'j', '?', 'q' }) do
      api.nvim_feedkeys('?', 'xt', false)
      t.ok(help_window())
      api.nvim_feedkeys(key, 'xt', false)
      t.wait(function() return not help_window() end)
      t.eq('mcp-tools://test', api.nvim_buf_get_name(0))
    end
    api.nvim_feedkeys('?', 'xt', false)
    vim.cmd.close()
    t.wait(function() return not help_window() end)
  end)

  it('lists keys in the given order, and those with the same description once', function()
    local buffer = api.nvim_get_current_buf()
    help.toggle({
      { lhs = 'y', description = 'accept' },
      { lhs = '1', description = 'choose' },
      { lhs = 'q', description = 'later' },
      { lhs = '2', description = 'choose' },
    })
    local lines = api.nvim_buf_get_lines(api.nvim_win_get_buf(help_window()), 0, -1, false)
    t.eq({ '  y    accept', '  1 2  choose', '  q    later' }, lines)
    t.eq(buffer, api.nvim_get_current_buf())
  end)
end)
