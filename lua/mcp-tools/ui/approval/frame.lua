--- Frame of the approval window: how to answer from where the person is, and how much there is to read.

local choices_of = require('mcp-tools.ui.approval.choices')
local keys_to = require('mcp-tools.ui.window.float.keys_to')
local render = require('mcp-tools.ui.window.render')

local api = vim.api

local M = {}

--- The ways to answer, the quickest first.
---@param window integer
---@return { [1]: string, [2]: string }[] keys, and what they do
local function ways(window)
  local lead, map_mode = keys_to.lead()
  local list = {}
  for _, answer in ipairs({ { 'approve', 'yes' }, { 'deny', 'no' } }) do
    local lhs = keys_to.mapped(map_mode, answer[1])
    table.insert(list, lhs and { lhs, answer[2] } or nil)
  end
  table.insert(list, { lead .. ':McpTools approve', 'or deny' })
  local go = keys_to.is_next(window) and 'CTRL-W w' or ':McpTools approve look'
  table.insert(list, { lead .. go, 'then y, n, ?' })
  return list
end

--- The footer: the keys where they work, else the ways to answer.
---@param question mcp-tools.Question
---@param window integer its
---@param width integer
---@return table[] chunks
function M.footer(question, window, width)
  local list
  if api.nvim_get_current_win() == window then
    list = vim.tbl_map(function(choice)
      return { choice.key, choice.text }
    end, choices_of(question))
    table.insert(list, { '?', 'keys' })
  else
    list = ways(window)
  end
  return render.keys(list, width)
end

--- The title.
---@param question mcp-tools.Question
---@param below integer rows that are not on the screen yet
---@return table[] chunks
function M.title(question, below)
  local why_not = question.why_not
  local chunks = { render.chunk((' %s '):format(why_not or 'may this run?'), why_not and 'Warn' or 'Title') }
  if question.open > 1 then
    table.insert(chunks, render.chunk(('1 of %d '):format(question.open), 'Title'))
  end
  return render.with_more(chunks, below)
end

return M
