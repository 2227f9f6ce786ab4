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

--- A line that takes several slices; `seen` is called between them.
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
  before_each(function()
    path = vim.fn.tempname()
  end)

  local function new()
    return rotating_file.new({
      path = function()
        return path
      end,
      max_bytes = 1e6,
    })
  end

  it('makes a line that takes long in turns, and keeps the order', function()
    local file, turns, made = new(), 0, false
    file:add('first')
    file:add(slow(5, function()
      made = true
    end))
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
    t.wait(function()
      return #lines() == 2
    end)
    t.ok(turns >= 3, turns .. ' turns of others in between')
    file:add('last')
    t.wait(function()
      return #lines() == 3
    end)
    t.eq({ 'first', 'slow', 'last' }, lines())
  end)

  it('is moved aside once when several editors find it full', function()
    for round = 1, 100 do
      path = vim.fn.tempname()
      vim.fn.writefile({ ('x'):rep(99) }, path)
      local files = {}
      for i = 1, 4 do
        files[i] = rotating_file.new({
          path = function()
            return path
          end,
          max_bytes = 100,
        })
        files[i]:add(('editor %d'):format(i))
      end
      for _, file in ipairs(files) do
        file:flush()
      end
      t.wait(function()
        local kept = vim.uv.fs_stat(path .. '.1') and vim.fn.readfile(path .. '.1') or {}
        return #kept + #lines() >= 5
      end, 5000, ('all lines in round %d'):format(round))
      t.eq(('x'):rep(99), vim.fn.readfile(path .. '.1')[1])
      t.eq(nil, vim.uv.fs_stat(path .. '.lock'))
    end
  end)

  it('that is being made when the editor ends has all of them', function()
    local file, made = new(), 0
    file:add(slow(3, function()
      made = made + 1
    end))
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
