-- A model's server that answers from a script, over HTTP as OpenAI's does, streamed.

local M = {}

---@param answer { text?: string, calls?: string[][] }
---@param id integer
---@return string body
local function stream_of(answer, id)
  local calls = {}
  for i, call in ipairs(answer.calls or {}) do
    calls[i] = {
      index = i - 1,
      id = ('call_%d_%d'):format(id, i),
      type = 'function',
      ['function'] = { name = call[1], arguments = call[2] },
    }
  end
  local delta = { role = 'assistant', content = answer.text, tool_calls = #calls > 0 and calls or nil }
  local chunk = { id = 'x', object = 'chat.completion.chunk', choices = { { index = 0, delta = delta } } }
  local ended = vim.deepcopy(chunk)
  ended.choices[1] = { index = 0, delta = vim.empty_dict(), finish_reason = #calls > 0 and 'tool_calls' or 'stop' }
  local function event(value) return 'data: ' .. vim.json.encode(value) .. '\n\n' end
  return event(chunk) .. event(ended) .. 'data: [DONE]\n\n'
end

--- Listens until `stop()`.
---@param script table[]
---@return { url: string, requests: table[], stop: fun() }
function M.start(script)
  local server = assert(vim.uv.new_tcp())
  local model = { requests = {} }
  assert(server:bind('127.0.0.1', 0))
  local function serve()
    local socket = assert(vim.uv.new_tcp())
    server:accept(socket)
    local got = ''
    socket:read_start(function(_, data)
      got = got .. (data or '')
      local head, body = got:match('^(.-\r\n\r\n)(.*)$')
      local size = head and tonumber(head:lower():match('content%-length: (%d+)'))
      if head and head:lower():find('expect: 100-continue', 1, true) and body == '' then
        socket:write('HTTP/1.1 100 Continue\r\n\r\n')
      end
      if not size or #body < size then
        return
      end
      socket:read_stop()
      vim.schedule(function()
        table.insert(model.requests, { json = body, body = vim.json.decode(body) })
        local answer = stream_of(script[#model.requests] or { text = 'the script has ended' }, #model.requests)
        local reply = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n'
        socket:write((reply .. 'Connection: close\r\n\r\n%s'):format(#answer, answer), function() socket:close() end)
      end)
    end)
  end
  assert(server:listen(16, serve))
  model.url = ('http://127.0.0.1:%d/v1/chat/completions'):format(server:getsockname().port)
  function model.stop() server:close() end
  return model
end

return M
