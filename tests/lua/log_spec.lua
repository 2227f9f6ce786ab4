-- slow, every Neovim
local notifications = require('notifications')
local t = require('helpers')
local config = require('mcp-tools.config')
local log = require('mcp-tools.log')

local function content()
  local ok, lines = pcall(vim.fn.readfile, log.path())
  return ok and table.concat(lines, '\n') or ''
end

--- Waits until the file has a text.
local function is_written(text)
  t.wait(function() return content():find(text, 1, true) end)
end

describe('log', function()
  before_each(config.reset)

  it('appends lines in order, with level and process, readable by the owner only', function()
    log.info('number %d', 1)
    log.warn('100%')
    log.error('two\nlines')
    is_written('lines')
    t.matches('INFO  %[' .. vim.uv.os_getpid() .. '%] number 1\n.*WARN .* 100%%\n.*ERROR .* two\n    lines', content())
    t.eq('600', ('%o'):format(bit.band(vim.uv.fs_stat(log.path()).mode, tonumber('777', 8))))
  end)

  it('omits messages below the level', function()
    log.debug('too fine')
    config.setup({ bridge = { log_level = 'debug' } })
    log.debug('fine enough')
    is_written('fine enough')
    t.ok(not content():find('too fine', 1, true))
  end)

  it('escapes control characters', function()
    log.warn('%s', 'a\27]0;b\7\r\0\127\194\155c\td\194\160e')
    is_written('<U+001B>]0;b<U+0007><U+000D><U+0000><U+007F><U+009B>c\td\194\160e')
  end)

  it('writes a line of many blanks in little time', function()
    t.fast(log.info, '%s', 'a' .. (' '):rep(32 * 1024) .. 'b' .. ('\n '):rep(16 * 1024))
    t.matches('a +b$', log.lines(1)[1])
  end)

  it('never contains a secret', function()
    log.hide('5ecre7-%d-token')
    log.error('%s', 'Authorization: 5ecre7-%d-token!')
    is_written('<hidden>!')
    t.ok(not content():find('5ecre7', 1, true) and not table.concat(log.lines()):find('5ecre7', 1, true))
  end)

  it('can be used in a fast callback', function()
    local timer = assert(vim.uv.new_timer())
    timer:start(0, 0, function()
      timer:close()
      log.info('from a fast callback')
    end)
    is_written('from a fast callback')
  end)

  it('is moved aside when it is full, and one old file is kept', function()
    local fd = assert(vim.uv.fs_open(log.path(), 'w', 384))
    vim.uv.fs_ftruncate(fd, 10 * 1024 * 1024)
    vim.uv.fs_close(fd)
    log.info('first of the new file')
    t.wait(function()
      local stat = vim.uv.fs_stat(log.path())
      return stat and stat.size > 0 and stat.size < 1000
    end)
    t.eq(10 * 1024 * 1024, vim.uv.fs_stat(log.path() .. '.1').size)
    os.remove(log.path() .. '.1')
  end)

  it('reads the end of the file', function()
    log.info('the last line')
    is_written('the last line')
    local lines
    log.tail(200, function(got) lines = got end)
    t.wait(function() return lines end)
    t.matches('the last line$', lines[#lines])
    t.eq(1, #log.lines(1))
    t.matches('the last line$', log.lines(1)[1])
  end)

  it('redacts tokens in a known format', function()
    log.info('a ghp_abcdefghijklmnopqrstuvwxyz0123456789 of https://me:pass@host and Bearer abc')
    t.matches('a %[secret%] of https://%[secret%]@host and Bearer %[secret%]$', log.lines(1)[1])
  end)

  it('truncates a very long line, and cuts no secret in two', function()
    log.error('it threw: %s', ('word '):rep(1024 * 1024))
    local line = log.lines(1)[1]
    t.ok(#line < 65 * 1024, ('the line has %d bytes'):format(#line))
    t.matches('it threw: word word .*… %(5242889 bytes%)$', line)
    for before = 68 * 1024 - 60, 68 * 1024, 4 do
      log.info('%s', ('x '):rep(before / 2) .. 'https://me:password@host ' .. ('y'):rep(9000))
      t.eq(nil, log.lines(1)[1]:find('passw', 1, true))
    end
  end)
end)

describe('notify', function()
  local notify = require('mcp-tools.notify')

  notifications.each()

  it('shows and logs a message, also with a notification plugin that is a callable table', function()
    for _, is_table in ipairs({ false, true }) do
      notifications.collect(nil, is_table)
      notify.warn('careful', 'look')
      notifications.wait('[mcp-tools] careful. Look')
      local shown = { text = '[mcp-tools] careful. Look', level = vim.log.levels.WARN, title = 'mcp-tools' }
      t.eq(shown, notifications.list[1])
      t.matches('WARN .*careful', log.lines(1)[1])
    end
  end)

  it('shows a message once, until it is forgotten', function()
    notify.once('matter', 'info', 'a')
    notify.once('matter', 'info', 'a')
    notify.once('matter', 'info', 'b')
    notify.forget('matter')
    notify.once('matter', 'info', 'b')
    t.wait(function() return #notifications.list == 3 end)
  end)

  it('survives a notification plugin that throws', function()
    notifications.collect('broken plugin')
    notify.error('important')
    t.wait(function() return table.concat(log.lines(2), '\n'):find('broken plugin', 1, true) end)
  end)
end)

describe('log.guard', function()
  it('returns the results of a function and passes its arguments', function()
    t.eq({ true, 3, nil, 'x' }, { log.guard('adding', function(a, b) return a + b, nil, 'x' end, 1, 2) })
  end)

  it('logs its error with the place', function()
    local ok = log.guard('the thing', function() error('boom') end)
    t.eq(false, ok)
    t.matches('the thing failed: .*log_spec%.lua:%d+: boom\n.*stack traceback', log.lines(1)[1])
  end)
end)
