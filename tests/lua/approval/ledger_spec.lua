local Ledger = require('mcp-tools.approval.ledger')
local origin = require('mcp-tools.registry.source')
local notifications = require('notifications')
local t = require('helpers')

local base = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/ledger-spec'
local state, root = base .. '/state', base .. '/project'

local function new_ledger() return Ledger.new({ dir = t.returns(state) }) end

local function definition(changes)
  return vim.tbl_deep_extend('force', {
    name = 'x',
    description = 'does x',
    input_schema = { type = 'object', properties = { n = { type = 'integer' } } },
    annotations = { destructive = true },
    source = { origin = 'registered', file = '/opt/plugin.lua' },
  }, changes or {})
end

local function file() return state .. '/ledger/' .. vim.fn.sha256(root):sub(1, 32) .. '.json' end

local function write(text, mode)
  local fd = assert(vim.uv.fs_open(file(), 'w', mode or 384))
  vim.uv.fs_write(fd, text)
  vim.uv.fs_close(fd)
  vim.uv.fs_chmod(file(), mode or 384)
end

local function mode_of(path) return ('%o'):format(bit.band(assert(vim.uv.fs_stat(path)).mode, 511)) end

--- The verdict that another editor of the same project, or the next one, reads.
local function look(def, where) return new_ledger():verdict(where or root, def or definition()) end

describe('the ledger', function()
  before_each(function()
    vim.fn.mkdir(root, 'p')
    t.ok(new_ledger():set(root, definition(), 'trusted'))
  end)

  after_each(function() vim.fn.delete(base, 'rf') end)

  it('has a file per project that only this user can read', function()
    t.eq({ 'trusted', {} }, { look().level, (look(nil, base .. '/other')) })
    t.eq({ '600', '700', '700' }, { mode_of(file()), mode_of(state), mode_of(state .. '/ledger') })
    t.eq({}, vim.fn.glob(state .. '/ledger/*.tmp', true, true))
  end)

  it('trusts a definition, not a name', function()
    for field, change in pairs({
      description = { description = 'does y' },
      title = { title = 'y' },
      schema = { input_schema = { properties = { path = { type = 'string' } } } },
      default = { input_schema = { properties = { n = { default = 1 } } } },
      output = { output_schema = { type = 'object' } },
      annotations = { annotations = { destructive = false } },
      file = { source = { file = '/opt/other.lua' } },
      origin = { source = { origin = 'mounted', name = 'm' } },
    }) do
      t.eq({ field, true }, { field, look(definition(change)).changed })
    end
    t.eq({}, look(definition({ name = 'y' })))
  end)

  it('denies a name, whatever its definition becomes', function()
    t.ok(new_ledger():set(root, definition(), 'denied'))
    t.eq('denied', look(definition({ description = 'harmless now' })).level)
    t.eq('denied', look(definition({ source = { file = '/opt/other.lua' } })).level)
    t.ok(new_ledger():set(root, definition({ description = 'harmless now' }), 'trusted'))
    t.eq({ 'trusted', true }, { look(definition({ description = 'harmless now' })).level, look().changed })
  end)

  it('adds files to a decision, and forgets both', function()
    t.ok(new_ledger():set(root, definition(), 'files', { '/a' }))
    t.ok(new_ledger():set(root, definition(), 'files', { '/b' }))
    t.eq({ 'trusted', { '/b', '/a' } }, { look().level, look().paths })
    t.ok(new_ledger():set(root, definition({ name = 'y' }), 'files', { '/a' }))
    t.eq('files', look(definition({ name = 'y' })).level)
    t.ok(new_ledger():set(root, definition()))
    t.eq({}, look())
    t.ok(new_ledger():reset(root))
    t.eq({}, look(definition({ name = 'y' })))
  end)

  it('rereads what another editor has written', function()
    local mine = new_ledger()
    t.eq('trusted', mine:verdict(root, definition()).level)
    t.ok(new_ledger():set(root, definition({ name = 'y' }), 'trusted'))
    t.ok(new_ledger():set(root, definition(), 'denied'))
    mine.projects[root].checked_at = 0 -- a second later
    t.eq('denied', mine:verdict(root, definition()).level)
    t.ok(mine:set(root, definition({ name = 'z' }), 'trusted'))
    t.eq({ 'trusted', 'denied' }, { look(definition({ name = 'y' })).level, look().level })
  end)

  it('has no verdict when its file is damaged', function()
    local good = table.concat(vim.fn.readfile(file()))
    for name, text in pairs({
      empty = '',
      cut = good:sub(1, -20),
      list = '[]',
      version = (good:gsub('"version":%s*1', '"version":2')),
      project = (good:gsub('project', 'elsewhere')),
      level = (good:gsub('"trusted"', '"godlike"')),
      hash = (good:gsub('"hash":%s*"%x+"', '"hash":null')),
      entry = (good:gsub('"entries":%s*%[', '"entries":[7,')),
      names = (good:gsub('"entries":%s*%[(.*)%]', '"entries":{"a":%1}')),
      paths = (good:gsub('"level"', '"paths":["/a",7],"level"')),
      long = good .. (' '):rep(1024 * 1024) .. 'x',
    }) do
      write(text)
      local verdict, fault = look()
      t.eq({ name, nil }, { name, verdict })
      t.matches('damaged', fault)
      t.eq(false, (new_ledger():set(root, definition({ name = 'y' }), 'trusted')))
    end
    t.ok(new_ledger():reset(root))
    t.eq({}, look())
  end)

  it('does not read a path that is not a file, and tells what to do', function()
    local ledger = new_ledger()
    t.eq(true, ledger:can_reset(root))
    for kind, make in pairs({
      fifo = function() assert(vim.fn.system({ 'mkfifo', '-m', '600', file() }) == '') end,
      link = function() assert(vim.uv.fs_symlink(base .. '/nowhere', file())) end,
      directory = function() assert(vim.uv.fs_mkdir(file(), 448)) end,
    }) do
      vim.fn.delete(file(), 'rf')
      make()
      local began = vim.uv.hrtime()
      local verdict, fault = look()
      t.eq({ kind, nil }, { kind, verdict })
      t.matches(('is a %s'):format(kind), fault)
      for _, change in ipairs({ 'set', 'reset' }) do
        local ok, err = new_ledger()[change](new_ledger(), root, definition(), 'denied')
        t.eq({ change, false }, { change, ok })
        t.matches('move it away', err)
      end
      t.eq(false, new_ledger():can_reset(root))
      t.ok(vim.uv.hrtime() - began < 10e9)
      t.eq(nil, vim.uv.fs_stat(base .. '/nowhere'))
    end
  end)

  it('that is full accepts nothing more, and keeps what it has', function()
    local ledger, err = new_ledger(), nil
    assert(ledger:set(root, definition({ name = 'never' }), 'denied'))
    for i = 1, 1000 do
      local paths = t.list(100, function(j) return ('/%s/%d/%d'):format(('p'):rep(3000), i, j) end)
      local ok
      ok, err = ledger:set(root, definition({ name = 'x' .. i }), 'files', paths)
      if not ok then
        t.ok(i > 20, 'many tools have room: ' .. i)
        break
      end
    end
    t.matches('is full: ', err)
    t.eq({ 'denied', 'files' }, { look(definition({ name = 'never' })).level, look(definition({ name = 'x1' })).level })
    t.eq({}, look(definition({ name = 'another' })))
    t.ok(ledger:set(root, definition({ name = 'x1' }), nil))
    t.ok(ledger:set(root, definition({ name = 'x2' }), 'denied'))
  end)

  it('works for a directory whose name is not UTF-8', function()
    local odd = root .. '/a\255b"\n'
    t.ok(new_ledger():set(odd, definition(), 'files', { '/x\254' }))
    t.eq({ 'files', { '/x\254' } }, { look(nil, odd).level, look(nil, odd).paths })
  end)

  it('has no verdict when other users could have written the file', function()
    local function distrusts(pattern)
      local verdict, fault = look()
      t.eq(nil, verdict)
      t.matches(pattern, fault)
      t.eq(false, (new_ledger():set(root, definition(), 'trusted')))
    end
    vim.uv.fs_chmod(file(), tonumber('666', 8))
    distrusts('other users')
    t.eq(false, (new_ledger():reset(root)))
    vim.uv.fs_chmod(file(), tonumber('600', 8))
    vim.uv.fs_rename(file(), base .. '/mine.json')
    vim.uv.fs_symlink(base .. '/mine.json', file())
    distrusts('link')
    vim.uv.fs_unlink(file())
    vim.uv.fs_rename(base .. '/mine.json', file())
    vim.uv.fs_chmod(state .. '/ledger', tonumber('777', 8))
    distrusts('other users')
    vim.uv.fs_chmod(state .. '/ledger', tonumber('700', 8))
    vim.uv.fs_chown(file(), 12345, 12345) -- works only for root
    if vim.uv.fs_stat(file()).uid == 12345 then
      distrusts('another user')
    end
  end)
end)

describe('while another editor writes', function()
  local lock_file = require('mcp-tools.util.lock')
  local lock

  before_each(function()
    vim.fn.mkdir(root, 'p')
    t.ok(new_ledger():set(root, definition({ name = 'old' }), 'trusted'))
    lock = t.ok(lock_file.take(file() .. '.lock'))
  end)

  after_each(function()
    lock:release()
    vim.fn.delete(base, 'rf')
  end)

  it('a decision applies immediately and is written later', function()
    local mine = new_ledger()
    t.ok(mine:set(root, definition(), 'denied'))
    t.ok(mine:set(root, definition({ name = 'y' }), 'files', { '/a' }))
    t.eq({ 'denied', {} }, { mine:verdict(root, definition()).level, (look()) })
    lock:release()
    t.wait(function() return look().level == 'denied' end)
    t.eq({ '/a' }, look(definition({ name = 'y' })).paths)
    t.eq({ 'trusted', {} }, { look(definition({ name = 'old' })).level, mine.waiting })
  end)

  it('a file that has become damaged is not overwritten', function()
    local mine = new_ledger()
    t.ok(mine:set(root, definition(), 'trusted'))
    write('nonsense')
    lock:release()
    t.wait(function() return next(mine.waiting) == nil end)
    t.eq({ { 'nonsense' }, nil }, { vim.fn.readfile(file()), (mine:verdict(root, definition())) })
  end)

  it('a write that fails does not block the next ones', function()
    notifications.collect()
    local mine, text = new_ledger(), table.concat(vim.fn.readfile(file()))
    write((text:gsub('"at":%s*%d+', '"at":1e999'))) -- a number that cannot be written again
    t.ok(mine:set(root, definition(), 'trusted'))
    lock:release()
    t.wait(function() return next(mine.waiting) == nil end)
    notifications.wait('your decision was not saved')
    notifications.restore()
    write(text)
    t.ok(mine:set(root, definition(), 'denied'))
    t.eq('denied', look().level)
  end)

  it('a stale lock is ignored', function()
    t.ok(new_ledger():set(root, definition(), 'trusted'))
    local long_ago = os.time() - 60
    vim.uv.fs_utime(file() .. '.lock', long_ago, long_ago)
    t.wait(function() return look().level == 'trusted' end)
  end)
end)

describe('the source of a definition', function()
  local project = base .. '/project'

  local function is_trusted(source, at) return origin.is_trusted({ name = 'x', source = source }, at or project) end

  before_each(function()
    vim.fn.mkdir(project .. '/lua', 'p')
    vim.fn.mkdir(base .. '/plugin', 'p')
    vim.fn.writefile({}, project .. '/lua/tools.lua')
    vim.fn.writefile({}, base .. '/plugin/tools.lua')
  end)

  after_each(function() vim.fn.delete(base, 'rf') end)

  it('is trusted, unless it is the project or another server', function()
    local inside, outside = project .. '/lua/tools.lua', base .. '/plugin/tools.lua'
    for _, case in ipairs({
      { true, { origin = 'registered' } },
      { true, { origin = 'registered', file = outside } },
      { true, { origin = 'bundled', file = inside } },
      { false, { origin = 'registered', file = inside } },
      { false, { origin = 'registered', file = 'lua/nowhere.lua' } },
      { false, { origin = 'mounted', name = 'm' } },
      { false, { origin = 'something new' } },
    }) do
      t.eq(case, { is_trusted(case[2]), case[2] })
    end
  end)

  it("is trusted in the user's configuration, even if the project is the home directory", function()
    local config = vim.fn.stdpath('config')
    vim.fn.mkdir(config, 'p')
    vim.fn.writefile({}, config .. '/tools.lua')
    local source = { origin = 'registered', file = config .. '/tools.lua' }
    t.eq(true, is_trusted(source, vim.uv.fs_realpath(vim.fs.dirname(config))))
    t.eq(false, is_trusted(source, vim.uv.fs_realpath(config)))
  end)
end)
