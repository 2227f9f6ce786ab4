-- every Neovim
-- The files that are selected in file explorers and pickers. netrw and the quickfix list are real. Of the plugins, this
-- file has doubles of the functions that they document; with EXPLORER and EXPLORER_PATH, a plugin itself.

local explorers = require('mcp-tools.agents.explorers')
local notifications = require('notifications')
local project = require('editor_project')
local t = require('helpers')

local REAL = vim.env.EXPLORER
vim.opt.runtimepath:prepend(vim.split(vim.env.EXPLORER_PATH or '', ':'))

local a, b, directory

--- Fills the buffer of a double with the entries of the directory.
local function fill(filetype)
  vim.cmd('enew')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a.txt', 'b.txt', 'sub' })
  vim.bo.filetype = filetype
  return function(line) return vim.fs.joinpath(directory, vim.fn.getline(line or '.')) end
end

--- What a user has marked in a double.
local marked

local CASES = {
  netrw = {
    open = function()
      vim.cmd('filetype plugin on | runtime! plugin/netrwPlugin.vim | silent! packadd netrw')
      vim.cmd.Explore(directory)
    end,
    mark = function() vim.cmd.normal('mf') end,
  },
  oil = {
    open = function()
      require('oil').setup()
      require('oil').open(directory)
    end,
    double = function()
      fill('oil')
      package.loaded.oil = {
        get_current_dir = function() return directory .. '/' end,
        get_entry_on_line = function(_, line) return { name = vim.fn.getline(line) } end,
      }
    end,
  },
  minifiles = {
    open = function()
      require('mini.files').setup()
      require('mini.files').open(directory, false)
    end,
    double = function()
      local path = fill('minifiles')
      package.loaded['mini.files'] = { get_fs_entry = function(_, line) return { path = path(line) } end }
    end,
  },
  ['neo-tree'] = {
    open = function() require('neo-tree.command').execute({ action = 'focus', dir = directory }) end,
    double = function()
      local path = fill('neo-tree')
      local tree = { get_node = function(_, line) return { path = path(line) } end }
      local state = function() return { tree = tree } end
      package.loaded['neo-tree.sources.manager'] = { get_state_for_window = state }
    end,
  },
  NvimTree = {
    open = function()
      require('nvim-tree').setup({ renderer = { icons = { show = { file = false, folder = false } } } })
      require('nvim-tree.api').tree.open({ path = directory })
    end,
    mark = function()
      if REAL == 'NvimTree' then
        return require('nvim-tree.api').marks.toggle()
      end
      table.insert(marked, { absolute_path = vim.fs.joinpath(directory, vim.fn.getline('.')) })
    end,
    double = function()
      local path = fill('NvimTree')
      package.loaded['nvim-tree.api'] = {
        marks = { list = function() return marked end },
        tree = { get_node_under_cursor = function() return { absolute_path = path() } end },
      }
    end,
  },
}

after_each(function() vim.cmd('silent! %bwipeout!') end)
project.each(nil, function()
  a = vim.uv.fs_realpath(project.write('files/a.txt', 'one\ntwo\n'))
  b = vim.uv.fs_realpath(project.write('files/b.txt', 'one\n'))
  directory, marked = vim.fs.dirname(a), {}
  vim.fn.mkdir(directory .. '/sub')
end)

--- Puts the cursor on an entry.
local function on(name)
  t.wait(function() return vim.fn.search(name:gsub('%.', '\\.'), 'cw') > 0 end, 5000, name)
end

local function paths(range)
  return vim.tbl_map(function(one) return (vim.uv.fs_realpath(one.path)) end, explorers.selected(range))
end

for filetype, case in vim.spairs(CASES) do
  describe(filetype, function()
    before_each(function()
      local open = (REAL == filetype or not case.double) and case.open or case.double
      open()
      t.wait(function() return vim.bo.filetype == filetype end, 5000, filetype)
      on('a.txt')
    end)

    it('has the entry under the cursor, those of a range, and a directory', function()
      t.eq({ a }, paths())
      local line = vim.fn.line('.')
      t.eq({ { a, b }, line }, { paths({ line, line + 1 }), (vim.fn.line('.')) })
      on('sub')
      t.eq({ directory .. '/sub' }, paths())
    end)

    if case.mark then
      it('has what is marked', function()
        case.mark()
        on('b.txt')
        case.mark()
        on('sub')
        local both = paths()
        table.sort(both)
        t.eq({ a, b }, both)
        if filetype == 'netrw' then
          vim.cmd.normal('mu') -- its marks are global
        end
      end)
    end
  end)
end

it('netrw as a wide list has the file under the cursor, and none of a range', function()
  vim.g.netrw_liststyle = 2
  vim.cmd('new')
  CASES.netrw.open()
  for _, name in ipairs({ 'a.txt', 'b.txt', 'sub' }) do
    on(name)
    t.eq({ directory .. '/' .. name }, paths())
  end
  t.eq({}, paths({ vim.fn.line('.'), vim.fn.line('.') }))
  vim.g.netrw_liststyle = nil
end)

it('netrw as a tree has files of subdirectories', function()
  project.write('files/sub/c.txt', '')
  vim.uv.fs_symlink(a, directory .. '/sub/link')
  vim.uv.fs_symlink(directory, directory .. '/up')
  vim.g.netrw_liststyle = 3
  vim.cmd('new') -- a window keeps its style
  CASES.netrw.open()
  on('sub')
  t.eq({ directory .. '/sub' }, paths())
  vim.cmd.normal(vim.keycode('<CR>'))
  on('c.txt')
  t.eq({ directory .. '/sub/c.txt' }, paths())
  on('link@')
  t.eq({ a }, paths())
  on('up@')
  t.eq({ directory }, paths())
  on('a.txt')
  t.eq({ a }, paths())
  vim.g.netrw_liststyle = nil
end)

it('of many equal entries each line is used once, and at most 200 lines are', function()
  local entries = t.list(1000, function(i) return { filename = a, lnum = i <= 500 and i % 2 + 1 or i } end)
  vim.fn.setqflist(entries)
  vim.cmd('copen')
  t.eq({ 2, 200 }, { #explorers.selected({ 1, 500 }), #explorers.selected({ 1, 1000 }) })
  vim.cmd('cclose')
end)

it('the user is told that only 200 marked files are used', function()
  package.loaded['nvim-tree.api'] = {
    marks = {
      list = function()
        return t.list(201, function(i) return { absolute_path = project.write(('many/%d'):format(i), '') } end)
      end,
    },
  }
  fill('NvimTree')
  notifications.collect()
  t.eq(200, #explorers.selected())
  notifications.wait('only the first 200 files')
  notifications.restore()
end)

it('the quickfix and location list have lines', function()
  vim.fn.setqflist({ { filename = a, lnum = 2 }, { text = 'no file' }, { filename = b } })
  vim.cmd('copen')
  t.eq({ { path = a, first = 2, last = 2 }, { path = b } }, explorers.selected({ 1, 3 }))
  vim.cmd('cclose')
  vim.fn.setloclist(0, { { filename = b, lnum = 1 } })
  vim.cmd('lopen')
  t.eq({ { path = b, first = 1, last = 1 } }, explorers.selected())
end)

it('other windows have none, and an explorer that fails has no files', function()
  t.eq(nil, explorers.selected())
  package.loaded.oil = { get_current_dir = function() error('broken') end }
  fill('oil')
  t.eq({}, explorers.selected())
  package.loaded.oil = nil
end)

local PICKERS = {
  TelescopePrompt = {
    open = function()
      require('telescope.builtin').find_files({ cwd = directory, find_command = { 'find', '.', '-type', 'f' } })
    end,
    mark_all = function() require('telescope.actions').select_all(vim.api.nvim_get_current_buf()) end,
    double = function()
      local entries = { { path = a, lnum = 2 }, { path = b } }
      package.loaded['telescope.from_entry'] = { path = function(entry) return entry.path end }
      local picker = { get_multi_selection = function() return marked and entries or {} end }
      package.loaded['telescope.actions.state'] = {
        get_current_picker = function() return picker end,
        get_selected_entry = function() return entries[1] end,
      }
    end,
  },
  snacks_picker_input = {
    open = function()
      require('snacks').setup({ picker = { enabled = true } })
      require('snacks').picker.files({ cwd = directory, cmd = 'find' })
    end,
    mark_all = function() require('snacks').picker.get()[1]:action('select_all') end,
    double = function()
      local picker = {
        selected = function() return { { file = a, pos = { 2, 0 } }, marked and { file = b } or nil } end,
      }
      local util = { path = function(item) return item.file end }
      package.loaded.snacks = { picker = { get = function() return { picker } end, util = util } }
    end,
  },
}

for filetype, case in vim.spairs(PICKERS) do
  it(filetype .. ' has the entry under the cursor, or what is marked', function()
    marked = nil
    if REAL == filetype then
      case.open()
      t.wait(function() return vim.bo.filetype == filetype and #explorers.selected() > 0 end, 5000, filetype)
    else
      case.double()
      fill(filetype)
      t.eq({ { path = a, first = 2, last = 2 } }, explorers.selected())
    end
    t.ok(#paths() == 1 and vim.list_contains({ a, b }, paths()[1]))
    marked = {}
    if REAL == filetype then
      t.wait(function()
        case.mark_all()
        return #paths() == 2
      end, 5000, 'both files')
    end
    local both = paths()
    table.sort(both)
    t.eq({ a, b }, both)
  end)
end
