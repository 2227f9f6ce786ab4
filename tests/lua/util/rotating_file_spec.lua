local rotating_file = require('mcp-tools.util.rotating_file')
local t = require('helpers')

local uv = vim.uv
local path

local function lines()
  local fd = io.open(path)
  local text = fd and fd:read('*a') or ''
  if fd then
    fd:close()
  end
  return vim.split(text, '\n', { trimempty = true })
end

--- A line that is formatted in slices; `seen` is called between them.
local function slow(slices, seen)
  return function(pause)
    for _ = 1, slices do
      local begun = uv.hrtime()
      while uv.hrtime() - begun < 5e6 do
      end
      pause()
    end
    seen()
    return 'slow'
  end
end

describe('a file of lines', function()
  before_each(function() path = vim.fn.tempname() end)

  local function new(max_bytes)
    local function path_of() return path end
    return rotating_file.new({ path = path_of, max_bytes = max_bytes or 1e6 })
  end

  it('formats a long line in slices, and keeps the order', function()
    local file, turns, made = new(), 0, false
    file:add('first')
    file:add(slow(5, function() made = true end))
    local function turn()
      if not made then
        turns = turns + 1
        vim.defer_fn(turn, 0)
      end
    end
    vim.schedule(function()
      file:flush()
      turn()
    end)
    t.wait(function() return #lines() == 2 end)
    t.ok(turns >= 3, turns .. ' turns of others in between')
    file:add('last')
    t.wait(function() return #lines() == 3 end)
    t.eq({ 'first', 'slow', 'last' }, lines())
  end)

  it('is rotated by one editor at a time', function()
    local function full()
      vim.fn.writefile({ ('x'):rep(99) }, path)
      local file = new(100)
      file:add('new')
      file:flush()
      t.wait(function()
        local last = lines()
        return last[#last] == 'new'
      end, 5000)
      return #lines()
    end
    vim.fn.writefile({}, path .. '.lock') -- another editor is at it
    t.eq(2, full())
    vim.uv.fs_utime(path .. '.lock', 1, 1) -- it died
    t.eq({ 2, 1, { ('x'):rep(99) } }, { full(), (full()), (vim.fn.readfile(path .. '.1')) })
    t.eq(nil, vim.uv.fs_stat(path .. '.lock'))
  end)

  it('contains the lines that are pending when the editor exits', function()
    local file, made = new(), 0
    file:add(slow(3, function() made = made + 1 end))
    file:watch_leave()
    file:flush()
    t.eq(0, made)
    vim.api.nvim_exec_autocmds('VimLeave', {})
    t.eq({ 'slow' }, lines())
    t.wait(function()
      return made == 2 -- the one that was begun comes to its end as well, and to nothing
    end)
    t.eq({ 'slow' }, lines())
  end)
end)
