--- What each client knows of files: the version that it last read, or made itself. Edits by line number and the
--- replacement of a whole file need the current one.

local lru = require('mcp-tools.util.lru')
local per_session = require('mcp-tools.util.session').keep

local M = {}

--- Maximum number of files of one client.
local MAX_FILES = 1000

---@class mcp-tools.FileVersion
---@field bufnr integer? loaded
---@field changedtick integer?
---@field is_modified boolean?
---@field stamp string? state of the file, if it has the same text

local versions_of = per_session(function()
  return lru(MAX_FILES)
end)

---@param target { path: string?, bufnr: integer? } `path`: resolved
---@return string
local function key_of(target)
  return target.path or ('buffer %d'):format(target.bufnr)
end

--- Returns the current version of a file. Take it before the text is read.
---@param target { path: string?, bufnr: integer? } `path`: resolved
---@return mcp-tools.FileVersion
function M.version(target)
  local bufnr = target.bufnr
  local is_loaded = bufnr and vim.api.nvim_buf_is_loaded(bufnr)
  local stat = target.path and not (is_loaded and vim.bo[bufnr].modified) and vim.uv.fs_stat(target.path)
  return {
    bufnr = is_loaded and bufnr or nil,
    changedtick = is_loaded and vim.api.nvim_buf_get_changedtick(bufnr) or nil,
    is_modified = is_loaded and vim.bo[bufnr].modified or nil,
    stamp = stat and vim.inspect({ stat.mtime, stat.ctime, stat.size, stat.ino }) or nil,
  }
end

--- Notes that a client knows a version of a file.
---@param ctx mcp-tools.Ctx
---@param target { path: string?, bufnr: integer? } `path`: resolved
---@param version? mcp-tools.FileVersion default: the current one
function M.note(ctx, target, version)
  versions_of(ctx):set(key_of(target), version or M.version(target))
end

--- Returns whether two versions of a file have the same text.
---@param known mcp-tools.FileVersion
---@param now mcp-tools.FileVersion
---@return boolean
function M.is_same(known, now)
  if now.bufnr and now.bufnr == known.bufnr then
    -- `:write` raises changedtick by one; a formatter that it runs, by more.
    local is_written = known.is_modified and not now.is_modified
    return now.changedtick == known.changedtick + (is_written and 1 or 0)
  end
  return now.stamp ~= nil and now.stamp == known.stamp
end

--- Returns whether a client knows the current text of a file.
---@param ctx mcp-tools.Ctx|mcp-tools.Call
---@param target { path: string?, bufnr: integer? } `path`: resolved
---@return boolean? is_known nil: it has never read the file
function M.is_known(ctx, target)
  local known = versions_of(ctx):get(key_of(target))
  if not known then
    return nil
  end
  return M.is_same(known, M.version(target))
end

return M
