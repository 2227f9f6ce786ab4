--- `:McpTools cancel`: ends calls in flight.

local core = require('mcp-tools.core')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')

local function executor()
  return core.get().executor
end

---@param calls mcp-tools.Call[]
local function cancel(calls)
  for _, call in ipairs(calls) do
    executor():cancel(call.id, 'user')
  end
  notify.info(
    #calls == 1 and ('cancelled %s (%s)'):format(calls[1].name, calls[1].id) or ('%d calls cancelled'):format(#calls)
  )
end

---@type mcp-tools.Subcommand
return {
  usage = '[ID | all]',
  description = 'cancel a call in flight, or all of them',
  run = function(rest)
    local calls = executor():pending()
    if #calls == 0 then
      notify.info('no call is in flight')
    elseif rest == 'all' or (rest == '' and #calls == 1) then
      cancel(calls)
    elseif rest == '' then
      vim.ui.select(calls, {
        prompt = 'Cancel which call?',
        format_item = function(call)
          return sanitize.line(('%s  %s  %s'):format(call.name, call.state, call.id))
        end,
      }, function(call)
        if call then
          cancel({ call })
        end
      end)
    else
      local found = vim.tbl_filter(function(call)
        return call.id == rest
      end, calls)
      if #found == 0 then
        notify.error(('no call in flight has the id %s'):format(rest))
      else
        cancel(found)
      end
    end
  end,
  complete = function()
    local ids = vim.tbl_map(function(call)
      return call.id
    end, executor():pending())
    table.insert(ids, 'all')
    return ids
  end,
}
