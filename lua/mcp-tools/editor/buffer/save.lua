--- Writes a buffer to its file without asking the user.
---
--- Autocommands run as with `:write`. What `:write` would ask about is checked first: a file that was changed or made
--- read-only since it was read is not overwritten. Autocommands may take long, and Neovim opens the file by its name,
--- which may have become a link to a file that the call must not write; so whether the file has changed and where its
--- name leads is checked again after the last autocommand.

local autocommands = require('mcp-tools.editor.buffer.autocommands')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local paths = require('mcp-tools.files.paths')

local api, uv = vim.api, vim.uv

local M = {}

--- Write permission of the owner, the group and others.
local WRITABLE = tonumber('222', 8)

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
local function encoding_fault(bufnr)
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
  local state, err = disk.check(bufnr)
  if err then
    return err
  elseif state == 'conflict' and not overwrite then
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

--- Returns the present state of a buffer's file.
---@param bufnr integer
---@return string?
local function stamp_of(bufnr)
  return paths.stamp(api.nvim_buf_get_name(bufnr))
end

---@class mcp-tools.WriteStart state right before Neovim opens the file
---@field changedtick integer a complete write raises it
---@field stamp string?

--- Returns what an error during a write means: Neovim throws errors of autocommands as well.
---@param bufnr integer
---@param shown string name of the buffer
---@param start mcp-tools.WriteStart? nil: the file was not opened
---@param thrown any
---@return mcp-tools.Error? err nil: the write is complete
---@return boolean? is_damaged whether a part was written
local function failure(bufnr, shown, start, thrown)
  local why, is_loaded = errors.plain(thrown), api.nvim_buf_is_loaded(bufnr)
  if start and is_loaded and start.changedtick ~= api.nvim_buf_get_changedtick(bufnr) then
    log.error('an error after %s was written: %s', shown, why)
    return nil
  elseif start and is_loaded and start.stamp ~= stamp_of(bufnr) then
    return errors.new('tool_error', ('%s was written only in part and may be damaged: %s'):format(shown, why)), true
  end
  return errors.new('tool_error', ('%s was not written: %s'):format(shown, why))
end

--- Runs only those autocommands of a write that notify language servers and reviews.
---@param bufnr integer
function M.notify_written(bufnr)
  local has_run = {}
  for _, each in ipairs(api.nvim_get_autocmds({ event = 'BufWritePost' })) do
    local group = each.group_name --[[@as string?]] or ''
    local is_notified = group:match('^nvim%.lsp%.') or group:match('^lsp_b_') or group:match('^mcp%-tools%.review')
    if is_notified and not has_run[group] and api.nvim_buf_is_loaded(bufnr) then
      has_run[group] = true
      api.nvim_exec_autocmds('BufWritePost', { group = group, buffer = bufnr, modeline = false })
    end
  end
end

--- Writes a buffer without waiting. A file that changed since it was read is `stale`.
---@param bufnr integer loaded
---@param opts? { path: string?, overwrite: boolean?, keep_end: boolean?, as_is: boolean? } `path`: the resolved file
---  that the call may write; `overwrite`: even if the file has changed; `keep_end`: add no line break at the end,
---  whatever 'fixendofline' is; `as_is`: run no formatters and other autocommands of the user
---@return mcp-tools.Error? err
---@return boolean? is_damaged whether a part was written
function M.now(bufnr, opts)
  opts = opts or {}
  local stamp = stamp_of(bufnr)
  local err = M.refusal(bufnr)
    or replaced(bufnr, opts.path)
    or overwrite_refusal(bufnr, opts.overwrite)
    or encoding_fault(bufnr)
  if err then
    return err
  end
  local options, shown = vim.bo[bufnr], buffers.shown(bufnr)
  local fixendofline = options.fixendofline
  -- A file that the user has not opened keeps its last line break or the lack of one.
  if opts.keep_end or not options.buflisted and #vim.fn.win_findbuf(bufnr) == 0 then
    options.fixendofline = false
  end
  local ignored = vim.go.eventignore
  if opts.as_is then
    vim.go.eventignore = ('BufWritePre,BufWritePost,%s'):format(ignored)
  end
  local start ---@type mcp-tools.WriteStart?
  local function check()
    local now = stamp_of(bufnr)
    local has_changed = not opts.overwrite and now ~= stamp
    err = replaced(bufnr, opts.path) or has_changed and M.conflict(bufnr) or nil
    assert(not err, 'it must not be overwritten') -- ends `:write`
    vim.bo[bufnr].modified = true -- otherwise a write does not raise changedtick
    start = { changedtick = api.nvim_buf_get_changedtick(bufnr), stamp = now }
  end
  local hook = api.nvim_create_autocmd('BufWritePre', { buffer = bufnr, callback = check }) -- runs last
  -- `!`: what `:write` would ask about has been checked.
  local ok, thrown = pcall(api.nvim_buf_call, bufnr, function()
    if opts.as_is then
      check()
    end
    vim.cmd('silent lockmarks keepalt keepjumps write!')
  end)
  pcall(api.nvim_del_autocmd, hook)
  if opts.as_is then
    vim.go.eventignore = ignored
  end
  if api.nvim_buf_is_valid(bufnr) then
    vim.bo[bufnr].fixendofline = fixendofline
    local is_written = start and api.nvim_buf_get_changedtick(bufnr) > start.changedtick
    if opts.as_is and is_written then
      M.notify_written(bufnr)
    end
  end
  if ok or err then
    return err
  end
  return failure(bufnr, shown, start, thrown)
end

--- Makes Neovim regard a buffer as written without changing its file: an empty autocommand takes the place of the write
--- (`:h BufWriteCmd`).
---@param bufnr integer loaded
function M.acknowledge(bufnr)
  local hook = api.nvim_create_autocmd('BufWriteCmd', { buffer = bufnr, callback = function() end })
  local ignored = vim.go.eventignore
  vim.go.eventignore = ''
  local ok, thrown = pcall(api.nvim_buf_call, bufnr, function()
    vim.cmd('silent lockmarks keepalt keepjumps write!')
  end)
  vim.go.eventignore = ignored
  pcall(api.nvim_del_autocmd, hook)
  if not ok then -- a later `:write` asks whether to overwrite the file
    log.warn('Neovim does not regard %s as written: %s', buffers.shown(bufnr), errors.plain(thrown))
  end
end

--- Writes a buffer. A file that changed since it was read is `stale`.
---@param bufnr integer loaded
---@param cb fun(err: mcp-tools.Error?)
---@param opts? { path: string?, overwrite: boolean?, ctx: mcp-tools.Ctx? } as for `now`; `ctx`: nothing is written if
---  it is cancelled
function M.write(bufnr, cb, opts)
  disk.refresh(bufnr, function()
    autocommands.when_over(function(busy) -- otherwise formatters would not run
      if not api.nvim_buf_is_loaded(bufnr) then
        return cb(buffers.gone(bufnr))
      elseif opts and opts.ctx and opts.ctx:cancelled() then
        return cb(errors.new('cancelled', 'cancelled before anything was written'))
      end
      cb(busy or M.now(bufnr, opts))
    end)
  end)
end

return M
