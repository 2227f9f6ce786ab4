-- slow, every Neovim
-- For every bundled tool: the user does not notice that it ran. Window, cursor, view, mode, registers, alternate file,
-- search, jumps and the rest do not change.

local config = require('mcp-tools.config')
local editor = require('editor_project')
local every = require('every_tool')
local t = require('helpers')

--- Tools that show something to the user or run code, and the state that they may change. The list must stay short.
---@type table<string, string[]>
local MAY = {
  -- The selection is that of the visible file.
  editor_open = { 'layout', 'windows', 'current', 'alternate', 'jumps', 'buffers', 'selection' },
}

--- Arguments for tools that would do nothing with those from their schema.
---@type table<string, fun(world: table): table>
local MEANT = {
  file_edit = function(world)
    return { bufnr = world.bufnr, edits = { { search = 'line 20 of the sample', replace = 'changed' } } }
  end,
  file_save = function(world) return { bufnr = world.bufnr } end,
  change_revert = function(world) return { bufnr = world.bufnr, minutes = 60 } end,
  editor_quickfix = function() return { places = { 'sample.py:3: here' } } end,
  shell_run = function() return { argv = { 'true' } } end,
  shell_jobs = function() return { action = 'start', argv = { 'true' } } end,
  test_run = function() return { path = 'sample.py' } end,
  editor_command = function() return { command = 'let g:ran = 1' } end,
  editor_eval_lua = function() return { code = 'return 1' } end,
}

local world

--- A user in the middle of something.
local function sit_down()
  editor.open()
  local lines = t.lines(120, 'line %d of the sample')
  editor.write('scratch.txt', table.concat(lines, '\n') .. '\n')
  editor.write('aside.txt', 'first\nsecond\nthird\n')
  local path = editor.write('sample.py', table.concat(lines, '\n') .. '\n')
  vim.cmd('silent! only | enew')
  vim.cmd.edit(editor.root .. '/aside.txt')
  vim.cmd.edit(path)
  vim.cmd('normal! 50Gzt60G4lma')
  vim.cmd('vsplit | wincmd p')
  vim.fn.setreg('"', 'in the unnamed register')
  vim.fn.setreg('q', 'in a register')
  vim.fn.setreg('/', 'sample')
  vim.cmd('normal! 30GV32G' .. vim.keycode('<Esc>') .. '60G4l')
  vim.cmd('let v:searchforward = 0')
  vim.api.nvim_buf_set_lines(0, 99, 100, false, { 'an unsaved change' })
  world = {
    path = 'sample.py',
    uri = vim.uri_from_fname(path),
    glob = '*.py',
    other = 'other.py',
    word = 'sample',
    bufnr = vim.api.nvim_get_current_buf(),
  }
end

--- The state of the user.
local function state()
  local now = { windows = {}, registers = {}, jumps = {} }
  now.mode = vim.api.nvim_get_mode()
  now.current = { vim.api.nvim_get_current_tabpage(), vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf() }
  now.layout = { vim.fn.winlayout(), #vim.api.nvim_list_tabpages(), #vim.api.nvim_list_wins() }
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    now.windows[tostring(win)] = {
      vim.api.nvim_win_get_buf(win),
      vim.api.nvim_win_get_cursor(win),
      vim.api.nvim_win_call(win, vim.fn.winsaveview),
    }
    now.jumps[tostring(win)] = vim.fn.getjumplist(win)
  end
  for name in ('"abcdefghijklmnopqrstuvwxyz0123456789-/'):gmatch('.') do
    now.registers[name] = vim.fn.getreginfo(name)
  end
  now.alternate = vim.fn.bufnr('#')
  now.search = { vim.fn.getreg('/'), vim.v.searchforward, vim.v.hlsearch }
  now.selection = { vim.fn.visualmode(), vim.fn.getpos("'<"), vim.fn.getpos("'>") }
  now.history = { vim.fn.histnr(':'), vim.fn.histnr('/'), vim.fn.histnr('@') }
  now.buffers = vim.tbl_filter(function(bufnr) return vim.bo[bufnr].buflisted end, vim.api.nvim_list_bufs())
  now.cwd = vim.fn.getcwd()
  now.cmdline = { vim.fn.getcmdtype(), vim.fn.getcmdline() }
  return now
end

--- The state that has changed.
local function differences(before, now, tool)
  local list = {}
  for what, value in pairs(before) do
    if not vim.deep_equal(value, now[what]) and not vim.list_contains(MAY[tool] or {}, what) then
      local text = ('%s: %s changed from %s to %s'):format(tool, what, vim.inspect(value), vim.inspect(now[what]))
      table.insert(list, (text:gsub('%s+', ' ')))
    end
  end
  return list
end

---@param tool mcp-tools.Definition
---@return table[]
local function ways_of(tool)
  local ways = every.ways(tool.input_schema, world)
  local reads = tool.annotations and tool.annotations.read_only
  if not reads then -- the text that the person looks at is not what is to be lost
    ways = every.ways(tool.input_schema, vim.tbl_extend('force', world, { path = 'scratch.txt', bufnr = 0 }))
  end
  if MEANT[tool.name] then
    table.insert(ways, MEANT[tool.name](world))
  end
  return ways
end

describe('every tool', function()
  local limit = every.LIMIT

  before_each(function() every.LIMIT = 600 end)

  after_each(function()
    every.LIMIT = limit
    editor.close()
  end)

  it('does not change the state of the user', function()
    local noticed, fresh = {}, false
    editor.open()
    every.offer()
    for _, tool in ipairs(every.tools()) do
      local reads = tool.annotations and tool.annotations.read_only
      if not (fresh and reads) then
        config.reset()
        sit_down()
        every.offer()
      end
      local before = state()
      for _, args in ipairs(ways_of(tool)) do
        every.call(tool.name, args)
        vim.wait(0) -- what it left for the next turn
      end
      local found = differences(before, state(), tool.name)
      vim.list_extend(noticed, found)
      fresh = reads and #found == 0
      if not fresh then
        editor.close()
      end
    end
    t.eq('', table.concat(noticed, '\n'))
  end)

  it('except for a few', function() t.ok(vim.tbl_count(MAY) <= 5) end)
end)
