--- Section: calls in flight.

local format = require('mcp-tools.ui.dashboard._format')

--- More are counted; a window has room for some.
local MOST = 12
--- Cells of a progress bar.
local BAR = 10

---@param call mcp-tools.Call
---@return mcp-tools.Piece
local function progress_of(call)
  local latest = call.latest
  if not latest then
    return { (call.state:gsub('_', ' ')), call.state == 'running' and 'Busy' or 'Warn' }
  elseif latest.total and latest.total > 0 then
    local share = latest.done / latest.total
    return { ('%s %3.0f%%'):format(format.bar(share, BAR), math.min(100, share * 100)), 'Busy' }
  end
  return { ('%g'):format(latest.done), 'Busy' }
end

---@type mcp-tools.DashboardSection
return {
  title = 'Calls in flight',
  order = 30,
  note = function(parts)
    local count = #parts.executor:pending()
    return count == 0 and 'none' or tostring(count)
  end,
  rows = function(rows, parts)
    local list, calls, now = {}, parts.executor:pending(), vim.uv.hrtime()
    for i = 1, math.min(#calls, MOST) do
      local call = calls[i]
      table.insert(list, {
        cells = {
          { call.name, 'Name' },
          progress_of(call),
          { format.age(now - call.created_at), 'Number' },
          { call.client.name or call.host, 'Dim' },
          call.latest and call.latest.message or '',
        },
        item = { kind = 'call', id = 'call ' .. call.id, value = call.id },
      })
    end
    rows:table(list, { right = { [3] = true }, least = { [2] = BAR + 5, [3] = 4 } })
    if #calls > MOST then
      rows:add({ { ('  and %d more'):format(#calls - MOST), 'Dim' } })
    end
  end,
  keys = {
    {
      lhs = 'x',
      description = 'cancel the call in flight or stop the job under the cursor',
      word = 'cancel',
      item = { 'call', 'job' },
      run = function(parts, item)
        parts.run((item.kind == 'job' and 'jobs stop ' or 'cancel ') .. item.value)
      end,
    },
  },
}
