--- Semantic tokens of hidden buffers: not requested before the user sees the buffer.
---
--- Neovim requests the tokens of every buffer when a server attaches to it and after each change. For a file that a
--- tool has opened nobody sees them, and the server would work on them before it answers the tool. Cancelling such a
--- request is too late: the server has begun.

local buffers = require('mcp-tools.editor.buffer')

local M = {}

---@param bufnr integer
---@return boolean
local function is_hidden(bufnr)
  return vim.api.nvim_buf_is_loaded(bufnr) and buffers.is_unseen(bufnr)
end

---@param key any identifies one of several callbacks for a buffer
---@param bufnr integer
---@param fn fun()
local function when_seen(key, bufnr, fn)
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = vim.api.nvim_create_augroup(('mcp-tools.semantic_tokens:%s:%d'):format(key, bufnr), { clear = true }),
    buffer = bufnr,
    once = true,
    desc = 'mcp-tools: semantic tokens of a buffer that was hidden',
    callback = fn,
  })
end

--- Postpones the tokens of hidden buffers from now on. From Neovim 0.12 on, `attached` does it.
function M.listen()
  local tokens = vim.lsp.semantic_tokens
  if tokens.enable then
    return
  end
  local start = tokens.start
  tokens.start = function(bufnr, client_id, ...) -- luacheck: ignore 122
    if type(bufnr) ~= 'number' or not is_hidden(bufnr) then
      return start(bufnr, client_id, ...)
    end
    local opts = ...
    when_seen(client_id, bufnr, function()
      if vim.lsp.buf_is_attached(bufnr, client_id) then
        start(bufnr, client_id, opts)
      end
    end)
  end
end

--- Postpones the tokens of a buffer to which a server has just been attached.
---@param bufnr integer
function M.attached(bufnr)
  local tokens = vim.lsp.semantic_tokens
  if tokens.enable and is_hidden(bufnr) and tokens.is_enabled({ bufnr = bufnr }) then
    tokens.enable(false, { bufnr = bufnr })
    when_seen('all', bufnr, function()
      if tokens.is_enabled() then
        tokens.enable(true, { bufnr = bufnr })
      end
    end)
  end
end

return M
