--- Writes a buffer to its file without asking the user.
---
--- Autocommands run as with `:write`. What `:write` would ask about is checked first: a file that was changed or made
--- read-only since it was read is not overwritten. Neovim opens the file by its name, which may have become a link to a
--- file that the call must not write; so where the name leads is checked again after the last autocommand.

local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local paths = require('mcp-tools.files.paths')
local read_stamp = require('mcp-tools.editor.buffer.read_stamp')

local api, uv = vim.api, vim.uv

local M = {}

--- Write permission of the owner, the group and others.
local WRITABLE = tonumber('222', 8)

--- Returns the first line of an Ex command's error, without the source position.
---@param thrown any
---@return string
function M.plain(thrown)
  local text = tostring(thrown):match('[^\n]*')
  return text:match('Vim%([%w_]*%):(.*)$') or text:match('Vim:(.*)$') or (text:gsub('^.-:%d+: ', ''))
end

--- Returns why a buffer cannot be written.
---@param bufnr integer loaded
---@return mcp-tools.Error?
function M.refusal(bufnr)
  local options = vim.bo[bufnr]
  if options.buftype ~= '' and options.buftype ~= 'acwrite' then
    local text = '%s is a %s buffer and has no file'
    return errors.new('tool_error', text:format(buffers.shown(bufnr), options.buftype))
  elseif api.nvim_buf_get_name(bufnr) == '' then
    return errors.new('tool_error', ('buffer %d has no file name; the user must name it'):format(bufnr))
  elseif options.readonly then
    local text = "%s is not written: it is read-only ('readonly')"
    return errors.new('tool_error', text:format(buffers.shown(bufnr)))
  end
end

--- Error for a file that changed on disk while its buffer has unsaved changes.
---@param bufnr integer
---@return mcp-tools.Error
function M.conflict(bufnr)
  local text =
    '%s changed on disk since it was read and is not overwritten; change_list with unsaved shows the difference'
  return errors.new('stale', text:format(buffers.shown(bufnr)))
end

--- Returns an error if the file's encoding cannot represent the text: `:write!` would write question marks.
---@param bufnr integer loaded
---@return mcp-tools.Error?
local function unwritable(bufnr)
  local encoding = vim.bo[bufnr].fileencoding
  if encoding == '' or encoding:find('^utf') or encoding:find('^ucs') then
    return nil
  end
  local text = table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n')
  local encoded = vim.iconv(text, 'utf-8', encoding)
  if type(encoded) ~= 'string' or vim.iconv(encoded, encoding, 'utf-8') ~= text then
    local fault = '%s is not written: its encoding (%s) cannot represent this text'
    return errors.new('tool_error', fault:format(buffers.shown(bufnr), encoding))
  end
end

--- Returns why the file of a buffer must not be overwritten.
---@param bufnr integer
---@param overwrite boolean?
---@return mcp-tools.Error?
local function overwrite_refusal(bufnr, overwrite)
  if disk.check(bufnr) == 'conflict' and not overwrite then
    return M.conflict(bufnr)
  end
  local stat = vim.bo[bufnr].buftype == '' and uv.fs_stat(api.nvim_buf_get_name(bufnr))
  if stat and bit.band(stat.mode, WRITABLE) == 0 then
    return errors.new('tool_error', ('%s is not written: the file is read-only'):format(buffers.shown(bufnr)))
  end
end

--- Returns an error if a buffer's name no longer leads to this file.
---@param bufnr integer
---@param path string? resolved
---@return mcp-tools.Error?
local function replaced(bufnr, path)
  if path and paths.resolve(api.nvim_buf_get_name(bufnr)) ~= path then
    return errors.new('access_denied', ('%s was replaced after it was approved'):format(buffers.shown(bufnr)))
  end
end

--- Writes a buffer without waiting. A file that changed since it was read is `stale`.
---@param bufnr integer loaded
---@param opts? { path: string?, overwrite: boolean?, keep_end: boolean?, as_is: boolean? } `path`: the resolved file
---  that the call may write; `overwrite`: even if the file has changed; `keep_end`: add no line break at the end,
---  whatever 'fixendofline' is; `as_is`: run no `BufWritePre` (formatters)
---@return mcp-tools.Error? err
function M.now(bufnr, opts)
  opts = opts or {}
  local err = M.refusal(bufnr)
    or replaced(bufnr, opts.path)
    or overwrite_refusal(bufnr, opts.overwrite)
    or unwritable(bufnr)
  if err then
    return err
  end
  local options = vim.bo[bufnr]
  local fixes = options.fixendofline
  -- A file that the user has not opened keeps its last line break or the lack of one.
  if opts.keep_end or not options.buflisted and #vim.fn.win_findbuf(bufnr) == 0 then
    options.fixendofline = false
  end
  local ignored = vim.go.eventignore
  if opts.as_is then
    vim.go.eventignore = ignored == '' and 'BufWritePre' or ignored .. ',BufWritePre'
  end
  local hook = api.nvim_create_autocmd('BufWritePre', { -- runs last
    buffer = bufnr,
    callback = function()
      err = replaced(bufnr, opts.path)
      assert(not err, 'it was replaced') -- ends `:write`
    end,
  })
  -- `!`: what `:write` would ask about has been checked.
  local ok, thrown = pcall(api.nvim_buf_call, bufnr, function()
    vim.cmd('silent lockmarks keepalt keepjumps write!')
  end)
  pcall(api.nvim_del_autocmd, hook)
  if opts.as_is then
    vim.go.eventignore = ignored
  end
  if api.nvim_buf_is_valid(bufnr) then
    vim.bo[bufnr].fixendofline = fixes
  end
  if not ok and not err then
    err = errors.new('tool_error', ('%s was not written: %s'):format(buffers.shown(bufnr), M.plain(thrown)))
  end
  return err
end

--- Makes Neovim regard a buffer as written to its file, which stays as it is: a `:write` that an autocommand carries
--- out (`:h BufWriteCmd`).
---@param bufnr integer loaded
function M.acknowledge(bufnr)
  local hook = api.nvim_create_autocmd('BufWriteCmd', { buffer = bufnr, callback = function() end })
  local ok, thrown = pcall(api.nvim_buf_call, bufnr, function()
    vim.cmd('silent lockmarks keepalt keepjumps write!')
  end)
  pcall(api.nvim_del_autocmd, hook)
  read_stamp.note({ buf = bufnr })
  if not ok then -- a later `:write` asks whether to overwrite the file
    log.warn('%s does not count as written: %s', buffers.shown(bufnr), M.plain(thrown))
  end
end

--- Writes a buffer. A file that changed since it was read is `stale`.
---@param bufnr integer loaded
---@param cb fun(err: mcp-tools.Error?)
---@param opts? { path: string?, overwrite: boolean?, ctx: mcp-tools.Ctx? } as for `now`; `ctx`: not if cancelled
function M.write(bufnr, cb, opts)
  disk.refresh(bufnr, function()
    if not api.nvim_buf_is_loaded(bufnr) then
      return cb(buffers.gone(bufnr))
    elseif opts and opts.ctx and opts.ctx:cancelled() then
      return cb(errors.new('cancelled', 'cancelled before anything was written'))
    end
    cb(M.now(bufnr, opts))
  end)
end

return M
