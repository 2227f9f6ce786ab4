-- slow, every Neovim
-- What a person sees beforehand of a change that a language server makes.

local double = require('lsp_double')
local format = require('mcp-tools.tools.lsp.format')
local project = require('lsp_project')
local rename = require('mcp-tools.editor.lsp.rename')
local t = require('helpers')

local path, bufnr

before_each(function()
  project.open('python')
  pcall(vim.api.nvim_del_augroup_by_name, 'lsp_project')
  path = project.write('text.txt', 'one\ntwo one\n')
  bufnr = vim.fn.bufadd(path)
  vim.fn.bufload(bufnr)
  vim.bo[bufnr].buflisted = true
end)
after_each(project.close)

local function edit(line, first, last, text)
  return {
    range = { start = { line = line, character = first }, ['end'] = { line = line, character = last } },
    newText = text,
  }
end

--- A server that is ready and gives this answer.
local function server(capabilities, method, answer)
  local s = double.start(bufnr, project.root, capabilities, { [method] = answer })
  t.wait(function()
    return s.client.initialized
  end)
  s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
  return s
end

--- What a preview says at first, and when it has been told that there is more.
local function told(preview, args)
  local at_first, err = preview(args)
  t.eq(nil, err)
  local ended, fault = false, nil
  local text = preview(args, function(why)
    ended, fault = true, why
  end)
  t.eq(at_first, text) -- a yes before it has come is for that
  t.wait(function()
    return ended
  end, 10000, 'the dry run')
  return at_first, fault or (preview(args))
end

describe('a rename', function()
  it('is shown as the difference that its server makes, which holds for the text that it is of', function()
    local changes = { [vim.uri_from_fname(path)] = { edit(0, 0, 3, 'uno'), edit(1, 4, 7, 'uno') } }
    server({ renameProvider = true }, 'textDocument/rename', { changes = changes })
    local args = { path = path, line = 1, column = 1, new_name = 'uno', wait_ms = 8000 }
    local at_first, then_ = told(rename.preview, args)
    t.matches('^renames "one" in .*, line 1, column 1, to uno in the whole project\n', at_first)
    t.matches('%-one\n%-two one\n%+uno\n%+two uno', then_)
    t.eq({ 'one', 'two one' }, vim.api.nvim_buf_get_lines(bufnr, 0, -1, false))
    args = { bufnr = bufnr, symbol = 'one', new_name = 'uno' } -- the same place
    t.eq(then_, (rename.preview(args)))
    args.new_name = 'other'
    t.matches('^renames', (rename.preview(args)))
    args.new_name = 'uno'
    vim.api.nvim_buf_set_lines(bufnr, 2, 2, false, { 'more' })
    t.matches('^renames', (rename.preview(args)))
  end)

  it('that the server refuses says so', function()
    server({ renameProvider = true }, 'textDocument/rename', double.fault('no such name'))
    local _, fault = told(rename.preview, { path = path, line = 1, column = 1, new_name = 'uno', wait_ms = 8000 })
    t.matches('no such name', fault.message)
  end)
end)

it('formatting is shown as the difference that its server makes; there is nothing to ask for without one', function()
  local s = server({ documentFormattingProvider = true }, 'textDocument/formatting', { edit(0, 0, 3, 'ONE') })
  local at_first, then_ = told(format.preview, { path = path })
  t.matches('^formats .*text.txt, lines 1 to the last\n', at_first)
  t.matches('%-one\n%+ONE', then_)
  vim.api.nvim_buf_set_lines(bufnr, 2, 2, false, { 'more' })
  s.answers['textDocument/formatting'] = {}
  local ended
  format.preview({ path = path }, function()
    ended = true
  end)
  t.wait(function()
    return ended
  end)
  t.eq('tool_error', (select(2, format.preview({ path = path })) or {}).code)
end)
