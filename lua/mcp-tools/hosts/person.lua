--- The host for the person who calls a tool by hand (`:McpTools call`), with all that a client has.
---
--- Receives: a name, arguments, and a view.
--- Sends: the call to the executor; to the view what happens; the tool's questions to the person.
--- Does not know about: how anything is shown.

local core = require('mcp-tools.core')
local form = require('mcp-tools.ui.form')
local inputs = require('mcp-tools.call.inputs')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')

local M = {}

--- Who sees the call. The methods are called outside of fast events, in order.
---@class mcp-tools.CallView
---@field progress fun(progress: mcp-tools.Progress)
---@field state fun(state: any)
---@field log fun(level: string, data: any)
---@field asks fun(message: string)
---@field done fun(call: mcp-tools.Call)

local FAILED = -32603 -- JSON-RPC: internal error

--- Asks for one thing after the other.
---@param requests table<string, mcp-tools.Input>
---@param call mcp-tools.Call
---@param seq integer
---@param view mcp-tools.CallView
local function ask(requests, call, seq, view)
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
    view.asks(params.message)
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

--- Calls a tool. The view hears of it later, never before this has returned.
---@param name string
---@param args table
---@param view mcp-tools.CallView
---@return mcp-tools.Call
function M.call(name, args, view)
  return core.get().executor:execute(name, args, {
    host = 'command',
    capabilities = { elicitation = { form = vim.empty_dict() } },
    listener = {
      progress = function(_, call)
        local progress = call.latest
        vim.schedule(function()
          view.progress(progress)
        end)
      end,
      state = function(_, _, state)
        vim.schedule(function()
          view.state(state)
        end)
      end,
      log = function(_, _, level, data)
        vim.schedule(function()
          view.log(level, data)
        end)
      end,
      inputs = function(_, call)
        local open = call.inputs
        if open then
          local requests = vim.json.decode(open.json, { luanil = { object = true } })
          vim.schedule(function()
            ask(requests, call, open.seq, view)
          end)
        end
      end,
      done = vim.schedule_wrap(function(_, call)
        view.done(call)
      end),
    },
  })
end

return M
