-- An HTTP server in the editor itself, in the place of another program on loopback.
-- Receives: a function that answers. Sends: what was asked. Does not know about: what is tested.

local uv = vim.uv

local M = {}

---@class HttpDouble
---@field url string
---@field asked { method: string, path: string, headers: table<string, string>, body: string }[]
---@field close fun()

--- Starts one.
---@param answer fun(asked: table): string? the bytes of the answer, or nothing
---@return HttpDouble
function M.start(answer)
  local server, clients, asked = assert(uv.new_tcp()), {}, {}
  server:bind('127.0.0.1', 0)
  server:listen(16, function()
    local client, received = assert(uv.new_tcp()), ''
    table.insert(clients, client)
    server:accept(client)
    client:read_start(function(_, data)
      received = received .. (data or '')
      local head, body = received:match('^(.-\r\n)\r\n(.*)$')
      local length = head and tonumber(head:match('[Cc]ontent%-[Ll]ength: *(%d+)') or '0')
      if not data or not head or #body < length then
        return
      end
      local one = { body = body, headers = {} }
      one.method, one.path = head:match('^(%S+) (%S+)')
      for name, value in head:gmatch('\r?\n([^:\r\n]+): ([^\r\n]*)') do
        one.headers[name:lower()] = value
      end
      received = ''
      table.insert(asked, one)
      local bytes = answer(one)
      if bytes then
        client:write(bytes, function()
          if not client:is_closing() then
            client:close()
          end
        end)
      end
    end)
  end)
  return {
    url = ('http://127.0.0.1:%d'):format(server:getsockname().port),
    asked = asked,
    close = function()
      for _, handle in ipairs(vim.list_extend({ server }, clients)) do
        if not handle:is_closing() then
          handle:close()
        end
      end
    end,
  }
end

--- An answer with a JSON body.
---@param value any
---@param status? integer
---@return string
function M.json(value, status)
  local body = vim.json.encode(value)
  local head = 'HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s'
  return head:format(status or 200, #body, body)
end

return M
