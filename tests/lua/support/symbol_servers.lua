-- The symbol tools with a real language server: the same for each server.

local clients = require('mcp-tools.editor.lsp.clients')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('lsp_project')
local t = require('helpers')

---@class SymbolServer
---@field kind 'python'|'typescript'
---@field name string of the server
---@field ext string
---@field method string
---@field ledger string[] lines of the method `Ledger/…`
---@field overview string of the file that has it
---@field use string the line that uses it
---@field use_line integer
---@field replaced string another definition of the method

---@param of SymbolServer
return function(of)
  local file = 'shop/ledger.' .. of.ext

  local function text(name, args)
    local call = project.start(name, args)
    t.ended(call, 45000, name)
    return not call.outcome.error and call.outcome.payload.text or nil, call.outcome.error
  end

  local function lines() return vim.fn.readfile(project.root .. '/' .. file) end

  describe('symbols by ' .. of.name, function()
    before_each(function()
      project.close() -- the servers of other cases know the project
      project.open(of.kind)
      config.setup({ tools = { 'symbol' }, approval = { rule = t.returns('allow') } })
      core.get()
    end)
    after_each(project.close)

    it('are outlined, found, read, replaced and deleted', function()
      -- The first request of all, for a file that is not open.
      local found = { symbol = 'Ledger/' .. of.method }
      local uses = ('8 references to Ledger/%s in 4 files (by %s)'):format(of.method, of.name)
      for i = 1, 4 do
        uses = ('%s\nshop/user%d.%s\n  %d use: %s'):format(uses, i, of.ext, of.use_line, of.use)
      end
      t.eq(uses, (text('symbol_references', vim.tbl_extend('error', found, { path = file }))))
      t.eq({ 1, of.overview }, { #clients.of(nil), (text('symbol_overview', { path = file })) })

      -- One of two methods of that name, beside strings and comments that contain it.
      local body = table.concat(of.ledger, '\n')
      local entry = ('1 symbol (by %s)\n%s\n  Ledger/%s [method] '):format(of.name, file, of.method)
      local answer = text('symbol_find', vim.tbl_extend('error', found, { body = true }))
      t.eq({ entry, body }, { answer:sub(1, #entry), (answer:sub(-#body)) })
      t.matches('^2 symbols ', (text('symbol_find', { symbol = of.method })))
      local cash = { symbol = 'ash', substring = true, kinds = { 'class' } }
      t.matches('^1 symbol .*Cash %[class%]', (text('symbol_find', cash)))
      t.matches('^0 symbols; searched ', (text('symbol_find', { symbol = 'ash' })))
      t.fails('validation_error', '2 symbols: Ledger/' .. of.method, text('symbol_references', { symbol = of.method }))
      t.eq(uses, (text('symbol_references', found)))

      -- A symbol in use is not deleted; the error names its users.
      local value, err = text('symbol_delete', { symbol = 'Ledger/' .. of.method, path = file })
      t.fails('tool_error', 'shop/user4%.' .. of.ext, value, err)

      -- A closed file is written; the next answer knows.
      t.matches(', saved', (text('symbol_delete', { symbol = '/Cash', path = file })))
      t.ok(not table.concat(lines(), '\n'):find('Cash'))
      local none = text('symbol_find', { symbol = '/Cash', path = file })
      t.matches('^0 symbols; there is Ledger %(line %d+%), Journal', none)

      -- An open file is not written, and its unsaved text is used.
      vim.cmd.edit(file)
      local change = { symbol = 'Journal/' .. of.method, path = file, definition = of.replaced }
      t.matches(', unsaved %(open in the editor%)', (text('symbol_replace', change)))
      t.ok(not table.concat(lines(), '\n'):find('replaced'))
      t.matches('replaced', (text('symbol_find', { symbol = 'Journal/' .. of.method, path = file, body = true })))
      change.definition = '  return 1'
      t.fails('validation_error', nil, text('symbol_replace', change))
      vim.cmd('silent undo')
      t.matches('Journal/' .. of.method, (text('symbol_find', { symbol = 'Journal/' .. of.method })))
    end)
  end)
end
