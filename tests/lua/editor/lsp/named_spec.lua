-- every Neovim
-- Where a symbol without a line is.

local double_project = require('double_project')
local project = require('lsp_project')
local t = require('helpers')

local TEXT = {
  '-- post_entry and close are explained here',
  'class Ledger',
  '  def post_entry()',
  '  def close()',
  'class Journal',
  '  def close()',
  '-- total',
  'total = Ledger()',
}

local path, s

local function range(line, from, to)
  return { start = { line = line, character = from }, ['end'] = { line = line, character = to } }
end

local function symbol(name, line, from, children)
  local at = range(line, from, from + #name)
  return { name = name, kind = 5, range = at, selectionRange = at, children = children }
end

--- The answer, with the place that the server was asked about.
local function references(args)
  local result, err = project.call('lsp_references', vim.tbl_extend('force', { path = path }, args))
  local asked
  for _, each in ipairs(s.asked) do
    if each.method == 'textDocument/references' then
      asked = { each.params.position.line, each.params.position.character }
    end
  end
  return asked, err, result
end

local function start(capabilities)
  local answers = {
    ['textDocument/documentSymbol'] = {
      symbol('Ledger', 1, 6, { symbol('post_entry', 2, 6), symbol('close', 3, 6) }),
      symbol('Journal', 4, 6, { symbol('close', 5, 6) }),
    },
    ['textDocument/documentHighlight'] = function(params)
      return params.position.line == 7 and { { range = range(7, 0, 5) } } or nil
    end,
    ['textDocument/references'] = { { uri = vim.uri_from_fname(path), range = range(7, 8, 14) } },
  }
  local bufnr
  s, bufnr = double_project.server(vim.tbl_extend('error', { referencesProvider = true }, capabilities), answers)
  s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
end

before_each(function()
  path = double_project.open()
  project.write('text.txt', table.concat(TEXT, '\n') .. '\n')
end)
after_each(project.close)

describe('a symbol without a line', function()
  it('is where the server defines it, not in the first comment', function()
    start({ documentSymbolProvider = true, documentHighlightProvider = true })
    t.eq({ 2, 6 }, (references({ symbol = 'post_entry' })))
    t.eq({ 5, 6 }, (references({ symbol = 'Journal/close' })))
    t.eq({ 3, 6 }, (references({ symbol = 'Ledger.close' })))
    t.eq({ 4, 6 }, (references({ symbol = '/Journal' })))
  end)

  it('is where the server knows the word as a name, when it is not defined', function()
    start({ documentSymbolProvider = true, documentHighlightProvider = true })
    t.eq({ 7, 0 }, (references({ symbol = 'total' })))
  end)

  it('is an error that names the definitions, when it is ambiguous or only in comments', function()
    start({ documentSymbolProvider = true, documentHighlightProvider = true })
    local asked, err = references({ symbol = 'close' })
    t.eq({ nil, 'validation_error' }, { asked, err.code })
    t.matches('Ledger/close %(line 4%), Journal/close %(line 6%)', err.message)
    for _, name in ipairs({ 'explained', 'nothing', '/close' }) do
      asked, err = references({ symbol = name })
      t.eq({ nil, 'not_found' }, { asked, err.code })
    end
    t.matches('Ledger/close', err.message)
  end)

  it('on a line is on that line', function()
    start({ documentSymbolProvider = true, documentHighlightProvider = true })
    t.eq({ 5, 6 }, (references({ symbol = 'close', line = 6 })))
  end)

  it('is the first such text, when no server can tell', function()
    start({})
    t.eq({ 0, 3 }, (references({ symbol = 'post_entry' })))
  end)
end)
