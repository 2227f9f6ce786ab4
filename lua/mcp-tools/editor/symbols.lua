--- Names that a file defines: from its language server, else by the look of its lines.
---
--- Receives: a buffer, or lines.
--- Sends: names with their lines, in the order of the file.
--- Does not know about: prompts.

local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
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
---@field path string? with the names of what it stands in: `Class/method`
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
---@param above string? path of what they stand in
local function flatten(items, out, above)
  for _, item in ipairs(items) do
    local range = item.range or (item.location and item.location.range)
    local container = above
      or (type(item.containerName) == 'string' and item.containerName ~= '' and item.containerName)
    local path = container and container .. '/' .. item.name or item.name
    if range and #out < MAX then
      table.insert(out, {
        name = item.name,
        path = path,
        line = range.start.line + 1,
        end_line = range['end'].line + 1,
      })
    end
    if item.children then
      flatten(item.children, out, path)
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

--- Names that are told where none or several fit.
local MAX_TOLD = 20

---@param list mcp-tools.Symbol[]
---@return string
local function told(list)
  local names = {}
  for i = 1, math.min(#list, MAX_TOLD) do
    names[i] = ('%s (line %d)'):format(list[i].path or list[i].name, list[i].line)
  end
  return table.concat(names, ', ') .. (#list > MAX_TOLD and ', …' or '')
end

--- Is it meant by a name? `parse`, `Parser/parse` and `Parser.parse` mean the same method; a slash at the start means
--- what stands in nothing.
---@param symbol mcp-tools.Symbol
---@param wanted string
local function is_meant(symbol, wanted)
  local path = '/' .. (symbol.path or symbol.name):gsub('[.:]', '/')
  wanted = wanted:gsub('[.:]', '/')
  if wanted:sub(1, 1) == '/' then
    return path == wanted
  end
  return vim.endswith(path, '/' .. wanted)
end

--- The lines of the symbol that a name means.
---@param list mcp-tools.Symbol[] in the order of the file
---@param wanted string
---@param total integer lines of the file
---@return { start_line: integer, end_line: integer }?
---@return mcp-tools.Error? err
function M.range_of(list, wanted, total)
  local found = vim.tbl_filter(function(symbol)
    return is_meant(symbol, wanted)
  end, list)
  if #found == 0 then
    local text = #list > 0 and 'symbol: there is no %s here; there are %s'
      or 'symbol: no %s was found here, nor any other%s'
    return nil, errors.new('not_found', text:format(wanted, told(list)))
  elseif #found > 1 then
    local text = 'symbol: %s is there %d times: %s; name what it stands in, or read by lines'
    return nil, errors.new('validation_error', text:format(wanted, #found, told(found)))
  end
  local first, last = found[1].line, found[1].end_line
  for _, symbol in ipairs(not last and list or {}) do
    if symbol.line > first and (not last or symbol.line <= last) then
      last = symbol.line - 1
    end
  end
  return { start_line = first, end_line = math.min(last or total, total) }
end

return M
