-- slow
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('editor_project')
local read = require('mcp-tools.privacy.read')
local t = require('helpers')

project.each(nil, function()
  config.setup({ tools = { 'buffer', 'file', 'analyze_python' } })
  core.get()
end)

--- Reads a file and waits for it.
local function text_of(...)
  local args, got = { ... }, nil
  table.insert(args, 3, function(...) got = { ... } end)
  read.read(unpack(args))
  t.wait(function() return got end)
  return got[1], got[2]
end

local function lines_of(path, first, last, max_bytes)
  local got
  local range = { first = first, last = last, max_bytes = max_bytes or 1e9 }
  read.lines(path, 64 * 1024 * 1024, range, function(...) got = { ... } end)
  t.wait(function() return got end, 10000)
  return got[1], got[2]
end

describe('a file', function()
  it('is not read when it is not the one that was checked', function()
    local path = project.write('directory/a.txt', 'inside')
    project.write(project.base .. '/outside/a.txt', 'outside')
    t.eq('inside', (text_of(path, 100)))
    vim.uv.fs_rename(project.root .. '/directory', project.root .. '/moved')
    vim.uv.fs_symlink(project.base .. '/outside', project.root .. '/directory')
    t.fails('access_denied', nil, text_of(path, 100))
    vim.uv.fs_symlink(project.base .. '/outside/a.txt', project.root .. '/link.txt')
    t.eq(nil, (text_of(project.root .. '/link.txt', 100)))
    local function is_meant(real) return real == project.base .. '/outside/a.txt' end
    t.eq('outside', (text_of(project.root .. '/link.txt', 100, is_meant)))
  end)

  it('can have a name that looks deleted', function() t.eq('x', (text_of(project.write('a (deleted)', 'x'), 100))) end)

  it('outside is never read while a directory is replaced by a link and back', function()
    local script = project.write(
      'swap.py',
      [[
import os, random, sys, time
root, outside = sys.argv[1:]
print("ready", flush=True)
while True:
    os.rename(f"{root}/d", f"{root}/e")
    os.symlink(outside, f"{root}/d")
    time.sleep(random.random() / 2000)
    os.unlink(f"{root}/d")
    os.rename(f"{root}/e", f"{root}/d")
    time.sleep(random.random() / 1000)
]]
    )
    project.write('d/a.py', 'inside = 1\n')
    project.write(project.base .. '/outside/a.py', 'outside = 1\n')
    config.setup({ approval = { timeout = 1000 } })
    core.get().gateway.ask = function(_, answer) answer(nil, { code = 'access_denied', message = 'no' }, 'nobody') end
    local ready = false
    local swapper = vim.system({ 'python3', script, project.root, project.base .. '/outside' }, {
      stdout = function() ready = true end,
    })
    t.wait(function() return ready end, 5000)
    local path, seen = project.root .. '/d/a.py', { inside = 0, outside = 0, error = 0 }
    -- One process may get no turn while the other has its own.
    local enough = vim.uv.hrtime() + 20e9
    local round = 0
    while round < 20 or (seen.inside == 0 or seen.error == 0) and vim.uv.hrtime() < enough do
      round = round + 1
      local calls = {}
      for _ = 1, 20 do
        for _, way in ipairs({
          { 'resource', 'file://' .. path },
          { 'tool', 'file_read', { path = path } },
          { 'prompt', 'analyze_module', { path = path } },
        }) do
          table.insert(calls, core.get().executor:execute(way[2], way[3] or {}, { kind = way[1], host = 'test' }))
        end
      end
      t.wait(function()
        return vim.iter(calls):all(function(call) return call:ended() end)
      end, 10000, 'round ' .. round)
      for _, call in ipairs(calls) do
        local text = call.outcome.payload and call.outcome.payload.text
        local key = not text and 'error' or text:find('outside', 1, true) and 'outside' or 'inside'
        seen[key] = seen[key] + 1
      end
    end
    swapper:kill('sigkill')
    swapper:wait()
    t.eq(0, seen.outside)
    t.ok(seen.inside > 0 and seen.error > 0, vim.inspect(seen))
  end)
end)

describe('lines of a file', function()
  --- The lines of a plain split.
  local function expected(text, first, last)
    local all = vim.split(text, '\n', { plain = true })
    if all[#all] == '' and #all > 1 then
      table.remove(all)
    end
    return vim.list_slice(all, first, math.min(last, #all)), #all
  end

  it('are the same in slices as in the whole text', function()
    local long = ('x'):rep(65535)
    local texts = { '', '\n', '\n\n', 'a', 'a\n', 'a\n\n', '\na', 'a\nb\nc', ('line\n'):rep(40000) }
    vim.list_extend(texts, { long, long .. '\n', long .. 'y\nz', long .. '\n\n' .. long .. '\n' .. long })
    for _, text in ipairs(texts) do
      local path = project.write('lines.txt', text)
      for _, range in ipairs({ { 1, 1 }, { 1, 3 }, { 2, 2 }, { 3, 1e9 }, { 13107, 13109 }, { 1, 1e9 } }) do
        local lines, total = lines_of(path, range[1], range[2])
        local want, count = expected(text, range[1], range[2])
        t.eq({ range, #text, count, want }, { range, #text, total, lines })
      end
    end
  end)

  it('are limited in bytes', function()
    local path = project.write('lines.txt', ('x'):rep(100) .. '\n' .. ('abc\n'):rep(100))
    local lines, total = lines_of(path, 1, 1e9, 10)
    t.eq({ { ('x'):rep(11) }, 101 }, { lines, total })
    lines, total = lines_of(path, 2, 1e9, 10)
    t.eq({ { 'abc', 'abc', 'abc' }, 101 }, { lines, total })
  end)

  it('of a large file do not block the main thread', function()
    local path = project.write('large.txt', ('some line of a text\n'):rep(1600000))
    local check_turns = t.watch_turns()
    local made = core.get().executor:execute('file_read', { path = path, start_line = 800000, limit = 2 }, {
      host = 'test',
    })
    t.ended(made, 20000)
    check_turns()
    t.eq('some line of a text\nsome line of a text', made.outcome.value.text)
    t.eq({ 1600000, 800002 }, { made.outcome.value.lines, made.outcome.value.next_line })
  end)
end)

describe('a file in the read cache', function()
  project.each()

  --- The first result and the one after the file was read.
  local function known(path)
    local is_known = false
    local at_first = { read.cached(path, function() is_known = true end) }
    t.wait(function() return is_known end, 2000, 'the file')
    return at_first, { read.cached(path) }
  end

  it('is available a moment later, until it changes', function()
    local path = project.write('a.txt', 'one')
    local at_first, then_ = known(path)
    t.eq({ { nil, 'the file is being read', read.READING }, { 'one' } }, { at_first, then_ })
    project.write('a.txt', 'other')
    t.eq({ 'other' }, select(2, known(path)))
    local mtime = vim.uv.fs_stat(path).mtime
    vim.uv.fs_utime(project.write('a.txt', 'OTHER'), mtime.sec, mtime.sec)
    t.eq({ 'OTHER' }, select(2, known(path)))
    project.write('a.txt', 'third') -- in place, with its earlier time
    vim.uv.fs_utime(path, mtime.sec, mtime.sec)
    t.eq({ 'third' }, select(2, known(path)))
    vim.uv.fs_unlink(path)
    t.eq({ nil, 'ENOENT' }, { then_[2], select(2, known(path))[3] })
  end)

  it('is an error for a fifo, or when it is too large', function()
    local pipe = project.root .. '/pipe'
    t.eq(0, vim.system({ 'mkfifo', pipe }):wait().code)
    t.matches('is a fifo, not a file', select(2, known(pipe))[2])
    local large = project.write('large', ('x'):rep(read.MAX_CACHED + 1))
    t.matches('the limit is', select(2, known(large))[2])
  end)

  it('on a disk that does not answer delays a call by a second at most', function()
    local real, stuck = read.read, nil
    read.read = function(_, _, cb) stuck = cb end
    read.cached(project.write('b.txt', 'one'))
    t.ok(read.is_reading())
    local count = 0
    read.once_read(function() count = count + 1 end)
    t.wait(function() return count == 1 end, 3000, 'the end of patience')
    stuck('one')
    read.read = real
    t.eq({ 1, false }, { count, read.is_reading() })
  end)
end)
