local ahead = require('mcp-tools.privacy.read_cache')
local project = require('editor_project')
local read = require('mcp-tools.privacy.read')
local t = require('helpers')

before_each(project.open)
after_each(project.close)

--- What is known once it is known.
local function known(path)
  local is_known = false
  local at_first = { ahead.get(path, function()
    is_known = true
  end) }
  t.wait(function()
    return is_known
  end, 2000, 'the file')
  return at_first, { ahead.get(path) }
end

describe('a file that is read ahead', function()
  it('is known a moment later, until it changes', function()
    local path = project.write('a.txt', 'one')
    local at_first, then_ = known(path)
    t.eq({ { nil, 'the file is being read', ahead.READING }, { 'one' } }, { at_first, then_ })
    project.write('a.txt', 'other')
    t.eq({ 'other' }, select(2, known(path)))
    vim.uv.fs_unlink(path)
    t.eq({ nil, 'ENOENT' }, { then_[2], select(2, known(path))[3] })
  end)

  it('is none that waits for a writer, nor one that is too large', function()
    local pipe = project.root .. '/pipe'
    t.eq(0, vim.system({ 'mkfifo', pipe }):wait().code)
    t.matches('is a fifo, not a file', select(2, known(pipe))[2])
    local large = project.write('large', ('x'):rep(ahead.MAX_BYTES + 1))
    t.matches('the limit is', select(2, known(large))[2])
  end)

  it('on a disk that does not answer holds up nobody for more than a second', function()
    local real, stuck = read.read, nil
    read.read = function(_, _, cb)
      stuck = cb
    end
    ahead.get(project.write('b.txt', 'one'))
    t.ok(ahead.is_reading())
    local count = 0
    ahead.once_read(function()
      count = count + 1
    end)
    t.wait(function()
      return count == 1
    end, 3000, 'the end of patience')
    stuck('one')
    read.read = real
    t.eq({ 1, false }, { count, ahead.is_reading() })
  end)
end)
