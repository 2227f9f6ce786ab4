--- Frames of an interview: who asks and how far it is, and the keys that do something where the cursor is.

local Rows = require('mcp-tools.ui.window.rows')
local keys_to = require('mcp-tools.ui.window.float')
local sanitize = require('mcp-tools.util.sanitize')
local render = require('mcp-tools.ui.window.render')

local M = {}

local MAX_NAME = 40

--- The title of the question.
---@param interview mcp-tools.Interview
---@param below integer rows that are not on the screen
---@return table[] chunks
function M.title(interview, below)
  local answers = interview.answers
  local count = #answers.questions
  local from = Rows.clip(sanitize.line(interview.from or 'a tool'), MAX_NAME)
  local chunks = { render.chunk((' %s asks '):format(from), 'Title') }
  if interview.why_not then
    chunks = { render.chunk((' %s '):format(interview.why_not), 'Warn') }
  end
  if count > 1 then
    table.insert(chunks, render.chunk(('%d of %d '):format(answers.at, count), 'Title'))
  end
  if interview.waiting > 0 then
    table.insert(chunks, render.chunk(('(%d more waiting) '):format(interview.waiting)))
  end
  return render.with_more(chunks, below)
end

--- The title of the field below it.
---@param interview mcp-tools.Interview
---@return table[] chunks
function M.field(interview)
  local question = interview.answers:current()
  local text = #question.choices == 0 and 'your answer' or question.multiselect and 'and also' or 'or something else'
  return { render.chunk((' %s '):format(text), 'Title') }
end

--- The footer.
---@param interview mcp-tools.Interview
---@param place 'question'|'field'|nil where the cursor is
---@param window integer the first of its windows
---@param width integer
---@return table[] chunks
function M.footer(interview, place, window, width)
  local answers, list = interview.answers, {}
  local several, count = answers:current().multiselect, #answers:current().choices
  if place then
    local typing = place == 'field' and vim.api.nvim_get_mode().mode:sub(1, 1) == 'i'
    if place == 'question' and several then
      table.insert(list, { '<Space>', 'choose' })
    end
    table.insert(list, { '<CR>', answers.at == #answers.questions and 'done' or 'next' })
    table.insert(list, not typing and { 'i', 'type' } or nil)
    table.insert(list, count > 0 and { '<Tab>', place == 'field' and 'to the choices' or 'down' } or nil)
    if answers.at > 1 then
      table.insert(list, { 'CTRL-P', 'back' })
    end
    table.insert(list, { typing and '<Esc><Esc>' or '<Esc>', 'cancel' })
    if not typing then
      table.insert(list, { 'q', 'later' })
      table.insert(list, { '?', 'keys' })
    end
  else
    local lead, map_mode = keys_to.lead()
    local lhs = keys_to.mapped(map_mode, 'answer')
    table.insert(list, lhs and { lhs, 'to answer' } or { lead .. ':McpTools answer', 'to answer' })
    table.insert(list, keys_to.is_next(window) and { lead .. 'CTRL-W w', 'likewise' } or nil)
  end
  return render.keys(list, width)
end

return M
