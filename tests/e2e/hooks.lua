-- A language server inside of the editor: an error for each line that begins with BAD, a warning for WARN.

_G.delay = 20 -- ms until it publishes

local function diagnostics_of(text)
  local list = {}
  for number, line in ipairs(vim.split(text, '\n')) do
    local severity = line:find('^BAD') and 1 or line:find('^WARN') and 2
    if severity then
      table.insert(list, {
        severity = severity,
        message = 'bad: ' .. line,
        range = {
          start = { line = number - 1, character = 0 },
          ['end'] = { line = number - 1, character = 3 },
        },
      })
    end
  end
  return list
end

local function server(dispatchers)
  local closing, count = false, 0
  local function publish(params)
    local document = params.textDocument
    local text = document.text or params.contentChanges[1].text
    local published = { uri = document.uri, version = document.version, diagnostics = diagnostics_of(text) }
    vim.defer_fn(function() dispatchers.notification('textDocument/publishDiagnostics', published) end, _G.delay)
  end
  return {
    request = function(method, _, callback)
      count = count + 1
      local capabilities = { textDocumentSync = 1, hoverProvider = true }
      local result = method == 'initialize' and { capabilities = capabilities } or nil
      vim.schedule(function() callback(nil, result) end)
      return true, count
    end,
    notify = function(method, params)
      if method == 'textDocument/didOpen' or method == 'textDocument/didChange' then
        publish(params)
      end
      return true
    end,
    is_closing = function() return closing end,
    terminate = function() closing = true end,
  }
end

vim.api.nvim_create_autocmd('FileType', {
  pattern = 'text',
  callback = function(args)
    vim.lsp.start({ name = 'double', cmd = server, root_dir = vim.uv.cwd() }, { bufnr = args.buf })
  end,
})
vim.cmd('filetype on')
