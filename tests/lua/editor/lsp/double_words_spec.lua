-- slow, every Neovim
-- What servers say, as answers quote it.

local double = require('lsp_double')
local double_project = require('double_project')
local project = require('lsp_project')
local t = require('helpers')

local TOKEN = 'ghp_' .. ('a1B2'):rep(9)

local path, bufnr

local function server(capabilities, answers)
  local s
  s, bufnr = double_project.server(capabilities, answers)
  s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
  return s
end

--- Fails when an answer has the token.
local function without_token(name, args)
  local result, err = project.call(name, vim.tbl_extend('force', { path = path }, args or {}))
  local text = vim.inspect({ result, err })
  t.ok(not text:find(TOKEN, 1, true), text)
  t.matches('%[secret%]', text)
end

before_each(function()
  path = double_project.open()
end)
after_each(project.close)

describe('hover', function()
  it('without contents is none', function()
    local s = server({ hoverProvider = true })
    for _, contents in ipairs({ vim.NIL, {}, { kind = 'markdown', value = vim.NIL }, { { language = 'lua' } } }) do
      s.answers['textDocument/hover'] = { contents = contents }
      local result, err = project.call('lsp_hover', { path = path, line = 1, column = 1 })
      t.eq('not_found', not result and err.code or result.hover:match('^```') and 'not_found')
    end
    s.answers['textDocument/hover'] = vim.empty_dict()
    t.eq('not_found', select(2, project.call('lsp_hover', { path = path, line = 1, column = 1 })).code)
  end)

  it('and the definition are asked for at the same time', function()
    local s, asked
    s = server({ hoverProvider = true, definitionProvider = true }, {
      ['textDocument/hover'] = function()
        asked = s.asked[#s.asked].method
        return { contents = 'text' }
      end,
      ['textDocument/definition'] = function()
        return {
          uri = vim.uri_from_fname(path),
          range = { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 3 } },
        }
      end,
    })
    local result = t.ok(project.call('lsp_hover', { path = path, line = 1, column = 1 }))
    t.eq({ 'text', 'text.txt:1' }, { result.hover, result.defined })
    t.eq('textDocument/definition', asked)
  end)
end)

describe('an event of language servers that somebody sets off by hand', function()
  it('throws nothing before the person', function()
    server({ hoverProvider = true })
    t.ok(project.call('lsp_status'))
    for _, event in ipairs({ 'LspAttach', 'LspDetach', 'LspNotify' }) do
      t.eq({ true }, { pcall(vim.api.nvim_exec_autocmds, event, { group = 'mcp-tools.lsp', data = nil }) })
      t.eq({ true }, { pcall(vim.api.nvim_exec_autocmds, event, { group = 'mcp-tools.lsp', data = 'mine' }) })
    end
  end)
end)

describe('secrets in what a server says', function()
  it('of signatures and hints are withheld', function()
    server({ signatureHelpProvider = {}, inlayHintProvider = true }, {
      ['textDocument/signatureHelp'] = {
        signatures = { { label = 'open(' .. TOKEN .. ')', parameters = { { label = TOKEN } } } },
      },
      ['textDocument/inlayHint'] = {
        { position = { line = 0, character = 0 }, label = { { value = '= "' }, { value = TOKEN .. '"' } } },
      },
    })
    without_token('lsp_signature', { line = 1, column = 1 })
    if vim.fn.has('nvim-0.10') == 1 then
      without_token('lsp_inlay_hints')
    end
  end)

  it('of symbols are withheld', function()
    local range = { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 3 } }
    server({ documentSymbolProvider = true, workspaceSymbolProvider = true }, {
      ['textDocument/documentSymbol'] = {
        { name = 'one', detail = 'one = "' .. TOKEN .. '"', kind = 13, range = range, selectionRange = range },
      },
      ['workspace/symbol'] = {
        {
          name = 'one',
          kind = 13,
          containerName = TOKEN,
          location = { uri = vim.uri_from_fname(path), range = range },
        },
      },
    })
    without_token('lsp_symbols')
    without_token('lsp_workspace_symbols', { query = 'one' })
  end)

  it('of actions, errors and work in progress are withheld', function()
    local s = server({ codeActionProvider = true, hoverProvider = true }, {
      ['textDocument/codeAction'] = {
        { title = 'fix', disabled = { reason = 'no: ' .. TOKEN } },
      },
      ['textDocument/hover'] = double.fault('cannot read ' .. TOKEN),
    })
    without_token('lsp_code_actions', { line = 1, column = 1 })
    without_token('lsp_hover', { line = 1, column = 1 })
    s:progress('begin', { title = 'Indexing', message = TOKEN })
    without_token('lsp_status')
  end)
end)
