--- Buffers of what is moved: found, and made to follow the file to its new name.
---
--- Receives: where it was and where it is.
--- Sends: buffers that show the file where it is now, or why one does not.
--- Does not know about: why it was moved, what changes in other files.

local buffer_kind = require('mcp-tools.files.buffer_kind')
local disk = require('mcp-tools.editor.buffer.disk')
local paths = require('mcp-tools.files.paths')
local save = require('mcp-tools.editor.buffer.save')

local api = vim.api

local M = {}

---@param path string
---@param top string
function M.is_at_or_below(path, top)
  return path == top or vim.startswith(path, top .. '/')
end

--- Buffers of what is moved, loaded or not.
---@param from string resolved
---@return { bufnr: integer, path: string }[]
function M.of(from)
  local list = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_get_name(bufnr)
    if name ~= '' and buffer_kind.kind(bufnr) == 'file' then
      local path = paths.resolve(name)
      if M.is_at_or_below(path, from) then
        table.insert(list, { bufnr = bufnr, path = path })
      end
    end
  end
  return list
end

--- Language servers hear by what Neovim listens to after a write that a buffer has another name.
---@param bufnr integer
local function tell_of_name(bufnr)
  for _, each in ipairs(api.nvim_get_autocmds({ event = 'BufWritePost', buffer = bufnr })) do
    local group = each.group_name or ''
    if group:match('^nvim%.lsp%.') or group:match('^lsp_b_') then
      api.nvim_exec_autocmds('BufWritePost', { group = each.group, buffer = bufnr, modeline = false })
    end
  end
end

--- Gives a loaded buffer its name. It is written without autocommands and just as it was read, or a later `:write`
--- would ask whether to overwrite the file: what formats on save would change its text, a line break at the end its
--- bytes.
---@param bufnr integer
---@param new string
local function rename_buffer(bufnr, new)
  local fixeol = vim.bo[bufnr].fixendofline
  vim.bo[bufnr].fixendofline = false
  local ok, thrown = pcall(api.nvim_buf_call, bufnr, function()
    vim.cmd(('silent keepalt keepjumps file %s'):format(vim.fn.fnameescape(new)))
    vim.cmd('silent noautocmd lockmarks keepalt keepjumps write!')
  end)
  vim.bo[bufnr].fixendofline = fixeol
  if not ok then
    error(thrown, 0)
  end
  tell_of_name(bufnr)
end

--- Has a buffer show the file where it is now.
---@param bufnr integer
---@param old string
---@param new string
---@return string? problem
function M.follow(bufnr, old, new)
  local problem
  if api.nvim_buf_is_loaded(bufnr) then
    local ok, thrown = pcall(rename_buffer, bufnr, new)
    problem = not ok and ('buffer %d does not follow: %s'):format(bufnr, save.plain(thrown)) or nil
  else
    local listed = vim.bo[bufnr].buflisted
    vim.bo[vim.fn.bufadd(new)].buflisted = listed
  end
  for _, each in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_get_name(each) == old and #vim.fn.win_findbuf(each) == 0 then
      pcall(api.nvim_buf_delete, each, { force = true })
    end
  end
  return problem
end

--- Has open buffers show what is on the disk: they are written where the file goes.
---@param ctx mcp-tools.Ctx
---@param from string
function M.refresh(ctx, from)
  for _, each in ipairs(M.of(from)) do
    ctx:await(function(done)
      disk.refresh(each.bufnr, done)
    end)
  end
end

return M
