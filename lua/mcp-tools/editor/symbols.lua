--- Names that a file defines: from its language server, else by the look of its lines.
---
--- Receives: a buffer, or lines.
--- Sends: names with their lines, in the order of the file.
--- Does not know about: prompts.

local buffers = require('mcp-tools.editor.buffers')
local turns = require('mcp-tools.util.turns')

local M = {}

--- A language server that takes longer is busy with something else.
local TIMEOUT_MS = 2000
local MAX = 500
--- Lines that are looked at, and bytes of them; a larger file was not written by hand.
local MAX_LINES, MAX_BYTES = 20000, 1024 * 1024
--- Of a line; what it defines stands at its beginning.
local MAX_LINE = 200

--- What begins a definition in languages that people use; the capture is its name. With blanks that are single ones,
--- as they are made before, none of them takes longer than a line is long.
local FORMS = {
  '^%s*local%s+function%s+([%w_.:]+)',
  '^%s*function%s+([%w_.:]+)',
  '^%s*([%w_.:]+)%s*=%s*function',
  '^%s*async%s+def%s+([%w_]+)',
  '^%s*def%s+([%w_.?!]+)',
  '^%s*class%s+([%w_]+)',
  '^%s*export%s+[%w%s]-function%*?%s+([%w_$]+)',
  '^%s*export%s+[%w%s]-class%s+([%w_$]+)',
  '^%s*async%s+function%*?%s+([%w_$]+)',
  '^%s*export%s+const%s+([%w_$]+)',
  '^%s*const%s+([%w_$]+)%s*=%s*[%w%s]*%(',
  '^%s*pub[%w()%s]-fn%s+([%w_]+)',
  '^%s*fn%s+([%w_]+)',
  '^%s*pub[%w()%s]-struct%s+([%w_]+)',
  '^%s*struct%s+([%w_]+)',
  '^%s*func%s+%b()%s*([%w_]+)',
  '^%s*func%s+([%w_]+)',
  '^%s*type%s+([%w_]+)',
  '^[%a_][%w_%s*]-[%s*]([%w_]+)%s*%([^;]*$',
}

--- What looks like the head of a function in C, and is none.
local STATEMENTS = { ['return'] = true, ['if'] = true, ['else'] = true, ['while'] = true, ['for'] = true }

---@class mcp-tools.Symbol
---@field name string
---@field line integer from 1
---@field end_line integer?

local function no_pause() end

--- By the look of the lines.
---@param lines string[]
---@param pause? fun() called between pieces of work
---@return mcp-tools.Symbol[]
function M.of_lines(lines, pause)
  pause = pause or no_pause
  local found = {}
  for number = 1, math.min(#lines, MAX_LINES) do
    local line = lines[number]:sub(1, MAX_LINE):gsub('%s+', ' ')
    pause()
    for _, form in ipairs(FORMS) do
      local name = line:match(form)
      if name and not STATEMENTS[line:match('^%a*')] then
        table.insert(found, { name = name, line = number })
        break
      end
    end
    if #found >= MAX then
      break
    end
  end
  return found
end

---@param items table[] DocumentSymbol[] or SymbolInformation[]
---@param out mcp-tools.Symbol[]
local function flatten(items, out)
  for _, item in ipairs(items) do
    local range = item.range or (item.location and item.location.range)
    if range and #out < MAX then
      table.insert(out, { name = item.name, line = range.start.line + 1, end_line = range['end'].line + 1 })
    end
    if item.children then
      flatten(item.children, out)
    end
  end
  return out
end

--- From the language server of a buffer, else by the look of its lines.
---@param bufnr integer loaded
---@param cb fun(symbols: mcp-tools.Symbol[])
function M.of_buffer(bufnr, cb)
  local method, answered = 'textDocument/documentSymbol', false
  local function finish(found)
    if answered then
      return
    end
    answered = true
    if not vim.api.nvim_buf_is_loaded(bufnr) then
      return cb({}) -- it went while the server was asked
    end
    if found and #found > 0 then
      return cb(found)
    end
    local lines = buffers.some_lines(bufnr, 1, MAX_LINES, MAX_BYTES)
    turns.run(function(pause)
      cb(M.of_lines(lines, pause))
    end)
  end
  if #vim.lsp.get_clients({ bufnr = bufnr, method = method }) == 0 then
    return finish()
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params(bufnr) }
  local cancel = vim.lsp.buf_request_all(bufnr, method, params, function(results)
    local found = {}
    for _, result in pairs(results) do
      flatten(type(result.result) == 'table' and result.result or {}, found)
    end
    finish(found)
  end)
  vim.defer_fn(function()
    if not answered then
      pcall(cancel) -- it throws when the server has died, whose answer then never comes
      finish()
    end
  end, TIMEOUT_MS)
end

return M
