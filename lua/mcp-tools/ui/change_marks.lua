--- Marks at lines that agents have changed, which lead to `:McpTools changes`.
---
--- The id of a mark holds the number of its change, so nothing is kept beside the buffer. By default the line's number
--- is coloured: a sign may open the sign column, and move the text under the person's eyes.

local changes = require('mcp-tools.editor.edit.history')
local config = require('mcp-tools.config')
local highlights = require('mcp-tools.ui.window.highlights')

local api = vim.api

local M = {}

local SPACE = api.nvim_create_namespace('mcp-tools.changes')
--- Lines of one change that are marked.
local MOST = 999

--- How a line is marked, as the option has it; nil: not at all.
---@return vim.api.keyset.set_extmark?
local function style_now()
  local how, group = config.get().ui.changes, highlights.group('Changed')
  if how == 'number' then
    return { number_hl_group = group }
  elseif how == 'sign' then
    return { sign_text = '▎', sign_hl_group = group, number_hl_group = group }
  end
end

---@param bufnr integer
---@param change integer
---@param hunks mcp-tools.EditHunk[]
---@param style vim.api.keyset.set_extmark
local function mark(bufnr, change, hunks, style)
  local count, marked = api.nvim_buf_line_count(bufnr), 0
  for _, hunk in ipairs(hunks) do
    local first = math.max(hunk.line, 1)
    for line = first, math.min(first + math.max(hunk.added, 1) - 1, count) do
      marked = marked + 1
      if marked > MOST then
        return
      end
      local opts = { id = change * (MOST + 1) + marked, invalidate = true, undo_restore = false, priority = 5 }
      api.nvim_buf_set_extmark(bufnr, SPACE, line - 1, 0, vim.tbl_extend('error', opts, style))
    end
  end
end

--- The change that a line of a buffer was marked for last.
---@param bufnr integer
---@param line integer from 1
---@return integer? id as `:McpTools changes` counts
function M.at(bufnr, line)
  local newest
  for _, each in ipairs(api.nvim_buf_get_extmarks(bufnr, SPACE, { line - 1, 0 }, { line - 1, -1 }, {})) do
    newest = math.max(newest or 0, math.floor(each[1] / (MOST + 1)))
  end
  return newest
end

--- Takes away the marks of changes that were taken back, or all.
---@param all? boolean
function M.clear(all)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    for _, each in ipairs(api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_extmarks(bufnr, SPACE, 0, -1, {}) or {}) do
      local change = not all and changes.find(math.floor(each[1] / (MOST + 1)))
      if not change or change.reverted then
        api.nvim_buf_del_extmark(bufnr, SPACE, each[1])
      end
    end
  end
end

--- Begins to mark what is changed from now on.
function M.follow()
  api.nvim_create_autocmd('User', {
    group = api.nvim_create_augroup('mcp-tools.changes', {}),
    pattern = 'McpToolsEdit',
    desc = 'mcp-tools: lines that an agent has changed are marked',
    callback = function(args)
      local data, style = args.data or {}, style_now()
      if style and data.change and data.bufnr and api.nvim_buf_is_loaded(data.bufnr) then
        mark(data.bufnr, data.change, data.hunks, style)
      end
    end,
  })
end

return M
