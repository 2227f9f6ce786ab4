-- slow, every Neovim
-- Positions, clients, waiting for servers and summaries of workspace edits.

local clients = require('mcp-tools.editor.lsp.clients')
local lsp = require('mcp-tools.editor.lsp')
local mcp_tools = require('mcp-tools')
local position = require('mcp-tools.editor.position')
local project = require('lsp_project')
local server_state = require('mcp-tools.editor.lsp.server_state')
local t = require('helpers')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

it('position is converted to the encoding of the server', function()
  local line = 'aä€𝄞b'

  for encoding, characters in pairs({
    ['utf-8'] = { 0, 1, 3, 6, 10, 11 },
    ['utf-16'] = { 0, 1, 2, 3, 5, 6 },
    ['utf-32'] = { 0, 1, 2, 3, 4, 5 },
  }) do
    for column, character in ipairs(characters) do
      t.eq(character, position.to_server(line, column, encoding))
      t.eq(column, position.to_client(line, character, encoding))
    end
    t.eq(characters[6], position.to_server(line, 99, encoding))
    t.eq(6, position.to_client(line, 99, encoding))
  end
  t.eq(8, position.to_client(nil, 7, 'utf-16'))
end)

describe('a request', function()
  before_each(function() project.open('python') end)
  after_each(project.close)

  it('is cancelled when its call ends', function()
    local cancelled, call = {}, nil
    local id = vim.api.nvim_create_autocmd('LspRequest', {
      callback = function(args)
        local request = args.data.request
        local is_ours = request.method == 'textDocument/documentSymbol' -- Neovim cancels its own requests
        if is_ours and request.type == 'cancel' then
          table.insert(cancelled, request.method)
        elseif is_ours and request.type == 'pending' then
          vim.schedule(function() require('mcp-tools.core').get().executor:cancel(call.id, 'test') end)
        end
      end,
    })
    require('mcp-tools').register({
      name = 'spec_ask',
      description = 'Asks.',
      needs_approval = false,
      run = function(ctx)
        local target = lsp.target(ctx, { path = project.root .. '/shop/ledger.py' })
        lsp.request(ctx, target.bufnr, 'textDocument/documentSymbol', lsp.document_params(target.bufnr))
      end,
    })
    call = project.start('spec_ask')
    t.ended(call, 45000) -- with the start of the server
    t.eq({ 'textDocument/documentSymbol' }, cancelled)
    vim.api.nvim_del_autocmd(id)
  end)

  it('to a server that exits gets an error', function()
    project.run(function(ctx)
      local target = lsp.target(ctx, { path = project.root .. '/shop/ledger.py' })
      local client = lsp.clients(ctx, target.bufnr)[1]
      vim.defer_fn(function() clients.stop(client, true) end, 10)
      t.fails(
        nil,
        'stopped',
        lsp.request(ctx, target.bufnr, 'textDocument/references', lsp.position_params(target.bufnr, 7, 9))
      )
    end)
  end)
end)

--- The result of a tool that waits for a condition.
local function waited(ms, condition)
  local ended
  mcp_tools.register({
    name = 'waits',
    description = 'Waits.',
    annotations = { read_only = true },
    run = function(ctx) return { value = server_state.await(ctx, ms, condition) or 'over' } end,
  })
  mcp_tools.call('waits', {}, function(value, err) ended = { value = value, err = err } end)
  t.wait(function() return ended end)
  mcp_tools.unregister('waits')
  return ended
end

describe('a wait', function()
  before_each(function() require('mcp-tools.config').setup({ approval = { default = 'allow' } }) end)

  it('ends with the value of its condition, or with its timeout', function()
    local count = 0
    local function third()
      count = count + 1
      return count == 3 and 'three' or nil
    end
    t.eq('three', waited(5000, third).value.value)
    t.eq('over', waited(50, function() end).value.value)
  end)

  it('ends its call when its condition throws, and shows the user no error', function()
    vim.v.errmsg = ''
    local count = 0
    local ended = waited(5000, function()
      count = count + 1
      return count > 1 and error('the buffer is gone') or nil
    end)
    t.eq({ 'execution_error', 2, '' }, { ended.err.code, count, vim.v.errmsg })
  end)
end)

describe('the summary of a workspace edit', function()
  local plan =
    { files = { { path = 'a', edits = { 1, 2 } }, { path = 'b', edits = { 3 } }, { path = 'c', edits = { 4 } } } }

  it('has the number of places of each file', function()
    local files = { { written = true }, { written = false }, { written = true } }
    t.eq({
      { path = 'a', places = 2 },
      { path = 'b', places = 1, unsaved = true },
      { path = 'c', places = 1 },
    }, workspace_edit.summary(plan, files))
  end)

  it('does not count rejected places, or a file without changes', function()
    local done, rejected = { written = true, hunks = { 1 } }, { written = false, hunks = {} }
    local files = { done, rejected, { written = false, hunks = { 1 } } }
    files.rejected = { { path = 'b', hunk = 1, line = 1 } }
    t.eq({
      { path = 'a', applied = 1 },
      { path = 'b', applied = 0 },
      { path = 'c', applied = 1, unsaved = true },
    }, workspace_edit.summary(plan, files))
  end)
end)
