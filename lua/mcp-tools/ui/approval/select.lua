--- Approval by `vim.ui.select`.
---
--- Receives: a question for approval.
--- Sends: it to `vim.ui.select`, for users who prefer their own picker.
--- Does not know about: what the answer means.
---
--- Neovim's built-in picker blocks the editor until it is answered.

local choices_of = require('mcp-tools.ui.approval.choices')
local text = require('mcp-tools.ui.approval.text')
local sanitize = require('mcp-tools.util.sanitize')

local M = { serial = true }

--- Characters of all arguments, and the least that each one has; how many arguments a prompt can hold.
local MAX_ARGS, MIN_ARG, MAX_NAMES = 400, 30, 100

--- An argument in one line; what is not shown is counted, so that nothing hides behind the end.
---@param name string
---@param value any
---@param share integer characters
---@return string
local function argument(name, value, share)
  local whole = sanitize.line(vim.inspect(value, { newline = ' ', indent = '' }))
  local length = vim.fn.strcharlen(whole)
  if length > share then
    whole = ('%s… (%d of %d characters not shown)'):format(
      vim.fn.strcharpart(whole, 0, share),
      length - share,
      length
    )
  end
  return ('%s = %s'):format(sanitize.line(name), whole)
end

--- All arguments, each with its name.
---@param args table
---@return string
local function summary(args)
  local names = vim.tbl_map(tostring, vim.tbl_keys(args))
  table.sort(names)
  local share = math.max(MIN_ARG, math.floor(MAX_ARGS / math.max(1, #names)))
  local parts = {}
  for _, name in ipairs(vim.list_slice(names, 1, MAX_NAMES)) do
    table.insert(parts, argument(name, args[name], share))
  end
  if #names > MAX_NAMES then
    table.insert(parts, ('… and %d more arguments'):format(#names - MAX_NAMES))
  end
  return ('{ %s }'):format(table.concat(parts, ', '))
end

---@param question mcp-tools.Question
function M.show(question)
  local call = question.call
  local who = call.client.name and 'A client that ' .. text.client(call, true)
    or 'The host ' .. sanitize.line(call.host)
  local prompt = ('%s wants to run %s %s (%s)'):format(
    who,
    sanitize.line(call.name),
    summary(question.args),
    sanitize.line(question.reason)
  )
  local choices = choices_of(question)
  vim.ui.select(choices, {
    prompt = prompt,
    kind = 'mcp-tools-approval',
    format_item = function(choice)
      return choice.long
    end,
  }, function(choice)
    local name = type(choice) == 'table' and choice.name
    if name == 'reason' then
      question:deny_because(function()
        M.show(question)
      end)
    elseif not question:answer(name) then
      question:answer('deny') -- put away, or not one of the items, is no
    end
  end)
end

--- A picker cannot be closed from here; an answer that comes later is dropped.
function M.hide() end

return M
