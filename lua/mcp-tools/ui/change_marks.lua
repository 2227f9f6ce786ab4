--- Marks lines that agents have changed, by default in the number column: a sign may open the sign column and shift the
--- text.
---
--- The id of a mark contains the id of its change, so there is no other state.

local changes = require('mcp-tools.editor.edit.history')
local config = require('mcp-tools.config')
local highlights = require('mcp-tools.ui.window.highlights')

local api = vim.api

local M = {}

local SPACE = api.nvim_create_namespace('mcp-tools.changes')
--- Maximum number of marked lines in a change.
local MAX_LINES = 999

---@return vim.api.keyset.set_extmark? style as the option says; nil: no marks
local function current_style()
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
      if marked > MAX_LINES then
        return
      end
      local opts = { id = change * (MAX_LINES + 1) + marked, invalidate = true, undo_restore = false, priority = 5 }
      api.nvim_buf_set_extmark(bufnr, SPACE, line - 1, 0, vim.tbl_extend('error', opts, style))
    end
  end
end

--- Returns the latest change that marks a line.
---@param bufnr integer
---@param line integer 1-based
---@return integer? id of the change, as in `:McpTools changes`
function M.at(bufnr, line)
  local newest
  for _, each in ipairs(api.nvim_buf_get_extmarks(bufnr, SPACE, { line - 1, 0 }, { line - 1, -1 }, {})) do
    newest = math.max(newest or 0, math.floor(each[1] / (MAX_LINES + 1)))
  end
  return newest
end

--- Removes the marks of reverted changes, or all marks.
---@param all? boolean
function M.clear(all)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    for _, each in ipairs(api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_extmarks(bufnr, SPACE, 0, -1, {}) or {}) do
      local change = not all and changes.find(math.floor(each[1] / (MAX_LINES + 1)))
      if not change or change.reverted then
        api.nvim_buf_del_extmark(bufnr, SPACE, each[1])
      end
    end
  end
end

--- Marks changes from now on.
function M.follow()
  api.nvim_create_autocmd('User', {
    group = api.nvim_create_augroup('mcp-tools.changes', {}),
    pattern = 'McpToolsEdit',
    desc = 'mcp-tools: mark lines changed by an agent',
    callback = function(args)
      local data, style = args.data or {}, current_style()
      if style and data.change and data.bufnr and api.nvim_buf_is_loaded(data.bufnr) then
        mark(data.bufnr, data.change, data.hunks, style)
      end
    end,
  })
end

return M
