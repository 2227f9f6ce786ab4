--- Approval by elicitation: the client asks its user.
---
--- A client may answer without asking anyone, so it gets no choice that outlives its session.

local is_from_client = require('mcp-tools.approval.answers').is_from_client
local inputs = require('mcp-tools.calls.inputs')
local text = require('mcp-tools.ui.approval.text')

local M = { serial = false }

---@type table<mcp-tools.Question, table<string, mcp-tools.Input>>
local asked = setmetatable({}, { __mode = 'k' })

---@param message string
---@param choices table[]
---@return table<string, mcp-tools.Input>, string key
local function form(message, choices)
  local names, titles = {}, {}
  for _, choice in ipairs(choices) do
    table.insert(names, choice.name)
    table.insert(titles, choice.long)
  end
  local answer = { type = 'string', title = 'Answer', enum = names, enumNames = titles, default = 'deny' }
  local schema = { type = 'object', properties = { answer = answer }, required = { 'answer' } }
  -- The key is random, so that a client cannot answer before it has the question.
  local key = 'approval_' .. vim.text.hexencode(assert(vim.uv.random(16)))
  return { [key] = { method = 'elicitation/create', params = { message = message, requestedSchema = schema } } }, key
end

--- Returns why the client of a call cannot be asked.
---@param call mcp-tools.Call
---@return string?
function M.missing(call)
  local err = inputs.missing(call, (form('', {})))
  return err and 'its client cannot ask its user (it does not support elicitation)' or nil
end

---@param question mcp-tools.Question
function M.show(question)
  local choices = vim.tbl_filter(function(choice)
    return is_from_client(question.call, choice.name --[[@as mcp-tools.Choice]])
  end, question:offered())
  local message = 'Allow this call in Neovim?\n\n' .. table.concat(text.facts(question), '\n')
  local requests, key = form(message, choices)
  asked[question] = requests
  inputs.ask(question.call, requests, function(results, err)
    asked[question] = nil
    if err then
      return question:give_up(M, 'its client did not ask: ' .. err.message)
    end
    local result = results[key]
    local choice = result.action == 'accept' and result.content.answer
    if not question:answer(choice, 'client') then
      question:answer('deny', 'client')
    end
  end)
end

---@param question mcp-tools.Question
function M.hide(question)
  if asked[question] then
    inputs.withdraw(question.call, asked[question])
    asked[question] = nil
  end
end

return M
