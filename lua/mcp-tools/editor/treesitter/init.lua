--- Syntax trees by tree-sitter, parsed in time slices, so that large files do not block the main thread.

local highlighting = require('mcp-tools.editor.buffer.highlighting')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

local NEW = vim.fn.has('nvim-0.11') == 1
--- Neovim parses strings all at once, even if asked for slices. Buffers are parsed in slices.
local STRING_AT_ONCE = vim.fn.has('nvim-0.12') == 1
--- Number of bytes that are parsed in a few ms.
local MAX_AT_ONCE = 16 * 1024
--- Length of a slice, µs, where Neovim itself does not parse in slices.
local SLICE_US = 4000
--- Maximum number of slices, or ns, for one text.
local MAX_SLICES, MAX_NS = 2000, 8e9
--- Maximum number of children of a node. Listing those of an ERROR node takes quadratic time, in one step that cannot
--- be interrupted.
local MAX_CHILDREN = 2000
--- Maximum depth of a tree that is queried without a pause.
local MAX_DEPTH = 200

--- The runtime path is searched again for a missing parser after this time, ns.
local MISSING = 10e9
---@type table<string, integer> language without a parser → ns
local missing = {}

--- Returns the language of a filetype if a parser is installed.
---@param filetype string
---@return string? lang
---@return string? why there is none
function M.language(filetype)
  if filetype == '' then
    return nil, 'its filetype is not known'
  end
  local lang = vim.treesitter.language.get_lang(filetype) or filetype
  local is_missing = missing[lang] and vim.uv.hrtime() - missing[lang] < MISSING
  local ok, loaded = pcall(is_missing and error or vim.treesitter.language.add, lang)
  if not ok or NEW and not loaded then
    missing[lang] = is_missing and missing[lang] or vim.uv.hrtime()
    return nil, ('no treesitter parser for %s is installed'):format(lang)
  end
  return lang
end

--- Maximum length of a line, bytes. Neovim parses a line, and searches its tree, in one step without a pause.
local MAX_LINE = 100 * 1024
--- Maximum size of a text, bytes. The parser does not check its time slice in each step, and large texts have longer
--- steps.
local MAX_BYTES = 1024 * 1024
local TOO_LARGE = ('it is larger than %d KB'):format(MAX_BYTES / 1024)
local TOO_LONG = ('one of its lines is longer than %d KB'):format(MAX_LINE / 1024)
--- Number of rows whose length is checked at once.
local ROWS = 64

--- Returns whether a line is too long to parse.
---@param source integer|string
---@return boolean
local function has_long_line(source)
  if type(source) == 'string' then
    local at = 1
    while #source - at >= MAX_LINE do
      local stop = source:find('\n', at, true) or #source + 1
      if stop - at > MAX_LINE then
        return true
      end
      at = stop + 1
    end
    return false
  end
  local count, offset = vim.api.nvim_buf_line_count(source), vim.api.nvim_buf_get_offset
  local function is_longer(first, last)
    return offset(source, last) - offset(source, first) > MAX_LINE + 1 -- with the line break
  end
  for first = 0, count - 1, ROWS do
    local last = math.min(first + ROWS, count)
    for row = first, is_longer(first, last) and last - 1 or -1 do
      if is_longer(row, row + 1) then
        return true
      end
    end
  end
  return false
end

---@param source integer|string
---@return integer bytes
local function size_of(source)
  if type(source) == 'string' then
    return #source --[[@as string]]
  end
  return vim.api.nvim_buf_get_offset(source --[[@as integer]], vim.api.nvim_buf_line_count(source --[[@as integer]]))
end

--- Returns why lines must not be parsed.
---@param lines string[]
---@param lang string
---@return string?
function M.refusal(lines, lang)
  for _, line in ipairs(lang == 'markdown' and lines or {}) do
    if highlighting.is_nested(line) then
      return ('one of its lines has more than %d nested blocks'):format(highlighting.MAX_BLOCKS)
    end
  end
end

local CLOSED = 'the buffer was closed'
--- Time between two checks of whether a buffer was closed, ms.
local CLOSED_POLL_MS = 100

---@param source integer|string
---@return boolean
local function is_closed(source)
  return type(source) == 'number' and not vim.api.nvim_buf_is_loaded(source)
end

--- Creates a parser and a function that continues its work for one slice.
---@param lang string
---@param us integer length of a slice, µs
---@return table parser
---@return fun(source: integer|string): TSTree? parse nil: not finished
local function sliced(lang, us)
  local parser = vim._create_ts_parser(lang)
  if parser.set_timeout then -- not in 0.12
    parser:set_timeout(us)
  end
  return parser,
    function(source)
      ---@diagnostic disable-next-line: redundant-parameter (Neovim 0.12 takes the time here)
      local ok, tree = pcall(parser.parse, parser, nil, source, false, us * 1000)
      return ok and tree or nil
    end
end

---@param ctx mcp-tools.Ctx
---@param source integer|string
---@param lang string
---@return TSNode? root
---@return string? why
local function in_slices(ctx, source, lang)
  local _, parse = sliced(lang, SLICE_US)
  for _ = 1, MAX_SLICES do
    local tree = parse(source)
    if tree then
      return tree:root()
    end
    ctx:await(function(done)
      vim.defer_fn(done, 1)
    end)
    if is_closed(source) then
      return nil, CLOSED
    end
  end
  return nil, ('the treesitter parser for %s takes too long'):format(lang)
end

---@param text string
---@return integer bufnr of a hidden buffer
local function hidden_buffer(text)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, vim.split(text:gsub('\n$', ''), '\n', { plain = true }))
  return bufnr
end

local function delete(bufnr)
  pcall(vim.api.nvim_buf_delete, bufnr, { force = true })
end

--- Parses a short text without a pause.
---@param text string
---@param lang string
---@param seconds number maximum time
---@return TSNode? root nil if the time was too short
function M.parse_now(text, lang, seconds)
  local ok, _, parse = pcall(sliced, lang, seconds * 1e6)
  if not ok then
    return nil
  end
  local source = STRING_AT_ONCE and hidden_buffer(text) or text
  local tree = parse(source)
  if source ~= text then
    delete(source)
  end
  return tree and tree:root()
end

--- Parses a string in slices, as the text of a hidden buffer.
---@param ctx mcp-tools.Ctx
---@param source string
---@param lang string
---@return TSNode? root
---@return string? why
local function in_buffer(ctx, source, lang)
  local bufnr = hidden_buffer(source)
  ctx:on_cancel(function()
    delete(bufnr)
  end)
  local root, why = M.parse(ctx, bufnr, lang)
  delete(bufnr)
  return root, why
end

--- Parses a text.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param source integer|string a loaded buffer, or text
---@param lang string a result of `language`
---@return TSNode? root
---@return string? why
function M.parse(ctx, source, lang)
  if size_of(source) > MAX_BYTES then
    return nil, TOO_LARGE
  elseif has_long_line(source) then
    return nil, TOO_LONG
  end
  if lang == 'markdown' then
    local is_text = type(source) == 'string'
    local lines = is_text and vim.split(source --[[@as string]], '\n', { plain = true })
      or vim.api.nvim_buf_get_lines(source --[[@as integer]], 0, -1, false)
    local why = M.refusal(lines, lang)
    if why then
      return nil, why
    end
  end
  if not NEW then
    return in_slices(ctx, source, lang)
  elseif STRING_AT_ONCE and type(source) == 'string' and #source > MAX_AT_ONCE then
    return in_buffer(ctx, source, lang)
  end
  local of = type(source) == 'number' and vim.treesitter.get_parser or vim.treesitter.get_string_parser
  local ok, parser = pcall(of --[[@as function]], source, lang, { error = false })
  if not ok or not parser then
    return nil, ('the treesitter parser for %s cannot be used'):format(lang)
  end
  ---@cast parser vim.treesitter.LanguageTree
  local over = vim.uv.hrtime() + MAX_NS
  local err, trees
  repeat
    if is_closed(source) then
      return nil, CLOSED
    end
    err, trees = ctx:await(function(done)
      local timer = assert(vim.uv.new_timer())
      local function finish(...)
        if not timer:is_closing() then
          timer:close()
          done(...)
        end
      end
      -- The parser does not report that its buffer was deleted.
      timer:start(
        CLOSED_POLL_MS,
        CLOSED_POLL_MS,
        vim.schedule_wrap(function()
          if is_closed(source) then
            finish(CLOSED)
          end
        end)
      )
      parser:parse(nil, vim.schedule_wrap(finish))
    end)
  until err ~= 'TIMEOUT' or vim.uv.hrtime() > over -- of 'redrawtime'; the parser keeps what it has done
  if err == CLOSED then
    return nil, CLOSED
  end
  local tree = not err and trees and (trees[1] or select(2, next(trees)))
  if not tree then
    return nil, ('treesitter: %s'):format(err or 'no tree')
  end
  return tree:root()
end

--- Returns the child of a node in a field.
---@param node TSNode
---@param name string
---@return TSNode? child nil for a node with too many children to search
function M.field(node, name)
  return node:child_count() <= MAX_CHILDREN and node:field(name)[1] or nil
end

--- Reports whether a syntax error has left a node with too many children to search the tree. Nodes with fewer bytes
--- cannot have as many children, and a subtree without errors has no ERROR node.
---@param root TSNode
---@param pause fun()
---@return boolean
function M.is_wide(root, pause)
  local open = {}
  local function enter(node)
    if node:has_error() and node:byte_length() > MAX_CHILDREN then
      table.insert(open, node:iter_children())
      return node:type() == 'ERROR' and node:child_count() > MAX_CHILDREN
    end
  end
  local is_wide = enter(root)
  while not is_wide and #open > 0 do
    local child = open[#open]()
    if child then
      is_wide = enter(child)
    else
      table.remove(open)
    end
    pause()
  end
  return is_wide == true
end

--- Reports whether nodes are nested too deeply, or have too many children, to search the tree in short steps.
---@param root TSNode
---@return boolean
function M.is_complex(root)
  local open = { root:iter_children() }
  local is_wide = root:child_count() > MAX_CHILDREN
  while not is_wide and #open > 0 and #open <= MAX_DEPTH do
    local child = open[#open]()
    if not child then
      table.remove(open)
    elseif child:byte_length() > MAX_DEPTH then -- shorter nodes add little depth
      is_wide = child:child_count() > MAX_CHILDREN
      table.insert(open, (child:iter_children()))
    end
  end
  return is_wide or #open > MAX_DEPTH
end

--- Parses a text whose tree can be searched.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param source integer|string
---@param lang string
---@return TSNode? root
---@return string? why
function M.parse_narrow(ctx, source, lang)
  local root, why = M.parse(ctx, source, lang)
  if not root or is_closed(source) then
    return nil, why or CLOSED
  elseif M.is_wide(root, time_slice.of(ctx)) then
    return nil, 'a syntax error makes its tree too wide to search'
  end
  return root
end

return M
