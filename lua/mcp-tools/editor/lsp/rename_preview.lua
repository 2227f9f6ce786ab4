--- Preview of a rename: what is said of it before it runs, to the person who is asked.
---
--- Receives: the arguments of a tool.
--- Sends: the difference, once a dry run has told it; until then the call in words; or why it cannot work.
--- Does not know about: approval, what servers are asked.

local precheck = require('mcp-tools.editor.lsp.precheck')
local buffers = require('mcp-tools.editor.buffer')
local rename = require('mcp-tools.editor.lsp.rename')
local dry_run = require('mcp-tools.editor.lsp.dry_run')
local strings = require('mcp-tools.util.strings')

local M = {}

--- The word at a place of an open file, for a person to whom line and column say little.
---@param args table
---@return string?
local function word_at(args)
  local found = args.line and args.column and buffers.find(args, { current = true })
  if not found or not found.bufnr or not vim.api.nvim_buf_is_loaded(found.bufnr) then
    return nil
  end
  local line = vim.api.nvim_buf_get_lines(found.bufnr, args.line - 1, args.line, false)[1]
  local byte = line and vim.fn.byteidxcomp(line, args.column - 1) or -1
  if byte < 0 then
    return nil
  end
  local word = strings.last_word(line:sub(1, byte)) .. line:sub(byte + 1):match('^[%w_\128-\255]*')
  return word ~= '' and word or nil
end

--- What is said of a call before it runs.
---@param args table
---@param again? fun(err: mcp-tools.Error?)
---@return string?
---@return mcp-tools.Error? err
function M.preview(args, again)
  local err = precheck.refusal_at(args, rename.METHOD)
  if err then
    return nil, err
  end
  local where = args.path or (args.bufnr and 'buffer ' .. args.bufnr) or 'the current file'
  local at = args.symbol and ('%q'):format(args.symbol) or ('column %s'):format(args.column or 'of the cursor')
  local word = word_at(args)
  local what = word and ('"%s"'):format(word) or 'what stands'
  local text = 'renames %s at %s, line %s, %s, to %s in all of the project'
  text = text:format(what, where, args.line or 'of the cursor', at, args.new_name)
  return dry_run.preview(rename.METHOD, args, text, rename.run, again)
end

return M
