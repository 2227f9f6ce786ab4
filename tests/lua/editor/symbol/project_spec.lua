-- slow
-- Symbols of the project, with a scripted server.

local double = require('lsp_double')
local project = require('lsp_project')
local t = require('helpers')

local path, s

local function range(line) return { start = { line = line, character = 0 }, ['end'] = { line = line, character = 4 } } end

local function named(file)
  local location = { uri = vim.uri_from_fname(project.root .. '/' .. file), range = range(1) }
  return { name = 'post', kind = 6, location = location }
end

--- The text of the result.
local function find(args)
  local call = project.start('symbol_find', args)
  t.ended(call, 8000)
  t.eq(nil, call.outcome.error)
  return call.outcome.payload.text
end

before_each(function()
  project.open('python')
  pcall(vim.api.nvim_del_augroup_by_name, 'lsp_project')
  require('mcp-tools.config').setup({ tools = { 'symbol' } })
  path = project.write('ledger.txt', 'Ledger\npost\n')
  project.write('journal.txt', 'Journal\npost\n')
  local bufnr = vim.fn.bufadd(path)
  vim.fn.bufload(bufnr)
  vim.bo[bufnr].buflisted = true
  local whole = { start = { line = 0, character = 0 }, ['end'] = { line = 1, character = 4 } }
  local post = { name = 'post', kind = 6, range = range(1), selectionRange = range(1) }
  s = double.start(
    bufnr,
    project.root,
    { workspaceSymbolProvider = true, documentSymbolProvider = true, referencesProvider = true },
    {
      ['workspace/symbol'] = { named('journal.txt'), named('ledger.txt') },
      ['textDocument/documentSymbol'] = {
        { name = 'Ledger', kind = 5, range = whole, selectionRange = range(0), children = { post } },
      },
    }
  )
  s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
end)
after_each(project.close)

it('an empty list of references names the server, and does not change known symbols', function()
  s.answers['textDocument/documentSymbol'] = { { name = 'st', kind = 6, range = range(1), selectionRange = range(1) } }
  s.answers['textDocument/references'] = {}
  local call = project.start('symbol_references', { symbol = 'st', path = path })
  t.ended(call, 8000)
  t.matches('^0 references to st in 0 files %(by double%)', call.outcome.payload.text)
  local known = project.run(function(ctx) return require('mcp-tools.editor.symbol').await(ctx, vim.fn.bufnr(path)) end)
  t.eq({ 1, 0 }, known.tree[1].at)
end)

it('kinds of symbols are accepted in any spelling', function()
  for _, kind in ipairs({ 'method', 'Method', 'methods', 'METHOD' }) do
    t.matches('^1 symbol', find({ symbol = 'Ledger/post', kinds = { kind } }))
  end
  t.matches('^0 symbols', find({ symbol = 'Ledger/post', kinds = { 'EnumMember', 'properties', 'Classes' } }))
end)

describe('symbols of the project', function()
  it('are not searched in a file without their container', function()
    local read = {}
    local hook = vim.api.nvim_create_autocmd('BufReadPost', {
      callback = function(args) table.insert(read, vim.fs.basename(args.match)) end,
    })
    local text = find({ symbol = 'Ledger/post', body = true })
    vim.api.nvim_del_autocmd(hook)
    t.matches('^1 symbol %(by double%)\nledger%.txt\n  Ledger/post', text)
    t.eq({}, read)
  end)

  it('are requested after the server was notified of files of other processes', function()
    find({ symbol = 'Ledger/post' })
    local heard
    s.answers['workspace/symbol'] = function()
      heard = s:heard('workspace/didChangeWatchedFiles')
      return { named('ledger.txt') }
    end
    project.write('later.txt', 'Ledger\npost\n')
    t.wait(function()
      find({ symbol = 'Ledger/post' })
      return heard ~= nil
    end, 8000, 'word of the file')
    t.matches('later%.txt$', heard.changes[1].uri)
  end)
end)
