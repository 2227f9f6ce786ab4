--- What a tool asks its client for, asked of the person instead: hosts whose person sits at this editor.

local form = require('mcp-tools.ui.form')
local inputs = require('mcp-tools.calls.inputs')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')

local M = {}

--- What such a host can do, as a client would declare it.
M.CAPABILITIES = { elicitation = { form = vim.empty_dict() } }

local FAILED = -32603 -- JSON-RPC: internal error

--- Asks for one thing after the other.
---@param requests table<string, mcp-tools.Input>
---@param call mcp-tools.Call
---@param seq integer
---@param asks? fun(message: string) hears of each
local function ask(requests, call, seq, asks)
  local names, answers = vim.tbl_keys(requests), {}
  table.sort(names)
  local function wanted()
    return call.inputs ~= nil and call.inputs.seq == seq
  end
  local function step(i)
    local name = names[i]
    if not wanted() then
      return
    elseif not name then
      inputs.answer(call, seq, assert(json.encode(answers)))
      return
    end
    local params = requests[name].params
    if asks then
      asks(params.message)
    end
    local ok, err = xpcall(form.ask, debug.traceback, params, function(result)
      answers[name] = { result = result }
      step(i + 1)
    end, wanted)
    if not ok then -- a plugin that has taken the place of `vim.ui.input`, for example
      log.error('call %s (%s): the question could not be asked: %s', call.id, call.name, err)
      answers[name] = { error = { code = FAILED, message = tostring(err):match('[^\n]*') } }
      step(i + 1)
    end
  end
  step(1)
end

--- Asks what a call has just been told to ask; for the `inputs` of a listener. Returns at once.
---@param call mcp-tools.Call
---@param asks? fun(message: string)
function M.ask(call, asks)
  local open = call.inputs
  if open then
    local requests = vim.json.decode(open.json, { luanil = { object = true } })
    vim.schedule(function()
      ask(requests, call, open.seq, asks)
    end)
  end
end

return M
