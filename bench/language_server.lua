-- A language server inside the editor with large answers at once, so that only the work of tools is measured.

local M = {}

local function span(first, last, from, to)
  return { start = { line = first, character = from }, ['end'] = { line = last, character = to } }
end

---@param uri string of the large file, whose functions have five lines each
---@param count integer of its functions
---@param others string[] URIs of files that use one of them
local function answers(uri, count, others)
  local symbols, places = {}, {}
  for i = 1, count do
    local name, first = ('step_%d'):format(i), (i - 1) * 5
    local at = span(first, first + 4, 0, 3)
    symbols[i] = { name = name, kind = 12, range = at, selectionRange = span(first, first, 15, 15 + #name) }
  end
  for i, other in ipairs(others) do
    places[i] = { uri = other, range = span(1, 1, 10, 19) }
  end
  local first = span(2499 * 5, 2499 * 5, 15, 24)
  local here = { { uri = uri, range = first } }
  return {
    ['textDocument/documentSymbol'] = symbols,
    ['workspace/symbol'] = function(params)
      local found = {}
      for _, symbol in ipairs(symbols) do
        if #found < 1000 and symbol.name:find(params.query, 1, true) then
          local location = { uri = uri, range = symbol.range }
          table.insert(found, { name = symbol.name, kind = 12, location = location })
        end
      end
      return found
    end,
    ['textDocument/references'] = places,
    ['textDocument/definition'] = here,
    ['textDocument/declaration'] = here,
    ['textDocument/typeDefinition'] = here,
    ['textDocument/implementation'] = places,
    ['textDocument/hover'] = { contents = { kind = 'markdown', value = ('A line of documentation.\n'):rep(100) } },
    ['textDocument/codeAction'] = {},
    ['textDocument/signatureHelp'] = { signatures = { { label = 'step(value)' } } },
  }
end

local CAPABILITIES = {
  textDocumentSync = 1,
  documentFormattingProvider = true,
  documentSymbolProvider = true,
  workspaceSymbolProvider = true,
  referencesProvider = true,
  definitionProvider = true,
  declarationProvider = true,
  typeDefinitionProvider = true,
  implementationProvider = true,
  hoverProvider = true,
  codeActionProvider = true,
  signatureHelpProvider = { triggerCharacters = { '(' } },
}

--- Starts it for a buffer.
---@param bufnr integer
---@param count integer functions of it
---@param others string[] paths of files that use one
---@param more? table<string, any> other answers by method
function M.start(bufnr, count, others, more)
  local uri = vim.uri_from_bufnr(bufnr)
  local known = vim.tbl_extend('force', answers(uri, count, vim.tbl_map(vim.uri_from_fname, others)), more or {})
  local ids, findings = 0, {}
  for i = 1, 1000 do
    local line = (i - 1) * 5
    findings[i] = { range = span(line, line, 0, 8), severity = i % 2 + 1, code = 'c' .. i, message = 'Finding ' .. i }
  end
  local function server(dispatchers)
    local closing = false
    return {
      request = function(method, params, callback)
        ids = ids + 1
        local result = known[method]
        if method == 'initialize' then
          result = { capabilities = CAPABILITIES }
        elseif type(result) == 'function' then
          result = result(params)
        end
        vim.schedule(function()
          callback(nil, result or vim.NIL)
        end)
        return true, ids
      end,
      notify = function(method, params)
        local is_text = method == 'textDocument/didOpen' or method == 'textDocument/didChange'
        if is_text and params.textDocument.uri == uri then
          local said = { uri = uri, version = params.textDocument.version, diagnostics = findings }
          vim.schedule(function()
            dispatchers.notification('textDocument/publishDiagnostics', said)
          end)
        end
        return true
      end,
      is_closing = function()
        return closing
      end,
      terminate = function()
        closing = true
        dispatchers.on_exit(0, 0)
      end,
    }
  end
  local function is_same(client, config)
    return not more and client.name == config.name
  end
  vim.lsp.start({ name = 'bench', cmd = server, root_dir = vim.fn.getcwd() }, { bufnr = bufnr, reuse_client = is_same })
end

return M
