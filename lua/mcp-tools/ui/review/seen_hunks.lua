--- How much of each hunk was on the screen: a hunk is accepted only after all of it was.
---
--- The user may scroll through the lines of a buffer, from the first on; virtual lines must all be visible at once.

local inline = require('mcp-tools.ui.review.inline')
local split = require('mcp-tools.ui.review.split')
local visible = require('mcp-tools.ui.window.visible')

local api = vim.api

local M = {}

--- Returns whether a window shows all virtual lines of a part, or some.
---@param part mcp-tools.HunkPart
---@param at mcp-tools.Visible
---@return boolean all
---@return boolean some
local function shows_virtual(part, at)
  local window, line, rows = part.window, part.first, part.count
  if line < api.nvim_buf_line_count(api.nvim_win_get_buf(window)) then -- other plugins may draw lines there as well
    rows = math.max(rows, api.nvim_win_text_height(window, { start_row = line, end_row = line }).fill)
  else
    local whole = api.nvim_win_text_height(window, { start_row = line - 1 })
    local one = api.nvim_win_text_height(window, { start_row = line - 1, end_row = line - 1 })
    rows = math.max(rows, whole.fill - one.fill)
  end
  local view, first, drawn = api.nvim_win_call(window, vim.fn.winsaveview), at.ends[line], rows
  if view.topline == line + 1 then
    local info = vim.fn.getwininfo(window)[1]
    first, drawn = info.winrow + info.winbar - 1, view.topfill
  end
  if not first or drawn == 0 then
    return false, false
  end
  local last = first + drawn
  return drawn >= rows and first + 1 >= at.top and last <= at.bottom, first < at.bottom and last >= at.top
end

--- Returns what windows show, computed at the first access; false for windows that may hide a part of a line.
---@return table<integer, mcp-tools.Visible|false> views by window
local function views_of()
  return setmetatable({}, {
    __index = function(views, window)
      local option = vim.wo[window]
      local view = option.wrap and option.conceallevel == 0 and visible.of(window) or false
      rawset(views, window, view)
      return view
    end,
  })
end

--- Notes which parts of a hunk are on the screen.
---@param hunk mcp-tools.Hunk
---@param parts mcp-tools.HunkPart[]
---@param views table<integer, mcp-tools.Visible|false>
---@return mcp-tools.HunkPart? unread the first part that was not completely on the screen
---@return boolean is_here something of it is on the screen now
local function note(hunk, parts, views)
  hunk.seen = hunk.seen or {}
  local seen, is_here = hunk.seen, hunk.count == 0 and #hunk.new == 0
  for _, part in ipairs(parts) do
    local at, last = views[part.window], part.first + part.count - 1
    if at and part.name ~= 'virtual' then
      seen[part.name] = visible.seen(at, part.first, part.count, seen[part.name] or 0)
      is_here = is_here or math.max(part.first, at.first) <= math.min(last, at.last)
    elseif at and part.count > 0 then
      local all, some = shows_virtual(part, at)
      seen.virtual = all and not part.cut and part.count or seen.virtual
      is_here = is_here or some
    end
  end
  local unread = not seen.all
    and vim.iter(parts):find(function(part)
      return part.cut or (seen[part.name] or 0) < part.count
    end)
  seen.all = not unread
  return unread or nil, is_here
end

--- Notes what is on the screen, and returns the part of a hunk that the user has not seen yet.
---@param file mcp-tools.Proposal
---@param i integer
---@return mcp-tools.HunkPart? part
---@return boolean? is_here something of it is on the screen; nil: it is not drawn, or on another tab page
function M.unread(file, i)
  local hunk, parts = file.hunks[i], split.parts(file, i)
  if parts then
    return note(hunk, parts, views_of())
  end
end

--- Notes what is on the screen of all undecided hunks.
---@param files mcp-tools.Proposal[]
---@return { [1]: integer, [2]: mcp-tools.Hunk }[] read file and hunk: those on the screen of which all was shown
function M.note(files)
  local views, read = views_of(), {}
  for f, file in ipairs(files) do
    local windows = file.gone and {} or inline.windows(file)
    local function is_near(hunk)
      return vim.iter(windows):any(function(window)
        local at = views[window]
        local is_open = at and at.top <= at.bottom
        return is_open and (not file.bufnr or hunk.start <= at.to and hunk.start + hunk.count >= at.from)
      end)
    end
    for h, hunk in ipairs(file.gone and {} or file.hunks) do
      local parts = not hunk.verdict and not hunk.changed and is_near(hunk) and split.parts(file, h)
      if parts then
        local unread, is_here = note(hunk, parts, views)
        table.insert(read, is_here and not unread and { f, hunk } or nil)
      end
    end
  end
  return read
end

--- Returns whether other windows cover the current one.
---@return boolean
function M.is_covered()
  local at = visible.of(api.nvim_get_current_win())
  return at.top > at.bottom
end

--- Scrolls to what was not on the screen yet.
---@param hunk mcp-tools.Hunk
---@param part mcp-tools.HunkPart? nil: all of it was
---@return boolean scrolled false if that does not help: there is too much for the window
function M.scroll(hunk, part)
  if not part or part.cut then
    return false
  end
  local line = part.first + (part.name == 'virtual' and 0 or hunk.seen[part.name] or 0)
  api.nvim_set_current_win(part.window) -- side by side it may be the other one
  if line > 0 then
    visible.show(part.window, line)
  else
    visible.show_above(part.window)
  end
  local at = visible.of(part.window)
  if part.name == 'virtual' then
    return (shows_virtual(part, at))
  end
  return at.first <= line and line <= at.last
end

return M
