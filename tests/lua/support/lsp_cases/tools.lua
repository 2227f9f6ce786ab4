-- What the tools of language servers answer, for any kind of server.

local project = require('lsp_project')
local t = require('helpers')

--- What each kind of project has where.
local KINDS = {
  python = {
    ledger = 'shop/ledger.py',
    user = 'shop/user1.py',
    line = 7,
    col = 9,
    method = 'post_entry',
    use_line = 7,
    class_line = 4,
    uses = 9,
    signature = 'account: str',
  },
  typescript = {
    ledger = 'shop/ledger.ts',
    user = 'shop/user1.ts',
    line = 4,
    col = 3,
    method = 'postEntry',
    use_line = 6,
    class_line = 2,
    uses = 9,
    signature = 'account: string',
  },
}

local function ok(name, args)
  local result, err = project.call(name, args)
  t.eq(nil, err)
  return result
end

local function fault(code, name, args)
  local result, err = project.call(name, args)
  t.eq(nil, result)
  t.eq(code, err.code)
  return err.message
end

return function(kind)
  local here = KINDS[kind]
  describe('with a server of ' .. kind, function()
    before_each(function()
      project.share(kind)
    end)

    local ledger, user = project.root .. '/' .. here.ledger, project.root .. '/' .. here.user

    it('lsp_status starts the server of a file and waits until it is ready', function()
      local result = ok('lsp_status', {})
      t.eq({ servers = {}, ready = false, note = result.note }, result)
      t.matches('no language server runs', result.note)
      result = ok('lsp_status', { path = ledger, wait_ms = 30000 })
      t.eq(true, result.ready)
      t.eq({ 1, 'ready', project.root, 1 }, {
        #result.servers,
        result.servers[1].state,
        result.servers[1].root,
        result.servers[1].files,
      })
    end)

    it('lsp_hover tells type and documentation, and where that is defined', function()
      local result = ok('lsp_hover', { path = ledger, line = here.line, column = here.col })
      t.matches('Posts one', result.hover)
      t.matches('^markdown$', result.kind)
      t.eq(('%s:%d'):format(here.ledger, here.line), result.defined)
      result = ok('lsp_hover', { path = user, line = here.use_line, symbol = here.method })
      t.matches('Posts one', result.hover)
      -- Behind characters that are two units wide for the server, and the second use on the line.
      local line = vim.fn.readfile(user)[here.use_line]
      local col = vim.fn.strchars(line:match('^.*%.' .. here.method)) - #here.method + 1
      t.eq(result, ok('lsp_hover', { path = user, line = here.use_line, column = col }))
      t.eq(result, ok('lsp_hover', { path = user, line = here.use_line, col = col }))
    end)

    it('lsp_hover takes the cursor of the file that is named, not of the one in view', function()
      vim.cmd.edit(user)
      vim.cmd.split(ledger)
      vim.api.nvim_win_set_cursor(0, { here.line, here.col })
      local method = ok('lsp_hover', { path = ledger })
      t.matches('Posts one', method.hover)
      local before = vim.api.nvim_get_current_win()
      vim.cmd.wincmd('p')
      t.eq(method, ok('lsp_hover', { path = ledger }))
      t.eq(method, ok('lsp_hover', { bufnr = vim.fn.bufnr(ledger) }))
      t.ok(before ~= vim.api.nvim_get_current_win())
      vim.cmd('silent only! | enew')
    end)

    it('lsp_hover says what is wrong with a place', function()
      t.matches('line: 999 is beyond the end', fault('validation_error', 'lsp_hover', { path = ledger, line = 999 }))
      local message = fault('validation_error', 'lsp_hover', { path = ledger, line = 1, column = 999 })
      t.matches('column: 999 is beyond the end of line 1', message)
      t.matches('"nope"', fault('not_found', 'lsp_hover', { path = ledger, symbol = 'nope' }))
      t.matches('there is no file', fault('not_found', 'lsp_hover', { path = ledger .. 'x' }))
      t.matches('there is no buffer', fault('not_found', 'lsp_hover', { bufnr = 9999 }))
      t.matches('exactly one', fault('validation_error', 'lsp_hover', { path = ledger, bufnr = 0 }))
      project.write('blank' .. here.ledger:match('%.%w+$'), '\n\n')
      local blank = project.root .. '/blank' .. here.ledger:match('%.%w+$')
      t.matches('No hover information', fault('not_found', 'lsp_hover', { path = blank, line = 1, column = 1 }))
      vim.fn.delete(blank)
    end)

    it('lsp_references names each file once, with the lines', function()
      local result = ok('lsp_references', { path = ledger, line = here.line, column = here.col })
      t.eq(here.uses, result.total)
      t.eq(5, #result.files)
      t.eq(here.ledger, result.files[1].path)
      t.eq(1, #result.files[1].lines)
      t.eq(here.user, result.files[2].path)
      t.eq(1, #result.files[2].lines)
      t.matches(('^%d: return ledger.%s'):format(here.use_line, here.method), result.files[2].lines[1])
      t.eq(nil, result.incomplete)
      result = ok('lsp_references', { path = ledger, symbol = 'Ledger/' .. here.method, include_declaration = false })
      t.eq(8, result.total)
      result = ok('lsp_references', { path = ledger, symbol = 'Ledger/' .. here.method, files = '**/user2.*' })
      t.eq({ 2, 1 }, { result.total, #result.files })
      result = ok('lsp_references', { path = ledger, symbol = 'Ledger/' .. here.method, limit = 3, offset = 1 })
      t.eq({ 9, 4 }, { result.total, result.next_offset })
      result = ok('lsp_references', { path = ledger, symbol = 'Ledger/' .. here.method, limit = 3, offset = 7 })
      t.eq({ 9, nil }, { result.total, result.next_offset })
    end)

    it('lsp_definition, type definition and implementation lead to places with their text', function()
      local result = ok('lsp_definition', { path = user, line = here.use_line, symbol = here.method })
      t.eq(1, result.total)
      local place = result.places[1]
      t.eq({ here.ledger, here.line, here.col }, { place.path, place.line, place.column })
      t.matches(here.method, place.text)
      result = ok('lsp_type_definition', { path = user, line = here.use_line, symbol = 'ledger' })
      t.eq({ here.ledger, here.class_line }, { result.places[1].path, result.places[1].line })
      local message = fault('not_found', 'lsp_definition', { path = ledger, line = here.line, column = 1 })
      t.matches('there is no definition', message)
    end)

    it('lsp_symbols are nested and count from 1', function()
      local list = ok('lsp_symbols', { path = ledger })
      local found = {}
      for _, symbol in ipairs(list) do
        found[symbol.name] = symbol
      end
      t.eq('Class', found.Ledger.kind)
      t.eq(here.class_line, found.Ledger.range.start.line)
      local method = found.Ledger.children[1]
      t.eq({ here.method, 'Method' }, { method.name, method.kind })
      t.eq(here.line, method.range.start.line)
      local flat = ok('lsp_symbols', { path = ledger, depth = 1 })
      t.eq(nil, flat[1].children)
      t.eq(
        { 'cut at limit; depth gives less', 1 },
        (function()
          local part = ok('lsp_symbols', { path = ledger, limit = 1 })
          return { part.note, #part.symbols }
        end)()
      )
    end)

    it('lsp_workspace_symbols finds names of the project', function()
      local result = ok('lsp_workspace_symbols', { query = 'Ledger', path = ledger })
      local file = vim.iter(result.files):find(function(each)
        return each.path == here.ledger
      end)
      t.matches('^%d+: Class Ledger', file.lines[1])
      t.eq(result, ok('lsp_workspace_symbols', { query = 'Ledger' }))
      result = ok('lsp_workspace_symbols', { query = 'Ledger', kinds = { 'function' } })
      t.eq(0, result.total)
    end)

    it('lsp_calls and lsp_signature', function()
      local result = ok('lsp_calls', { path = ledger, line = here.line, column = here.col })
      t.eq({ here.method, 4 }, { result.of, result.total })
      t.eq('use', result.items[1].name)
      t.eq({ here.use_line }, result.items[1].lines)
      result = ok('lsp_calls', { path = user, symbol = 'use', direction = 'outgoing' })
      t.ok(result.total >= 2)
      result = ok('lsp_signature', { path = user, line = here.use_line, symbol = here.method })
      t.eq({ 1, 1 }, { result.active_signature, result.active_parameter })
      t.matches(here.signature, result.signatures[1].parameters[1])
      t.matches('no call', fault('not_found', 'lsp_signature', { path = ledger, line = 1, column = 1 }))
    end)

    it('files that others change are told to the server before it is asked', function()
      local name = here.user:gsub('user1', 'user9')
      local path = project.write(name, table.concat(vim.fn.readfile(user), '\n') .. '\n')
      t.eq(11, ok('lsp_references', { path = ledger, symbol = 'Ledger/' .. here.method }).total)
      vim.fn.delete(path)
      t.eq(9, ok('lsp_references', { path = ledger, symbol = 'Ledger/' .. here.method }).total)
      -- One that is open, too, and nothing asks the person.
      local text = table.concat(vim.fn.readfile(ledger), '\n') .. '\n'
      project.write(here.ledger, '\n\n' .. text)
      t.eq(
        here.line + 2,
        ok('lsp_definition', { path = user, symbol = here.method, line = here.use_line }).places[1].line
      )
      project.write(here.ledger, text)
      t.eq(here.line, ok('lsp_definition', { path = user, symbol = here.method, line = here.use_line }).places[1].line)
    end)

    it('what may not be read is withheld, and that is said', function()
      local secret = project.write('.env' .. here.ledger:match('%.%w+$'), 'x = 1\n')
      t.matches('sensitive', fault('access_denied', 'lsp_hover', { path = secret, line = 1, column = 1 }))
    end)

    it('lsp_restart starts the server again for its files, and leaves no second one', function()
      local before = vim.lsp.get_clients()[1]
      local result = ok('lsp_restart', { name = before.name })
      t.eq({ 1, before.name }, { #result.restarted, result.restarted[1].name })
      t.eq(here.uses, ok('lsp_references', { path = ledger, symbol = 'Ledger/' .. here.method }).total)
      t.eq(1, #vim.lsp.get_clients())
      t.ok(vim.lsp.get_clients()[1].id ~= before.id)
      t.matches('no language server \x27nobody\x27', fault('not_found', 'lsp_restart', { name = 'nobody' }))
    end)
  end)
end
