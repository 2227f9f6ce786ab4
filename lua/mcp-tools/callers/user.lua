--- Calls tools for the user of this editor (`:McpTools call`).

local core = require('mcp-tools.core')
local questions = require('mcp-tools.callers.questions')

local M = {}

--- Shows the progress of a call. The methods are called in order, outside of fast events.
---@class mcp-tools.CallView
---@field progress fun(progress: mcp-tools.Progress)
---@field state fun(state: any)
---@field log fun(level: string, data: any)
---@field asks fun(message: string)
---@field done fun(call: mcp-tools.Call)

--- Calls a tool. The view's methods are called only after this function has returned.
---@param name string
---@param args table
---@param view mcp-tools.CallView
---@return mcp-tools.Call
function M.call(name, args, view)
  return core.get().executor:execute(name, args, {
    host = 'command',
    capabilities = questions.CAPABILITIES,
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
        questions.ask(call, view.asks)
      end,
      done = vim.schedule_wrap(function(_, call)
        view.done(call)
      end),
    },
  })
end

return M
