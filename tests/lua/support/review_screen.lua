-- Reviews on the screen, opened as an agent does: `local screen = require('review_screen')`.

local project = require('editor_project')
local review = require('mcp-tools.editor.review')
local t = require('helpers')

local api = vim.api

local M = {}

--- Begins a test without an earlier review: answers right after one are ignored.
function M.reset()
  for _, name in ipairs({ 'ui.review', 'ui.review.screen', 'command.review' }) do
    package.loaded['mcp-tools.' .. name] = nil
  end
  project.open()
  vim.cmd('messages clear')
  M.ends = {} -- outcomes
end

--- Closes all reviews.
function M.close_all()
  for _, one in ipairs(review.list()) do
    one:close('the test is over')
  end
end

--- Ends a test.
function M.close()
  M.close_all()
  project.close()
end

--- Shows no review until `end_unseen`.
---@param is_attended? fun(): boolean
function M.unseen(is_attended)
  local function noop() end
  local always = t.returns(true)
  review.set_presenter({ is_attended = is_attended or always, show = noop, update = noop, hide = noop })
end

--- Closes reviews that were not shown.
function M.end_unseen()
  M.close_all()
  review.set_presenter(nil)
end

--- Proposes texts, and returns the review on the screen.
function M.open(files, more)
  local handle = review.open(vim.tbl_extend('force', {
    client = { name = 'claude' },
    key = tostring(vim.uv.hrtime()),
    title = 'a title',
    files = files,
    on_end = function(outcome) table.insert(M.ends, outcome) end,
  }, more or {}))
  t.wait(function()
    return vim.iter(review.list()):any(function(one) return one.id == handle.id end)
  end)
  return review.current()
end

--- Types keys as the user does, one argument after the other.
function M.press(...)
  for _, keys in ipairs({ ... }) do
    api.nvim_feedkeys(vim.keycode(keys), 'xt', false)
  end
end

--- Enters the review, and types keys there.
function M.enter(...)
  require('mcp-tools.command').run({ args = 'review ' })
  M.press(...)
end

--- Returns the window of the legend and its text.
function M.legend()
  for _, window in ipairs(api.nvim_list_wins()) do
    local buffer = api.nvim_win_get_buf(window)
    if vim.b[buffer].mcp_tools_review then
      return window, table.concat(api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
    end
  end
end

--- Waits until the legend has a text.
function M.says(text)
  return t.wait(function()
    local _, shown = M.legend()
    return shown and shown:find(text, 1, true) and shown
  end, 2000, 'the legend with ' .. text)
end

return M
