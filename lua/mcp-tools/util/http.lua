--- A small HTTP client for programs of this machine: one request a connection, nothing on a command line.
---
--- Receives: a request to a loopback address.
--- Sends: the answer, or why there is none, once, on the main loop, before the deadline.
--- Does not know about: TLS, redirects, what is asked.

local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

--- Bytes of an answer.
local MAX_BYTES = 1024 * 1024
local TIMEOUT = 3000

---@class mcp-tools.http.Request
---@field url string `http://127.0.0.1:PORT/…`, or `localhost`, or `[::1]`
---@field method string?
---@field headers table<string, string>?
---@field body string?
---@field timeout integer? ms

---@class mcp-tools.http.Answer
---@field status integer
---@field body string

--- The parts of a loopback URL.
---@param url string
---@return { host: string, port: integer, path: string, authority: string }? parts nil: it is none
function M.loopback(url)
  local authority, path = url:match('^http://([^/?#@]+)([^#]*)')
  local host, port = (authority or ''):match('^(.-):(%d+)$')
  host = host or authority
  if host ~= 'localhost' and host ~= '127.0.0.1' and host ~= '[::1]' then
    return nil
  end
  local number = tonumber(port or 80)
  if not number or number < 1 or number > 65535 or path:find('[%c ]') or path:find('^[^/?]') then
    return nil
  end
  path = path:sub(1, 1) == '/' and path or '/' .. path
  return { host = host == '[::1]' and '::1' or '127.0.0.1', port = number, path = path, authority = authority }
end

--- The bytes of a request.
---@param request mcp-tools.http.Request to a loopback address
---@return string
function M.bytes(request)
  local at, body = assert(M.loopback(request.url)), request.body or ''
  local lines = {
    ('%s %s HTTP/1.1'):format(request.method or 'GET', at.path),
    'Host: ' .. at.authority,
    'Connection: close',
    'Content-Length: ' .. #body,
  }
  for name, value in vim.spairs(request.headers or {}) do
    table.insert(lines, ('%s: %s'):format(name, (value:gsub('%c', ''))))
  end
  return table.concat(lines, '\r\n') .. '\r\n\r\n' .. body
end

--- A body that comes in chunks, as far as it is there.
---@param text string
---@return string? body nil: there is more to come
local function unchunked(text)
  local parts, at = {}, 1
  while true do
    local size, behind = text:match('^(%x+)[^\r\n]*\r\n()', at)
    local count = tonumber(size or '', 16)
    if not count then
      return nil
    elseif count == 0 then
      return table.concat(parts)
    elseif #text < behind + count + 1 then
      return nil
    end
    table.insert(parts, text:sub(behind, behind + count - 1))
    at = behind + count + 2
  end
end

--- The answer in what was received.
---@param received string
---@param ended boolean
---@return mcp-tools.http.Answer? answer nil: there is more to come
local function answer_in(received, ended)
  local head, body = received:match('^(HTTP/1%.%d %d%d%d.-\r\n)\r\n(.*)$')
  if not head then
    return nil
  end
  local status, lower = tonumber(head:match('^%S+ (%d+)')), head:lower()
  local length = tonumber(lower:match('\ncontent%-length: *(%d+)'))
  if lower:find('\ntransfer%-encoding: *chunked') then
    body = unchunked(body)
  elseif length then
    body = #body >= length and body:sub(1, length) or nil
  elseif not ended and status ~= 204 then
    body = nil
  end
  return body and { status = status, body = body } or nil
end

--- Asks.
---@param request mcp-tools.http.Request
---@param cb fun(answer: mcp-tools.http.Answer?, fault: string?)
function M.request(request, cb)
  local at, ended, received = M.loopback(request.url), false, ''
  local socket, deadline ---@type uv.uv_tcp_t?, mcp-tools.Timer?
  local finish = vim.schedule_wrap(function(answer, fault)
    if ended then
      return
    end
    ended = true
    if deadline then
      deadline:stop()
    end
    if socket and not socket:is_closing() then
      socket:close()
    end
    cb(answer, fault)
  end)
  if not at then
    return finish(nil, 'it is no address of this machine: ' .. request.url)
  end
  deadline = timer.after(request.timeout or TIMEOUT, function()
    finish(nil, 'it does not answer')
  end)
  socket = assert(uv.new_tcp())
  local bytes = M.bytes(request)
  socket:connect(at.host, at.port, function(problem)
    if problem then
      return finish(nil, 'nobody listens there: ' .. problem)
    elseif socket:is_closing() then
      return
    end
    socket:write(bytes)
    socket:read_start(function(fault, data)
      received = received .. (data or '')
      local answer = answer_in(received, data == nil)
      if answer or fault or data == nil or #received > MAX_BYTES then
        finish(answer, not answer and (fault or 'its answer is none of HTTP') or nil)
      end
    end)
  end)
end

return M
