local t = require('helpers')
local config = require('mcp-tools.config')
local log = require('mcp-tools.log')

local function content()
  local ok, lines = pcall(vim.fn.readfile, log.path())
  return ok and table.concat(lines, '\n') or ''
end

describe('log', function()
  before_each(function()
    config.reset()
  end)

  it('appends lines in order, with level and process, readable by the owner only', function()
    log.info('number %d', 1)
    log.warn('100%')
    log.error('two\nlines')
    t.wait(function()
      return content():find('lines', 1, true)
    end)
    t.matches('INFO  %[' .. vim.uv.os_getpid() .. '%] number 1\n.*WARN .* 100%%\n.*ERROR .* two\n    lines', content())
    t.eq('600', ('%o'):format(bit.band(vim.uv.fs_stat(log.path()).mode, tonumber('777', 8))))
  end)

  it('leaves out what lies below the level', function()
    log.debug('too fine')
    config.setup({ bridge = { log_level = 'debug' } })
    log.debug('fine enough')
    t.wait(function()
      return content():find('fine enough', 1, true)
    end)
    t.ok(not content():find('too fine', 1, true))
  end)

  it('never writes a secret', function()
    log.hide('5ecre7-%d-token')
    log.error('%s', 'Authorization: 5ecre7-%d-token!')
    t.wait(function()
      return content():find('<hidden>!', 1, true)
    end)
    t.ok(not content():find('5ecre7', 1, true))
    t.ok(not table.concat(log.lines()):find('5ecre7', 1, true))
  end)

  it('can be used in a fast callback', function()
    local timer = assert(vim.uv.new_timer())
    timer:start(0, 0, function()
      timer:close()
      log.info('from a fast callback')
    end)
    t.wait(function()
      return content():find('from a fast callback', 1, true)
    end)
  end)

  it('moves a full file aside and keeps one', function()
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
    t.wait(function()
      return content():find('the last line', 1, true)
    end)
    local lines
    log.tail(200, function(got)
      lines = got
    end)
    t.wait(function()
      return lines
    end)
    t.matches('the last line$', lines[#lines])
    t.eq(1, #log.lines(1))
    t.matches('the last line$', log.lines(1)[1])
  end)
end)

describe('notify', function()
  local notify = require('mcp-tools.notify')
  local shown
  local original = vim.notify

  before_each(function()
    shown = {}
    -- vim.notify is made to be replaced: this is what a notification plugin does.
    vim.notify = function(text, level, opts)
      table.insert(shown, { text, level, opts.title })
    end
  end)

  after_each(function()
    vim.notify = original
  end)

  it('shows, with a title, and logs', function()
    notify.warn('careful')
    t.wait(function()
      return #shown == 1
    end)
    t.eq({ '[mcp-tools] careful', vim.log.levels.WARN, 'mcp-tools' }, shown[1])
    t.matches('WARN .*careful', log.lines(1)[1])
  end)

  it('says the same thing once, until it is forgotten', function()
    notify.once('matter', 'info', 'a')
    notify.once('matter', 'info', 'a')
    notify.once('matter', 'info', 'b')
    notify.forget('matter')
    notify.once('matter', 'info', 'b')
    t.wait(function()
      return #shown == 3
    end)
  end)

  it('survives a notification plugin that throws', function()
    vim.notify = function()
      error('broken plugin')
    end
    notify.error('important')
    t.wait(function()
      return table.concat(log.lines(2), '\n'):find('broken plugin', 1, true)
    end)
  end)
end)
