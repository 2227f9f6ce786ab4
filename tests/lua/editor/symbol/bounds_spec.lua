-- Symbols of files that give none: long lines, buffers that go, texts that nobody wrote by hand.

local from_lines = require('mcp-tools.editor.symbol.from_lines')
local name_path = require('mcp-tools.editor.symbol.name_path')
local nodes = require('mcp-tools.editor.symbol.nodes')
local symbol = require('mcp-tools.editor.symbol')
local t = require('helpers')

--- A language server within this editor, which answers when `answer` is called.
local function server(bufnr)
  local answers = {}
  local id = vim.lsp.start({
    name = 'late',
    cmd = function()
      local closing = false
      return {
        request = function(method, _, callback)
          if method == 'initialize' then
            callback(nil, { capabilities = { documentSymbolProvider = true } })
          elseif method == 'shutdown' then
            callback(nil, vim.NIL)
          else
            table.insert(answers, callback)
          end
          return true, #answers
        end,
        notify = function()
          return true
        end,
        is_closing = function()
          return closing
        end,
        terminate = function()
          closing = true
        end,
      }
    end,
  }, { bufnr = bufnr })
  t.wait(function()
    return vim.lsp.get_client_by_id(id).server_capabilities
  end)
  return answers
end

describe('symbols by the look of lines', function()
  it('hold up the editor with no line, however long', function()
    local lines = { 'function a()', 'export' .. (' '):rep(20000), 'const x =' .. (' '):rep(20000), 'function b()' }
    local begun = os.clock()
    local found = {}
    from_lines.ask(lines, function(tree)
      nodes.each(tree, function(node)
        table.insert(found, { node.name, node.line })
      end)
    end, true)
    t.eq({ { 'a', 1 }, { 'b', 4 } }, found)
    t.ok(os.clock() - begun < 0.2)
  end)

  it('are those of the beginning of what nobody wrote by hand, and errors say so', function()
    local bufnr = vim.api.nvim_create_buf(true, false)
    local lines = { 'function a()' }
    for i = 2, from_lines.MAX_LINES do
      lines[i] = ''
    end
    table.insert(lines, 'function late()')
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
    local err
    symbol.find(bufnr, 'late', function(_, fault)
      err = fault
    end)
    t.wait(function()
      return err
    end)
    t.matches('no "late" in the first 20000 lines of buffer %d+; there is a %(line 1%)', err.message)
  end)
end)

describe('a name that nothing has', function()
  it('is answered soon with what differs by a slip, however many there are', function()
    local list = {}
    for i = 1, 20000 do
      table.insert(list, { name = 'some_name_' .. i, kind = 'function', line = i, end_line = i, children = {} })
    end
    local begun = os.clock()
    local near = name_path.near(list, assert(name_path.parse('sone_name_7', 'symbol')))
    t.ok(os.clock() - begun < 0.3)
    t.eq('some_name_7 (line 7)', near)
  end)
end)

describe('symbols of a buffer', function()
  it('are none when it goes before the language server answers', function()
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'function x()' })
    local answers = server(bufnr)
    local got
    symbol.of_buffer(bufnr, function(found, err)
      t.eq({ nil, nil }, { got, found })
      got = err
    end)
    t.wait(function()
      return #answers > 0
    end)
    vim.api.nvim_buf_delete(bufnr, { force = true })
    answers[1](nil, {})
    t.wait(function()
      return got
    end, 4000)
    t.eq('not_found', got.code)
  end)
end)
