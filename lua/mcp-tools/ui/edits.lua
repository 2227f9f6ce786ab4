--- What the user sees of agents' edits: marks at the changed lines, and a notification of files that are left unsaved,
--- because other programs do not see those edits.

local changes = require('mcp-tools.editor.edit.history')
local config = require('mcp-tools.config')
local notify = require('mcp-tools.notify')
local render = require('mcp-tools.ui.window.render')
local sanitize = require('mcp-tools.util.sanitize')
local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

local SPACE = api.nvim_create_namespace('mcp-tools.changes')
--- Maximum number of marked lines in a change. The id of a mark contains that of its change.
local MAX_LINES = 999

--- By default in the number column: a sign may open the sign column and shift the text.
---@return vim.api.keyset.set_extmark? style as the option says; nil: no marks
local function current_style()
  local how, group = config.get().ui.changes, render.group('Changed')
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

--- Edits are reported together, this long after the last one, ms.
M.QUIET = 1000
--- Maximum number of files that are named.
local MAX_NAMED = 3

---@type table<integer, true> buffers that were reported
local known = {}
---@type table<string, integer|false> path → buffer of edits that were not reported yet
local edited = {}
---@type table<string, true> names of the agents that made them
local agents = {}
local due ---@type mcp-tools.Timer?

local function report()
  due = nil
  local files, names_of_agents = edited, vim.tbl_keys(agents)
  edited, agents = {}, {}
  local names, is_new = {}, false
  for path, bufnr in pairs(files) do
    if bufnr and api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modified then
      is_new = is_new or not known[bufnr]
      known[bufnr] = true
      table.insert(names, sanitize.line(vim.fs.basename(path)))
    end
  end
  if not is_new then
    return
  end
  table.sort(names)
  local count = vim.tbl_count(files)
  local named = table.concat(names, ', ', 1, math.min(#names, MAX_NAMED))
  if #names > MAX_NAMED then
    named = ('%s and %d more'):format(named, #names - MAX_NAMED)
  end
  local what = count > 1 and ('%d files'):format(count) or named
  local left = count > 1 and named .. (#names > 1 and ' are' or ' is') or 'it is'
  local who = #names_of_agents == 1 and names_of_agents[1] or #names_of_agents > 1 and 'several agents' or 'an agent'
  notify.info(('%s changed %s; %s unsaved'):format(sanitize.line(who), what, left))
end

---@param data table of `User McpToolsEdit`
local function report_later(data)
  if data.host == 'command' then
    return -- the user's own call
  end
  edited[data.path] = data.bufnr or false
  if data.client and data.client.name then
    agents[data.client.name] = true
  end
  if due then
    due:stop()
  end
  due = timer.after(M.QUIET, report)
end

--- Marks and reports edits from now on.
function M.follow()
  local group = api.nvim_create_augroup('mcp-tools.changes', {})
  api.nvim_create_autocmd({ 'BufWritePost', 'BufUnload' }, {
    group = group,
    desc = 'mcp-tools: report the buffer again when it is unsaved again',
    callback = function(args)
      known[args.buf] = nil
    end,
  })
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'McpToolsEdit',
    desc = 'mcp-tools: mark lines changed by an agent, and report unsaved files',
    callback = function(args)
      local data, style = args.data or {}, current_style()
      if style and data.change and data.bufnr and api.nvim_buf_is_loaded(data.bufnr) then
        mark(data.bufnr, data.change, data.hunks, style)
      end
      if data.tool then
        report_later(data)
      end
    end,
  })
end

return M
