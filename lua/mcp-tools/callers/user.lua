--- The user of this editor: calls tools (`:McpTools call`), and answers what tools ask callers inside Neovim.

local core = require('mcp-tools.core')
local form = require('mcp-tools.ui.form')
local inputs = require('mcp-tools.calls.inputs')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')

local M = {}

--- The capabilities of such a caller, as a client declares them.
M.CAPABILITIES = { elicitation = { form = vim.empty_dict() } }

local FAILED = -32603 -- JSON-RPC: internal error

--- Asks for the inputs one after the other.
---@param requests table<string, mcp-tools.Input>
---@param call mcp-tools.Call
---@param seq integer
---@param asks? fun(message: string) called for each question
local function ask(requests, call, seq, asks)
  local names, answers = vim.tbl_keys(requests), {}
  table.sort(names)
  local function is_pending()
    return call.inputs ~= nil and call.inputs.seq == seq
  end
  local function step(i)
    local name = names[i]
    if not is_pending() then
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
    end, is_pending)
    if not ok then -- for example because a plugin replaces `vim.ui.input`
      log.error('call %s (%s): the question could not be asked: %s', call.id, call.name, err)
      answers[name] = { error = { code = FAILED, message = tostring(err):match('[^\n]*') } }
      step(i + 1)
    end
  end
  step(1)
end

--- Asks for the pending inputs of a call; the `inputs` method of a listener. Does not block.
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

--- Shows the progress of a call. The methods are called in order, outside of fast events.
---@class mcp-tools.CallView
---@field progress? fun(progress: mcp-tools.Progress)
---@field state? fun(state: any) an intermediate result
---@field log? fun(level: string, data: any)
---@field asks? fun(message: string)
---@field done fun(call: mcp-tools.Call)

--- Returns the listener of a call that calls the view's methods, and asks the user what the tool asks.
---@param view mcp-tools.CallView
---@return mcp-tools.Listener
function M.listener(view)
  local function later(method)
    return method and vim.schedule_wrap(method) or function() end
  end
  local progress, state, log_data, done = later(view.progress), later(view.state), later(view.log), later(view.done)
  return {
    progress = function(_, call)
      progress(vim.deepcopy(call.latest))
    end,
    state = function(_, _, value)
      state(value)
    end,
    log = function(_, _, level, data)
      log_data(level, data)
    end,
    inputs = function(_, call)
      M.ask(call, view.asks)
    end,
    done = function(_, call)
      done(call)
    end,
  }
end

--- Calls a tool. The view's methods are called only after this function has returned.
---@param name string
---@param args table
---@param view mcp-tools.CallView
---@return mcp-tools.Call
function M.call(name, args, view)
  return core.get().executor:execute(name, args, {
    host = 'command',
    capabilities = M.CAPABILITIES,
    listener = M.listener(view),
  })
end

return M
