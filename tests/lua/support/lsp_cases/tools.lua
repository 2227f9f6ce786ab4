-- The tools of language servers, for any kind of server.

local project = require('lsp_project')
local t = require('helpers')

--- Places in each kind of project.
local KINDS = {
  python = { ext = '.py', line = 7, col = 9, method = 'post_entry', use_line = 7, class_line = 4 },
  typescript = { ext = '.ts', line = 4, col = 3, method = 'postEntry', use_line = 6, class_line = 2 },
}

local function ok(name, args) return t.ok(project.call(name, args)) end

local function refused(code, pattern, name, args) t.fails(code, pattern, project.call(name, args)) end

return function(kind)
  local here = KINDS[kind]
  here.ledger, here.user = 'shop/ledger' .. here.ext, 'shop/user1' .. here.ext
  describe('with a server of ' .. kind, function()
    before_each(function() project.share(kind) end)

    local ledger, user = project.root .. '/' .. here.ledger, project.root .. '/' .. here.user

    it('editor_servers starts the server of a file and waits until it is ready', function()
      local result = ok('editor_servers', {})
      t.eq({ servers = {}, ready = false, note = result.note }, result)
      t.matches('no language server is running', result.note)
      result = ok('editor_servers', { path = ledger, wait_ms = 30000 })
      t.eq({ true, 1 }, { result.ready, #result.servers })
      t.has({ state = 'ready', root = project.root, files = 1 }, result.servers[1])
    end)

    it('symbol_info returns type, documentation and definition', function()
      local result = ok('symbol_info', { path = ledger, line = here.line, column = here.col })
      t.matches('Posts one', result.info)
      t.eq({ nil, here.method }, { result.defined, result.of }) -- the place was in the question
      result = ok('symbol_info', { path = user, line = here.use_line, symbol = here.method })
      t.matches('Posts one', result.info)
      t.eq(('%s:%d'):format(here.ledger, here.line), result.defined)
      t.matches(here.method, result.source)
      -- Behind characters that are two units wide for the server, and the second use on the line.
      local line = vim.fn.readfile(user)[here.use_line]
      local col = vim.fn.strchars(line:match('^.*%.' .. here.method)) - #here.method + 1
      local again = ok('symbol_info', { path = user, line = here.use_line, column = col })
      t.eq(result.info, again.info)
      t.eq(again, ok('lsp_hover', { path = user, line = here.use_line, col = col }))
      -- By its name path, in the whole project.
      vim.cmd.edit(ledger)
      t.matches('Posts one', ok('symbol_info', { symbol = 'Ledger/' .. here.method }).info)
      vim.cmd.enew()
    end)

    it('symbol_info uses the cursor of the named file, not of the visible one', function()
      vim.cmd.edit(user)
      vim.cmd.split(ledger)
      vim.api.nvim_win_set_cursor(0, { here.line, here.col })
      local method = ok('symbol_info', { path = ledger })
      t.matches('Posts one', method.info)
      local before = vim.api.nvim_get_current_win()
      vim.cmd.wincmd('p')
      t.eq(method, ok('symbol_info', { path = ledger }))
      t.eq(method, ok('lsp_hover', { bufnr = vim.fn.bufnr(ledger) }))
      t.ok(before ~= vim.api.nvim_get_current_win())
      vim.cmd('silent only! | enew')
    end)

    it('symbol_info reports an invalid position', function()
      refused('validation_error', 'line: 999 is beyond the end', 'symbol_info', { path = ledger, line = 999 })
      local beyond = { path = ledger, line = 1, column = 999 }
      refused('validation_error', 'column: 999 is beyond the end of line 1', 'symbol_info', beyond)
      refused('not_found', '"nope"', 'symbol_info', { path = ledger, symbol = 'nope' })
      refused('not_found', 'there is no file', 'symbol_info', { path = ledger .. 'x' })
      refused('not_found', 'there is no buffer', 'symbol_info', { bufnr = 9999 })
      refused('validation_error', 'exactly one', 'symbol_info', { path = ledger, bufnr = 0 })
      project.write('blank' .. here.ext, '\n\n')
      local blank = project.root .. '/blank' .. here.ext
      t.eq('', ok('symbol_info', { path = blank, line = 1, column = 1 }).info)
      vim.fn.delete(blank)
    end)

    it('symbol_references lists each file once, with the lines', function()
      local result = ok('symbol_references', { path = ledger, line = here.line, column = here.col })
      t.eq({ 8, here.method, 4 }, { result.total, result.name, #result.files })
      t.eq({ here.user, here.use_line }, { result.files[1].path, result.files[1].rows[1].line })
      t.matches(('^return ledger.%s'):format(here.method), result.files[1].rows[1].text)
      t.eq(nil, result.incomplete)
      t.eq(result.total, ok('symbol_references', { path = ledger, symbol = 'Ledger/' .. here.method }).total)
      local other = ok('symbol_references', { path = user, line = here.use_line, symbol = here.method })
      t.eq(result.total, other.total)
    end)

    it('symbol_implementations lists positions with their text', function()
      local result = ok('symbol_implementations', { path = ledger, symbol = 'Ledger' })
      t.eq({ 'Ledger', result.total }, { result.of, #result.places })
      for _, place in ipairs(result.places) do
        t.ok(place.path ~= here.ledger or place.line ~= here.class_line)
      end
      local text = require('mcp-tools.tools.symbol.implementations').render({
        of = 'Ledger',
        total = 3,
        places = { { path = 'a', line = 1, text = 'x' }, { path = 'a', line = 2 }, { path = 'b', line = 3 } },
      }, {})
      t.eq('3 implementations of Ledger\na\n  1: x\n  2\nb\n  3', text)
    end)

    it('symbol_callers', function()
      local result = ok('symbol_callers', { path = ledger, line = here.line, column = here.col })
      t.eq({ here.method, 4, 'use' }, { result.of, result.total, result.items[1].name })
      t.eq({ here.use_line }, result.items[1].lines)
      result = ok('symbol_callers', { path = user, symbol = 'use', direction = 'outgoing' })
      t.ok(result.total >= 2)
    end)

    it('files that other processes change are reported to the server before a request', function()
      local name = here.user:gsub('user1', 'user9')
      local path = project.write(name, table.concat(vim.fn.readfile(user), '\n') .. '\n')
      t.eq(10, ok('symbol_references', { path = ledger, symbol = 'Ledger/' .. here.method }).total)
      vim.fn.delete(path)
      t.eq(8, ok('symbol_references', { path = ledger, symbol = 'Ledger/' .. here.method }).total)
      -- Also one that is open, without a question.
      local text = table.concat(vim.fn.readfile(ledger), '\n') .. '\n'
      project.write(here.ledger, '\n\n' .. text)
      local place = { path = user, symbol = here.method, line = here.use_line }
      t.matches((':%d$'):format(here.line + 2), ok('symbol_info', place).defined)
      project.write(here.ledger, text)
      t.matches((':%d$'):format(here.line), ok('symbol_info', place).defined)
    end)

    it('sensitive files are withheld, with a reason', function()
      local secret = project.write('.env' .. here.ext, 'x = 1\n')
      refused('access_denied', 'sensitive', 'symbol_info', { path = secret, line = 1, column = 1 })
    end)

    it('editor_servers restarts a server for its files, and leaves no second one', function()
      local before = vim.lsp.get_clients()[1]
      local result = ok('editor_servers', { restart = before.name })
      t.eq({ 1, before.name }, { #result.restarted, result.restarted[1].name })
      t.eq(8, ok('symbol_references', { path = ledger, symbol = 'Ledger/' .. here.method }).total)
      t.eq(1, #vim.lsp.get_clients())
      t.ok(vim.lsp.get_clients()[1].id ~= before.id)
      refused('not_found', 'no language server \x27nobody\x27', 'editor_servers', { restart = 'nobody' })
    end)
  end)
end
