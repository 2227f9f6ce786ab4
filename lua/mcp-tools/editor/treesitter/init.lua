--- Syntax trees by tree-sitter, parsed in time slices, so that large files do not block the main thread.

local highlighting = require('mcp-tools.editor.buffer.highlighting')

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
--- Time of work between two turns of the main loop, ns.
local TURN = 4e6
--- Maximum number of children of a node. Listing those of an ERROR node takes quadratic time, in one step that cannot
--- be interrupted.
local MAX_CHILDREN = 2000

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

---@param lang string
---@param source integer|string
---@param cb fun(root: TSNode?, why: string?)
local function in_slices(lang, source, cb)
  local parser = vim._create_ts_parser(lang) -- in 0.10 only this one has a timeout
  parser:set_timeout(SLICE_US)
  local count = 0
  local function step()
    count = count + 1
    if type(source) == 'number' and not vim.api.nvim_buf_is_loaded(source) then
      return cb(nil, 'the buffer was closed')
    end
    local ok, tree = pcall(parser.parse, parser, nil, source, false)
    if ok and tree then
      return cb(tree:root(), nil)
    elseif count >= MAX_SLICES then
      return cb(nil, ('the treesitter parser for %s takes too long'):format(lang))
    end
    vim.defer_fn(step, 1)
  end
  step()
end

--- Parses a string in slices, as the text of a hidden buffer.
---@param lang string
---@param source string
---@param cb fun(root: TSNode?, why: string?)
local function in_buffer(lang, source, cb)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, vim.split(source:gsub('\n$', ''), '\n', { plain = true }))
  M.parse(
    bufnr,
    lang,
    vim.schedule_wrap(function(root, why)
      pcall(vim.api.nvim_buf_delete, bufnr, { force = true })
      cb(root, why)
    end)
  )
end

--- Parses a text. `cb` is called on the main loop, perhaps before this returns.
---@param source integer|string a loaded buffer, or text
---@param lang string a result of `language`
---@param cb fun(root: TSNode?, why: string?)
function M.parse(source, lang, cb)
  if has_long_line(source) then
    return cb(nil, TOO_LONG)
  end
  if lang == 'markdown' then
    local is_text = type(source) == 'string'
    local lines = is_text and vim.split(source --[[@as string]], '\n', { plain = true })
      or vim.api.nvim_buf_get_lines(source --[[@as integer]], 0, -1, false)
    local why = M.refusal(lines, lang)
    if why then
      return cb(nil, why)
    end
  end
  if not NEW then
    return in_slices(lang, source, cb)
  elseif STRING_AT_ONCE and type(source) == 'string' and #source > MAX_AT_ONCE then
    return in_buffer(lang, source, cb)
  end
  local of = type(source) == 'number' and vim.treesitter.get_parser or vim.treesitter.get_string_parser
  local ok, parser = pcall(of --[[@as function]], source, lang, { error = false })
  if not ok or not parser then
    return cb(nil, ('the treesitter parser for %s cannot be used'):format(lang))
  end
  ---@cast parser vim.treesitter.LanguageTree
  local over, on_parsed = vim.uv.hrtime() + MAX_NS, nil
  local function go_on()
    if type(source) == 'number' and not vim.api.nvim_buf_is_loaded(source) then
      return cb(nil, 'the buffer was closed')
    end
    parser:parse(nil, on_parsed)
  end
  function on_parsed(err, trees)
    if err == 'TIMEOUT' and vim.uv.hrtime() < over then -- of 'redrawtime'; the parser keeps what it has done
      return vim.schedule(go_on)
    end
    local tree = not err and trees and (trees[1] or select(2, next(trees)))
    cb(tree and tree:root() or nil, not tree and ('treesitter: %s'):format(err or 'no tree') or nil)
  end
  go_on()
end

--- Runs an iterator in slices.
---@param next_one fun(): boolean takes one step; false at the end
---@param done fun(ok: boolean, thrown: any)
---@param now? boolean all at once, before this returns
function M.walk(next_one, done, now)
  local function slice()
    local over = now and math.huge or vim.uv.hrtime() + TURN
    while vim.uv.hrtime() < over do -- checked after each step, which may take long
      local ok, more = pcall(next_one)
      if not ok or not more then
        return done(ok, more)
      end
    end
    vim.defer_fn(slice, 1)
  end
  slice()
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
---@param done fun(is_wide: boolean)
---@param now? boolean all at once, before this returns
function M.is_wide(root, done, now)
  local wide, open = false, {}
  local function enter(node)
    if node:has_error() and node:byte_length() > MAX_CHILDREN then
      wide = wide or node:type() == 'ERROR' and node:child_count() > MAX_CHILDREN
      table.insert(open, node:iter_children())
    end
  end
  enter(root)
  M.walk(function()
    if wide or #open == 0 then
      return false
    end
    local child = open[#open]()
    if child then
      enter(child)
    else
      table.remove(open)
    end
    return true
  end, function(ok)
    done(wide or not ok)
  end, now)
end

--- Parses a text whose tree can be searched. `cb` is called on the main loop, perhaps before this returns.
---@param source integer|string
---@param lang string
---@param cb fun(root: TSNode?, why: string?)
function M.parse_narrow(source, lang, cb)
  M.parse(source, lang, function(root, why)
    if not root or type(source) == 'number' and not vim.api.nvim_buf_is_loaded(source) then
      return cb(nil, why or 'the buffer was closed')
    end
    M.is_wide(root, function(is_wide)
      cb(not is_wide and root or nil, is_wide and 'a syntax error makes its tree too wide to search' or nil)
    end)
  end)
end

return M
