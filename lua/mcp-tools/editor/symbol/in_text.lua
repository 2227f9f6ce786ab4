--- Symbols of a text by its syntax tree.
---
--- Receives: a loaded buffer, or lines that are in no buffer; their filetype.
--- Sends: trees of symbols; those of lines are kept.
--- Does not know about: language servers, files.

local from_syntax = require('mcp-tools.editor.symbol.from_syntax')
local nodes = require('mcp-tools.editor.symbol.nodes')
local time_slice = require('mcp-tools.util.time_slice')
local treesitter = require('mcp-tools.editor.treesitter')

local M = {}

--- Texts whose symbols are kept.
local MAX_KEPT = 64
--- Bytes of a text whose symbols are kept.
local MAX_KEPT_TEXT = 256 * 1024
--- Symbols of texts that are in no buffer, by the whole text: what has changed is another one.
---@type table<string, { filetype: string, language: string, file: mcp-tools.SymbolFile }>
local texts, texts_count = {}, 0

--- Symbols of a text: of a buffer, or of lines that are in none. `cb` is called on the main loop, perhaps before this
--- returns.
---@param source integer|string[]
---@param filetype string
---@param cb fun(file: mcp-tools.SymbolFile)
---@param now? boolean in one go, before this returns, for small texts
function M.ask(source, filetype, cb, now)
  local text = type(source) == 'table' and table.concat(source, '\n') .. '\n' or source
  from_syntax.ask(text --[[@as integer|string]], filetype, function(tree, lang, why)
    if tree then
      return time_slice.run(function(pause)
        cb({ tree = nodes.prune(tree, pause), by = 'treesitter', name = lang })
      end, now)
    end
    cb({ tree = {}, by = 'nothing', why = why })
  end, now)
end

--- Symbols of texts that are in no buffer, one after the other: which parsers there are is looked up once, on the disk.
--- `cb` is called on the main loop, perhaps before this returns.
---@return fun(lines: string[], filetype: string, cb: fun(file: mcp-tools.SymbolFile), now?: boolean) of `now`: in one
---  go, before this returns, for small texts
function M.of_texts()
  local languages = {}
  return function(lines, filetype, cb, now)
    local text = table.concat(lines, '\n')
    languages[filetype] = languages[filetype] or treesitter.language(filetype) or ''
    local before, language = texts[text], languages[filetype]
    if before and before.filetype == filetype and before.language == language then
      return cb(before.file)
    end
    M.ask(lines, filetype, function(file)
      local whole = file.by == 'treesitter' or language == '' -- else the parser has failed, this time
      if whole and #text <= MAX_KEPT_TEXT then
        texts_count = texts[text] and texts_count or texts_count + 1
        if texts_count > MAX_KEPT then
          texts, texts_count = {}, 1
        end
        texts[text] = { filetype = filetype, language = language, file = file }
      end
      cb(file)
    end, now)
  end
end

--- Symbols of one such text.
---@param lines string[]
---@param filetype string
---@param cb fun(file: mcp-tools.SymbolFile)
---@param now? boolean
function M.of_text(lines, filetype, cb, now)
  M.of_texts()(lines, filetype, cb, now)
end

return M
