--- Denial: what is said of a call that may not run, to its client what it can do, to the person what would allow it.

local errors = require('mcp-tools.errors')

local M = {}

---@alias mcp-tools.DenialNext
---| 'closed'     # nobody is asked about such a thing
---| 'decided'    # the person said so before
---| 'refused'    # somebody was asked and said no
---| 'unanswered' # nobody said anything
---| 'changed'    # what was asked about is not what would run
---| 'failed'     # the decision itself broke

---@type table<mcp-tools.DenialNext, string>
local NEXT = {
  closed = 'No tool gets at it: go on without it.',
  decided = 'Go on without it.',
  refused = 'Do not try it again unless they tell you to.',
  unanswered = 'The person can still allow the next try with the same arguments: tell them, then call it again.',
  changed = 'Call it again, so that they are asked anew.',
  failed = 'Go on without it, and tell the person.',
}

--- The outcomes of a question to the user.
---@type table<mcp-tools.DenialNext, true>
local ASKED = { refused = true, unanswered = true, changed = true }

--- The error for the client.
---@param call mcp-tools.Call
---@param why string in words that are good for a stranger
---@param what mcp-tools.DenialNext
---@return mcp-tools.Error
function M.error(call, why, what)
  local err = errors.new('access_denied', ('%s was not run: %s. %s'):format(call.name, why, NEXT[what]))
  err.asked = ASKED[what]
  return err
end

--- The error of a call that is denied without a question.
---@param call mcp-tools.Call
---@param decision mcp-tools.Decision
---@return mcp-tools.Error
function M.decided(call, decision)
  if decision.by == 'files' then
    return M.error(call, decision.reason, 'closed')
  elseif decision.by == 'ledger' then
    return M.error(call, 'the person at the editor denied it always', 'decided')
  end
  return M.error(call, 'the person at the editor has ruled it out', 'decided')
end

--- A name as a key of a Lua table, whatever is in it: it ends nowhere else than it should.
---@param name string
---@return string
local function key_of(name)
  if name:find('^[%a_][%w_]*$') and loadstring('local ' .. name) then
    return name
  end
  local escaped = name:gsub('[^%w_%-./ ]', function(char)
    return ('\\%03d'):format(char:byte())
  end)
  return ('["%s"]'):format(escaped)
end

--- The line of configuration that lets a tool run from now on; nil where it would not.
---@param name string of the tool
---@param decision mcp-tools.Decision that asked
---@return string?
function M.remedy(name, decision)
  -- A rule of the person's own comes first, and what cannot be read may hold a "never".
  if decision.action ~= 'ask' or decision.fault or decision.by == 'approval.rule' then
    return nil
  end
  return ('require("mcp-tools").setup({ approval = { tools = { %s = "allow" } } })'):format(key_of(name))
end

return M
