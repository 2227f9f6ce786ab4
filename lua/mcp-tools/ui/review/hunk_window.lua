--- Window with all lines of one hunk, for hunks that do not fit on the screen beside the text.

local diff = require('mcp-tools.ui.window.diff')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')

local api = vim.api

local M = {}

---@type integer? buffer of the open window
local open

--- Maximum number of lines that are shown at once, because the user waits for them.
local PART = 3000

--- Returns lines with a sign. Tabs become spaces, and characters that do not show become codes.
---@param sign string
---@param lines string[]
---@param first integer
---@param last integer
---@return string[]
local function signed(sign, lines, first, last)
  return vim.tbl_map(function(line)
    return sign .. sanitize.line((line:gsub('\t', '    ')))
  end, vim.list_slice(lines, math.max(1, first), last))
end

--- Returns a function that restores height and view of the current windows, unless other ones were opened or closed.
---@return fun()
local function keep_windows()
  local function texts()
    return vim.tbl_filter(function(window)
      return api.nvim_win_get_config(window).relative == ''
    end, api.nvim_tabpage_list_wins(0))
  end
  local windows = texts()
  local heights = vim.tbl_map(api.nvim_win_get_height, windows)
  local views = vim.tbl_map(function(window)
    return api.nvim_win_call(window, vim.fn.winsaveview)
  end, windows)
  return function()
    for i, window in ipairs(vim.deep_equal(windows, texts()) and windows or {}) do
      api.nvim_win_set_height(window, heights[i])
      api.nvim_win_call(window, function()
        if vim.fn.line('.') == views[i].lnum then -- the user has not moved there meanwhile
          vim.fn.winrestview(views[i])
        end
      end)
    end
  end
end

--- Opens the window.
---@param file mcp-tools.Proposal
---@param hunk mcp-tools.Hunk
---@param applied boolean the change was already made
---@param closed fun(is_back: boolean, accepted: boolean?) called after it was closed; `is_back`: by one of its keys
function M.open(file, hunk, applied, closed)
  local now = file.bufnr and api.nvim_buf_get_lines(file.bufnr, hunk.start - 1, hunk.start - 1 + hunk.count, false)
    or {}
  local new = file.bufnr and hunk.new or file:proposed()
  local old, other = now, new
  if applied then
    old, other = new, now
  end
  local header = ('@@ -%d,%d +%d,%d @@'):format(hunk.start, #old, hunk.start, #other)
  local is_answered, show = false, nil
  local restore = keep_windows()
  local function leave(accepted)
    is_answered = true
    M.close()
    restore()
    closed(true, accepted)
  end
  ---@param from integer number of lines before
  function show(from)
    local lines = from == 0 and { header } or {}
    vim.list_extend(lines, signed('-', old, from + 1, from + PART))
    vim.list_extend(lines, signed('+', other, from + 1 - #old, from + PART - #old))
    local has_more = from + PART < #old + #other
    local yes, no = applied and 'keep' or 'accept', applied and 'revert' or 'reject'
    open = scratch.show('hunk', lines, {
      filetype = 'diff',
      spans = diff.spans,
      title = ('%s:%d'):format(sanitize.line(vim.fs.basename(file.path)), hunk.start),
      tall = true,
      back = leave,
      keys = {
        {
          lhs = 'y',
          word = has_more and 'next part' or yes,
          description = yes .. ' this hunk, once all of it was visible',
          accepts = true,
          run = function()
            if has_more then
              return show(from + PART)
            end
            leave(true)
          end,
        },
        {
          lhs = 'n',
          word = no,
          description = no .. ' this hunk',
          run = function()
            leave(false)
          end,
        },
      },
      on_close = function()
        open = nil
        if not is_answered then
          vim.schedule(restore)
          closed(false)
        end
      end,
    })
  end
  show(0)
end

---@return boolean
function M.is_open()
  return open ~= nil
end

--- Closes the window.
function M.close()
  if open then
    scratch.close(open)
  end
end

return M
