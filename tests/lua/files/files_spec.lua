local lock_file = require('mcp-tools.util.lock')
local mime = require('mcp-tools.files.mime')
local t = require('helpers')

describe('a lock', function()
  local base = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/lock-spec'
  local path = base .. '/x.lock'

  local function age(seconds)
    local at = os.time() - seconds
    vim.uv.fs_utime(path, at, at)
  end

  before_each(function() vim.fn.mkdir(base, 'p') end)

  after_each(function() vim.fn.delete(base, 'rf') end)

  it('is held by one owner at a time', function()
    local mine = t.ok(lock_file.take(path))
    t.eq({ { nil, nil }, true }, { { lock_file.take(path) }, (mine:is_held()) })
    mine:release()
    t.eq(nil, vim.uv.fs_stat(path))
    t.ok(lock_file.take(path))
  end)

  it('that its owner left behind is removed after a while', function()
    for _, seconds in ipairs({ 10, -10 }) do
      local dead = t.ok(lock_file.take(path))
      age(seconds)
      t.eq(nil, (lock_file.take(path)))
      local mine = t.ok(lock_file.take(path))
      t.eq({ false, true }, { dead:is_held(), mine:is_held() })
      dead:release() -- it slept, and has nothing to give back
      t.eq(true, mine:is_held())
      mine:release()
    end
    t.eq({}, vim.fn.readdir(base))
  end)

  it('that was replaced by something else is lost, and is not awaited', function()
    local mine = t.ok(lock_file.take(path))
    assert(vim.uv.fs_unlink(path))
    vim.fn.system({ 'mkfifo', path })
    t.eq(false, mine:is_held())
    age(10)
    t.eq({ nil, true }, { (lock_file.take(path)), (t.ok(lock_file.take(path)):is_held()) })
  end)

  it('in use is not removed', function()
    local mine = t.ok(lock_file.take(path))
    age(1)
    lock_file.take(path)
    t.eq(true, mine:is_held())
  end)

  it('in a missing directory returns an error', function()
    local lock, err = lock_file.take(base .. '/nowhere/x.lock')
    t.eq(nil, lock)
    t.matches('cannot write', err)
  end)
end)

describe('media types', function()
  it('are text or binary', function()
    for _, text in ipairs({
      'text/plain',
      'TEXT/HTML; charset=utf-8',
      'application/json',
      'application/vnd.api+json',
      'image/svg+xml',
      'application/x-yaml ;a=b',
      'application/javascript',
      'application/x-ndjson',
      'application/ecmascript',
    }) do
      t.ok(mime.is_text_mime(text), text)
    end
    for _, other in ipairs({
      'image/png',
      'application/octet-stream',
      'application/jsonx',
      'textual/plain',
      'text/',
      'application/pdf+',
      '',
      'json',
    }) do
      t.ok(not mime.is_text_mime(other), other)
    end
    t.ok(not mime.is_text_mime(nil) and not mime.is_text_mime(5))
  end)

  it('follow from the name, unless the bytes differ', function()
    t.eq({ 'image/png', 'text/plain' }, { mime.of_file('a/b.PNG', 'x'), (mime.of_file('/a.b/c.json')) })
    t.eq('text/plain', mime.of_file('Makefile', 'all:\n'))
    t.eq('application/octet-stream', mime.of_file('thing', 'a\0b'))
    t.eq('application/octet-stream', mime.of_file('not-really.lua', '\27LJ\0'))
  end)
end)
