--- Highlights of buffers that nobody sees: the editor's questions for them, taken back as soon as they are asked.
---
--- Receives: requests of the editor to language servers.
--- Sends: a cancellation; the question anew when somebody sees the buffer.
--- Does not know about: why a buffer was loaded.
---
--- Neovim asks for the semantic tokens of each attached buffer after each change. After an edit of many files that is
--- more work for a server than the next question of a tool, which would wait for it.

local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')

local api = vim.api

local M = {}

--- Buffers whose highlights were not asked for.
---@type table<integer, true>
local waiting = {}

---@param bufnr integer
local function ask_when_seen(bufnr)
  if waiting[bufnr] then
    return
  end
  waiting[bufnr] = true
  api.nvim_create_autocmd({ 'BufWinEnter', 'BufUnload' }, {
    buffer = bufnr,
    once = true,
    desc = 'mcp-tools: what the person sees has its highlights',
    callback = function(args)
      if not waiting[bufnr] then
        return
      end
      waiting[bufnr] = nil
      if args.event == 'BufWinEnter' then
        vim.lsp.semantic_tokens.force_refresh(bufnr)
      end
    end,
  })
end

--- Takes a question back if it is for the highlights of a buffer that nobody sees or has in a list.
---@param client vim.lsp.Client
---@param id integer of the request
---@param asked { bufnr: integer, method: string, type: string }
function M.spare(client, id, asked)
  if asked.type ~= 'pending' or not asked.method:find('^textDocument/semanticTokens/') then
    return
  end
  if api.nvim_buf_is_loaded(asked.bufnr) and buffers.is_unseen(asked.bufnr) then
    ask_when_seen(asked.bufnr)
    clients.cancel(client, id)
  end
end

return M
