--- Where a symbol is used, and in which other symbol: by its language server, else wherever the word stands.
---
--- Receives: a symbol of a loaded buffer; the ctx of a `run` tool.
--- Sends: places with their lines and what is around them; which of the two it was.
--- Does not know about: how they are shown.

local access = require('mcp-tools.files.access')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local file_type = require('mcp-tools.editor.file.filetype')
local in_text = require('mcp-tools.editor.symbol.in_text')
local lsp = require('mcp-tools.editor.lsp')
local name_path = require('mcp-tools.editor.symbol.name_path')
local nodes = require('mcp-tools.editor.symbol.nodes')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.lsp.position')
local search = require('mcp-tools.editor.search')
local matches_text = require('mcp-tools.editor.search.matches_text')
local source = require('mcp-tools.editor.symbol.source')
local symbol = require('mcp-tools.editor.symbol')
local target = require('mcp-tools.editor.buffer.target')
local contents = require('mcp-tools.editor.buffer.contents')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

local METHOD = 'textDocument/references'
--- Files that are loaded so that their server names what is around a place.
local MAX_LOADED = 10

---@class mcp-tools.Reference
---@field row integer from 0
---@field col integer from 0, in `units`
---@field units mcp-tools.lsp.Encoding

---@class mcp-tools.ReferenceRow one line
---@field row integer from 0
---@field column integer from 1, in characters, of the first on it
---@field count integer
---@field text string? the line
---@field around string? name path

---@class mcp-tools.ReferenceFile
---@field path string resolved
---@field shown string
---@field count integer
---@field rows mcp-tools.ReferenceRow[]
---@field why string? its lines are withheld

---@class mcp-tools.References
---@field files mcp-tools.ReferenceFile[]
---@field total integer
---@field by string
---@field guessed boolean the word stands there; nobody says that the symbol is meant
---@field incomplete string?

--- By the server.
---@param ctx mcp-tools.Ctx
---@param picked mcp-tools.PickedSymbol
---@return table<string, mcp-tools.Reference[]>? by resolved path
---@return mcp-tools.Error? err
---@return string? incomplete
---@return string? by
local function by_server(ctx, picked)
  local node = picked.node
  local line = vim.api.nvim_buf_get_lines(picked.source.bufnr, node.at[1], node.at[1] + 1, false)[1] or ''
  -- Some count the keyword to the name's place.
  local at = position.byte(line, node.at[2], node.units)
  local first = line:find(name_path.word(node.name) or node.name, at + 1, true)
  at = first and first - 1 or at
  local col = position.units(line, at, node.units)
  local asked = {}
  local function params(client)
    table.insert(asked, client.name)
    return {
      textDocument = { uri = vim.uri_from_bufnr(picked.source.bufnr) },
      position = { line = node.at[1], character = position.units(line, at, client.offset_encoding) },
      context = { includeDeclaration = false },
    }
  end
  local result, err, info = lsp.request(ctx, picked.source.bufnr, METHOD, params)
  if err then
    return nil, err
  end
  local found, path_of, pause = {}, {}, time_slice.of(ctx)
  for _, item in ipairs(result or {}) do
    pause()
    if item.uri:find('^file:') then
      path_of[item.uri] = path_of[item.uri] or paths.resolve(vim.uri_to_fname(item.uri))
      local path, from = path_of[item.uri], item.range.start
      local is_itself = path == picked.source.path and from.line == node.at[1] and from.character == col
      if not is_itself then
        found[path] = found[path] or {}
        local units = info and info.client.offset_encoding or 'utf-16'
        table.insert(found[path], { row = from.line, col = from.character, units = units })
      end
    end
  end
  return found, nil, info and info.incomplete, info and info.client.name or table.concat(asked, ', ')
end

--- By the word.
---@param ctx mcp-tools.Ctx
---@param picked mcp-tools.PickedSymbol
---@return table<string, mcp-tools.Reference[]>? by resolved path
---@return mcp-tools.Error? err
local function by_word(ctx, picked)
  local word = name_path.word(picked.node.name)
  if not word then
    local text = 'symbol: %s is no word that could be looked for, and no language server is there to ask'
    return nil, errors.new('not_found', text:format(picked.path))
  end
  local found, err = search.find(ctx, { query = word, word = true }, {})
  if not found then
    return nil, err
  end
  local out = {}
  for _, file in ipairs(found.files) do
    for _, match in ipairs(file.matches) do
      local own = file.path == picked.source.path and match.row == picked.node.at[1]
      if not own then
        out[file.path] = out[file.path] or {}
        table.insert(out[file.path], { row = match.row, col = match.col, units = 'utf-8' })
      end
    end
  end
  return out
end

---@param path string
---@return string
local function extension_of(path)
  return path:match('%.([^./]+)$') or ''
end

--- Returns the symbols of a file that uses another one.
---@param ctx mcp-tools.Ctx
---@param path string
---@param text mcp-tools.Text
---@param looks { of_text: function, left: integer, extension: string? } `left`: how many files may still be loaded
---@return mcp-tools.SymbolFile?
local function symbols_of(ctx, path, text, looks)
  local file = ctx:await(function(done)
    if text.bufnr then
      ctx:on_cancel(symbol.of_buffer(text.bufnr, done))
    else
      looks.of_text(vim.split(text.text, '\n', { plain = true }), file_type.of(path), done)
    end
  end)
  if file and file.by == 'nothing' and not text.bufnr and extension_of(path) == looks.extension and looks.left > 0 then
    looks.left = looks.left - 1
    local loaded = source.find(ctx, { path = path }) -- leased: the next question finds it loaded
    return loaded and loaded.file or file
  end
  return file
end

--- Adds the lines of a file and the symbols around them.
---@param file mcp-tools.ReferenceFile
---@param list mcp-tools.Reference[]
---@param text mcp-tools.Text?
---@param symbols mcp-tools.SymbolFile?
---@param pause fun()
local function fill(file, list, text, symbols, pause)
  table.sort(list, function(a, b)
    return a.row == b.row and a.col < b.col or a.row < b.row
  end)
  local row_of, names = matches_text.rows(text and text.text or ''), {}
  for _, each in ipairs(list) do
    local last = file.rows[#file.rows]
    if last and last.row == each.row then
      last.count = last.count + 1
    else
      pause()
      local line = text and row_of(each.row)
      local around = symbols and nodes.around(symbols.tree, each.row + 1)
      if around and not names[around] then
        names[around] = name_path.of(around, symbols.tree)
      end
      table.insert(file.rows, {
        row = each.row,
        column = position.to_client(line, each.col, each.units),
        count = 1,
        text = line,
        around = around and names[around] or nil,
      })
    end
  end
end

--- Finds what uses a symbol.
---@param ctx mcp-tools.Ctx in a coroutine
---@param picked mcp-tools.PickedSymbol
---@return mcp-tools.References?
---@return mcp-tools.Error? err
function M.find(ctx, picked)
  local found, err, incomplete, by = by_server(ctx, picked)
  local guessed = false
  if not found and err and err.code == 'not_found' then
    guessed = true
    found, err = by_word(ctx, picked)
  end
  if not found then
    return nil, err
  end
  local made = { files = {}, total = 0, guessed = guessed, by = by or 'the word alone', incomplete = incomplete }
  local readable, pause, refusal = {}, time_slice.of(ctx), target.path_refusals(ctx)
  for path, list in pairs(found) do
    pause()
    local refused, why = refusal(path)
    local file = { path = path, shown = access.shown(path, ctx.root), count = #list, rows = {}, why = why }
    table.insert(made.files, file)
    made.total = made.total + #list
    if not refused then
      table.insert(readable, path)
    end
  end
  table.sort(made.files, function(a, b)
    return a.shown < b.shown
  end)
  local read, of_path = {}, buffers.of_paths()
  for first = 1, #readable, contents.AT_ONCE do
    local part = contents.of(ctx, vim.list_slice(readable, first, first + contents.AT_ONCE - 1), of_path)
    for path, text in pairs(part) do
      read[path] = text
    end
  end
  pause = time_slice.of(ctx) -- what was waited for is no work
  local extension = not guessed and picked.source.path and extension_of(picked.source.path) or nil
  local looks = { of_text = in_text.of_texts(), left = MAX_LOADED, extension = extension }
  for _, file in ipairs(made.files) do
    local text = not file.why and read[file.path] or nil
    fill(file, found[file.path], text, text and symbols_of(ctx, file.path, text, looks), pause)
    pause()
  end
  return made
end

return M
