--- Finds buffers by path or number, as clients name them.
---
--- The current buffer is never a terminal: an agent in `:terminal` means the file next to it.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')

local api = vim.api

local M = {}

--- Returns the buffers of the current and the previous window, in this tab page and the previous one.
---@return integer[]
local function visited()
  local list = { vim.api.nvim_get_current_buf(), vim.fn.winbufnr(vim.fn.winnr('#')) }
  local tab = vim.fn.tabpagenr('#')
  if tab > 0 then
    table.insert(list, vim.fn.tabpagebuflist(tab)[vim.fn.tabpagewinnr(tab)])
  end
  return list
end

--- Returns the buffer with the cursor or, if that is in a terminal, float or tool window, the last text buffer used.
---@return integer? bufnr
function M.current()
  for _, bufnr in ipairs(visited()) do
    if bufnr > 0 and access.is_text(bufnr) then
      return bufnr
    end
  end
  local infos = vim.fn.getbufinfo({ buflisted = 1, bufloaded = 1 })
  table.sort(infos, function(a, b)
    return a.lastused > b.lastused
  end)
  for _, info in ipairs(infos) do
    if access.is_text(info.bufnr) then
      return info.bufnr
    end
  end
end

--- Returns the loaded buffer of a file.
---@param path string absolute and resolved
---@return integer? bufnr
function M.of_path(path)
  return access.loaded()(path)
end

--- The same for many files: returns a function from path to buffer.
M.of_paths = access.loaded

--- Returns the size of a buffer's text in bytes.
---@param bufnr integer loaded
---@return integer
function M.size(bufnr)
  return api.nvim_buf_get_offset(bufnr, api.nvim_buf_line_count(bufnr))
end

--- Returns as many lines of a buffer as fit. If the first one is too long, its beginning is returned.
---@param bufnr integer loaded
---@param first integer 1-based
---@param max_lines integer
---@param max_bytes integer
---@return string[]
---@return boolean cut whether more lines follow
function M.some_lines(bufnr, first, max_lines, max_bytes)
  local total, before = api.nvim_buf_line_count(bufnr), first - 1
  local count = math.min(total - before, max_lines)
  if count < 1 then
    return {}, false
  end
  local limit = api.nvim_buf_get_offset(bufnr, before) + max_bytes
  if api.nvim_buf_get_offset(bufnr, before + count) > limit then
    local low, high = 0, count
    while high - low > 1 do
      local middle = math.floor((low + high) / 2)
      if api.nvim_buf_get_offset(bufnr, before + middle) > limit then
        high = middle
      else
        low = middle
      end
    end
    count = low
  end
  if count == 0 then
    return api.nvim_buf_get_text(bufnr, before, 0, before, max_bytes, {}), true
  end
  return api.nvim_buf_get_lines(bufnr, before, before + count, false), before + count < total
end

--- Returns whether only tools use a loaded buffer, so that the user expects changes in its file.
---@param bufnr integer
---@return boolean
function M.is_unseen(bufnr)
  local options = vim.bo[bufnr]
  return not options.buflisted and not options.modified and #vim.fn.win_findbuf(bufnr) == 0
end

--- Returns the name to show for a buffer: its file, relative to the root if it is inside.
---@param bufnr integer valid
---@param root? string default: the project root
---@return string
function M.shown(bufnr, root)
  local name = api.nvim_buf_get_name(bufnr)
  return name ~= '' and access.shown(name, root or project.root()) or ('buffer %d'):format(bufnr)
end

--- Returns the files of the project with unsaved changes, relative to the root. Other processes do not see the changes.
---@param root string
---@param below? string resolved; only this file, or files in this directory
---@return string[]? names nil: none
function M.unsaved(root, below)
  local names = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do -- not `getbufinfo`, which collects all signs
    local modified = vim.fn.getbufvar(bufnr, '&modified') == 1
    local name = modified and vim.bo[bufnr].buftype == '' and api.nvim_buf_get_name(bufnr) or ''
    if name ~= '' then
      local path = paths.resolve(name)
      local wanted = not below or path == below or vim.startswith(path, below .. '/')
      if wanted and paths.inside(path, root) then
        names[#names + 1] = access.shown(path, root)
      end
    end
  end
  return #names > 0 and names or nil
end

--- Returns the fields of a buffer in a list of buffers, except its path.
---@param bufnr integer valid
---@param current integer? the current buffer
---@return table
function M.facts(bufnr, current)
  -- Not `getbufinfo`, which collects all signs.
  local options, loaded = vim.bo[bufnr], api.nvim_buf_is_loaded(bufnr)
  return {
    bufnr = bufnr,
    filetype = options.filetype ~= '' and options.filetype or nil,
    buftype = options.buftype ~= '' and options.buftype or nil,
    loaded = loaded,
    modified = options.modified,
    changedtick = api.nvim_buf_get_changedtick(bufnr),
    lines = loaded and api.nvim_buf_line_count(bufnr) or nil,
    visible = #vim.fn.win_findbuf(bufnr) > 0,
    current = bufnr == current or nil,
  }
end

--- Calls a function; afterwards every window of the buffer shows the same line numbers as before.
---@generic T
---@param bufnr integer
---@param fn fun(): T
---@return T
function M.keep_views(bufnr, fn)
  local saved = {}
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    saved[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  local result = fn()
  for win, view in pairs(saved) do
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == bufnr then
      api.nvim_win_call(win, function()
        vim.fn.winrestview(view)
      end)
    end
  end
  return result
end

--- Error for a number that no buffer has.
---@param bufnr integer
---@return mcp-tools.Error
function M.unknown(bufnr)
  return errors.new('not_found', ('there is no buffer %d; buffer_list lists all buffers'):format(bufnr))
end

--- Error for a buffer that was deleted during the call.
---@param bufnr integer
---@return mcp-tools.Error
function M.gone(bufnr)
  return errors.new('not_found', ('buffer %d no longer exists'):format(bufnr))
end

--- Resolves a path argument.
---@param given string
---@param argument? string name of the argument, for the error
---@return string? resolved
---@return mcp-tools.Error? err
function M.resolve(given, argument)
  local path, bad = paths.resolve(given)
  if bad then
    local text = '%s: cannot be resolved: %s'
    return nil, errors.new('validation_error', text:format(argument or 'path', bad))
  end
  return path
end

--- Finds what `path` or `bufnr` names.
---@param args { path: string?, bufnr: integer? } `bufnr` 0 is the current buffer
---@param opts? { current: boolean? } without `path` and `bufnr`, the current buffer is meant
---@return { bufnr: integer?, path: string? }? found a path without `bufnr` is not loaded
---@return mcp-tools.Error? err
function M.find(args, opts)
  if args.path == nil and args.bufnr == nil and opts and opts.current then
    args = { bufnr = 0 }
  elseif (args.path == nil) == (args.bufnr == nil) then
    return nil, errors.new('validation_error', 'give exactly one of path and bufnr')
  end
  if args.path then
    local path, err = M.resolve(args.path)
    if not path then
      return nil, err
    end
    return { path = path, bufnr = M.of_path(path) }
  end
  local bufnr = args.bufnr == 0 and M.current() or args.bufnr
  if bufnr == 0 or not vim.api.nvim_buf_is_valid(bufnr) then
    return nil, M.unknown(args.bufnr)
  end
  if not vim.api.nvim_buf_is_loaded(bufnr) then
    local name = vim.api.nvim_buf_get_name(bufnr)
    if name == '' then
      return nil, errors.new('not_found', ('buffer %d is not loaded and has no file'):format(bufnr))
    end
    return { path = name }
  end
  return { bufnr = bufnr, path = vim.api.nvim_buf_get_name(bufnr) }
end

return M
