--- Notes the state of a file and its text when Neovim reads or writes it: most checks need not read the file, and the
--- text can be compared later, after the user has changed the buffer.
---
--- Neovim does not nest autocommands, so the state of a file that another autocommand reads or writes is not noted.

local paths = require('mcp-tools.files.paths')

local api = vim.api

local M = {}

--- Maximum size of a text that is noted, bytes.
local MAX_TEXT = 1024 * 1024

--- What is known of a buffer's file, in `b:mcp_tools_file`.
---@class mcp-tools.KnownFile
---@field read string? stamp of the file that was read or written last
---@field other string? stamp of a file that is in conflict with the buffer
---@field text string? hash of the text that was read or written last
---@field saves integer? number of writes by Neovim until then

---@param bufnr integer valid
---@return mcp-tools.KnownFile
function M.get(bufnr)
  return vim.b[bufnr].mcp_tools_file or {}
end

--- Returns how often Neovim has written a buffer, also while autocommands were skipped.
---@param bufnr integer valid
---@return integer
function M.saves(bufnr)
  return vim.fn.undotree(bufnr).save_last
end

--- Returns the hash of a text; nil if it is large or has NUL bytes.
---@param text string with "\n" at the end of each line
---@return string?
function M.hash(text)
  return #text <= MAX_TEXT and not text:find('\0', 1, true) and vim.fn.sha256(text) or nil
end

--- Notes the text of a buffer unless it is modified.
---@param bufnr integer
local function note_text(bufnr)
  if api.nvim_buf_is_loaded(bufnr) and not vim.bo[bufnr].modified then
    local known, last = M.get(bufnr), api.nvim_buf_line_count(bufnr)
    local is_small = api.nvim_buf_get_offset(bufnr, last) <= MAX_TEXT
    local lines = is_small and api.nvim_buf_get_lines(bufnr, 0, -1, false)
    known.text = lines and M.hash(table.concat(lines, '\n') .. '\n')
    known.saves = M.saves(bufnr)
    vim.b[bufnr].mcp_tools_file = known
  end
end

---@param bufnr integer
---@param known mcp-tools.KnownFile without `text`: that of a modified buffer stays
function M.set(bufnr, known)
  if api.nvim_buf_is_valid(bufnr) then
    local before = M.get(bufnr)
    known.text, known.saves = before.text, before.saves
    vim.b[bufnr].mcp_tools_file = known
    note_text(bufnr)
  end
end

--- What Neovim is doing with a buffer, with the state of the file before: plugins also run the events afterwards alone.
---@type table<integer, { kind: 'Read'|'Write', stamp: string? }?>
local begun = {}

--- Notes the state of a file that was just read or written. Its text is noted after the autocommands, which may change
--- it, or after 'modified' was reset, for example by a write that skipped autocommands.
---@param args { buf: integer, event: string?, file: string? } of the autocommand
function M.note(args)
  local path = api.nvim_buf_get_name(args.buf)
  local kind, phase = args.event:match('^Buf(%a+)(P%a+)$')
  local is_copy = kind == 'Write' and vim.fn.fnamemodify(args.file, ':p') ~= path -- `:write OTHER`
  if path == '' or vim.bo[args.buf].buftype ~= '' or is_copy then
    return
  elseif phase == 'Pre' then
    begun[args.buf] = { kind = kind, stamp = paths.stamp(path) }
    return
  elseif phase == 'Post' and begun[args.buf] and begun[args.buf].kind == kind then
    -- Another program may change a file while it is read. The earlier text is outdated.
    vim.b[args.buf].mcp_tools_file = { read = kind == 'Write' and paths.stamp(path) or begun[args.buf].stamp }
    begun[args.buf] = nil
  end
  if not vim.bo[args.buf].modified then
    vim.schedule(function()
      note_text(args.buf)
    end)
  end
end

--- Starts to note; replaces the autocommand of plugin/mcp-tools.lua.
function M.start()
  api.nvim_create_autocmd({ 'BufReadPre', 'BufReadPost', 'BufWritePre', 'BufWritePost', 'BufModifiedSet' }, {
    group = api.nvim_create_augroup('mcp-tools.read_stamp', {}),
    desc = 'mcp-tools: note the state of a file that was read or written',
    callback = M.note,
  })
end

return M
