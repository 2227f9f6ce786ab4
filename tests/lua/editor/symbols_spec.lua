local symbols = require('mcp-tools.editor.symbols')
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
    t.eq({ { name = 'a', line = 1 }, { name = 'b', line = 4 } }, symbols.of_lines(lines))
    t.ok(os.clock() - begun < 0.2)
  end)
end)

describe('symbols of a buffer', function()
  it('are none when it goes before the language server answers', function()
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'function x()' })
    local answers = server(bufnr)
    local got
    symbols.of_buffer(bufnr, function(found)
      t.eq(nil, got)
      got = found
    end)
    t.wait(function()
      return #answers > 0
    end)
    vim.api.nvim_buf_delete(bufnr, { force = true })
    answers[1](nil, {})
    t.wait(function()
      return got
    end, 4000)
    t.eq({}, got)
  end)
end)
