--- The files that are selected in a file explorer, a picker or the quickfix list.

local log = require('mcp-tools.log')
local load = require('mcp-tools.util.optional').load
local notify = require('mcp-tools.notify')

local api, fn = vim.api, vim.fn

local M = {}

--- Maximum number of files and lines that are used at once.
local MAX_SELECTED = 200

--- A file or directory, or lines of a file. Positions are 1-based.
---@class mcp-tools.agents.Selected
---@field path string
---@field first integer?
---@field last integer?

---@alias mcp-tools.agents.AddSelected fun(path: string?, line: integer?)

---@class mcp-tools.agents.Explorer
---@field marked? fun(add: mcp-tools.agents.AddSelected) adds what the user has marked
---@field at? fun(add: mcp-tools.agents.AddSelected, line: integer, is_range: boolean) adds the entry on a line; the
--- cursor is on it

--- It needs no `at`: without a selection, `fallback` returns the entry under the cursor.
local SNACKS = {
  marked = function(add)
    local pickers = load('snacks').picker
    local open = pickers.get({ tab = true })
    for _, item in ipairs(open[#open]:selected({ fallback = true })) do
      add(pickers.util.path(item), item.pos and item.pos[1])
    end
  end,
}

--- Filetype → how to get its files.
---@type table<string, mcp-tools.agents.Explorer>
local EXPLORERS = {
  netrw = {
    marked = function(add)
      local marked = fn['netrw#Expose']('netrwmarkfilelist')
      vim.tbl_map(add, type(marked) == 'table' and marked or {}) -- a string if nothing is marked
    end,
    at = function(add, _, is_range)
      if vim.startswith(api.nvim_get_current_line(), '"') or is_range and vim.w.netrw_liststyle == 2 then
        return -- the banner, where netrw would change its settings; or a line with several files
      end
      local word, directory = fn['netrw#Call']('NetrwGetWord'), vim.b.netrw_curdir
      if vim.w.netrw_liststyle == 3 then -- a tree
        directory = fn['netrw#Call']('NetrwTreePath', vim.w.netrw_treetop)
        local is_whole = vim.endswith(word, '/') or api.nvim_get_current_line():find('@\t -->', 1, true)
        word = is_whole and '' or word -- the path ends with a directory or link
      end
      add(vim.fs.normalize(directory .. '/' .. word, { expand_env = false }))
    end,
  },
  oil = {
    at = function(add, line)
      local entry = load('oil').get_entry_on_line(0, line)
      add(entry and load('oil').get_current_dir(0) .. entry.name)
    end,
  },
  minifiles = {
    at = function(add, line)
      add((load('mini.files').get_fs_entry(0, line) or {}).path)
    end,
  },
  ['neo-tree'] = {
    at = function(add, line)
      add((load('neo-tree.sources.manager').get_state_for_window().tree:get_node(line) or {}).path)
    end,
  },
  NvimTree = {
    marked = function(add)
      for _, node in ipairs(load('nvim-tree.api').marks.list()) do
        add(node.absolute_path)
      end
    end,
    at = function(add)
      add((load('nvim-tree.api').tree.get_node_under_cursor() or {}).absolute_path)
    end,
  },
  qf = {
    at = function(add, line)
      local is_local = fn.getwininfo(api.nvim_get_current_win())[1].loclist == 1
      local what = { idx = line, items = 0 }
      local entry = (is_local and fn.getloclist(0, what) or fn.getqflist(what)).items[1]
      add(entry and entry.bufnr > 0 and api.nvim_buf_get_name(entry.bufnr) or nil, entry and entry.lnum)
    end,
  },
  snacks_picker_list = SNACKS,
  snacks_picker_input = SNACKS,
  TelescopePrompt = {
    marked = function(add)
      local state = load('telescope.actions.state')
      local marked = state.get_current_picker(api.nvim_get_current_buf()):get_multi_selection()
      for _, entry in ipairs(#marked > 0 and marked or { state.get_selected_entry() }) do
        add(load('telescope.from_entry').path(entry, false, false), entry.lnum)
      end
    end,
  },
}

--- Returns what is selected in the current window: the lines of the range, otherwise what is marked, otherwise the
--- entry under the cursor.
---@param range integer[]?
---@return mcp-tools.agents.Selected[]? nil: the window has no explorer
function M.selected(range)
  local explorer, list = EXPLORERS[vim.bo.filetype], {}
  if not explorer then
    return nil
  end
  local added, cursor, too_many = {}, api.nvim_win_get_cursor(0), false
  ---@param path string?
  ---@param line integer?
  local function add(path, line)
    path = path and fn.fnamemodify(path, ':p')
    local place = path and ('%s:%d'):format(path, line or 0)
    if path and not added[place] and vim.uv.fs_stat(path) then
      too_many = #list == MAX_SELECTED
      if too_many then
        return
      end
      added[place], line = true, line and line > 0 and line or nil
      table.insert(list, { path = path, first = line, last = line })
    end
  end
  log.guard('asking ' .. vim.bo.filetype .. ' for its files', function()
    if explorer.marked and not (range and explorer.at) then
      explorer.marked(add)
    end
    local lines = range or { cursor[1], cursor[1] }
    for line = lines[1], #list == 0 and explorer.at and lines[2] or 0 do
      api.nvim_win_set_cursor(0, { line, range and 0 or cursor[2] })
      explorer.at(add, line, range ~= nil)
      if too_many then
        break
      end
    end
  end)
  if too_many then
    notify.warn(('only the first %d files are used'):format(MAX_SELECTED))
  end
  api.nvim_win_set_cursor(0, cursor)
  return list
end

return M
