local double = require('http_double')
local http = require('mcp-tools.util.http')
local t = require('helpers')

local server

after_each(function()
  if server then
    server.close()
    server = nil
  end
end)

local function ask(bytes, more)
  server = double.start(function()
    return bytes
  end)
  local done
  http.request(vim.tbl_extend('force', { url = server.url .. '/a?b=1' }, more or {}), function(...)
    done = { ... }
  end)
  t.eq(nil, done) -- never before it returns
  t.wait(function()
    return done
  end, 3000, 'the answer')
  return done[1], done[2]
end

describe('a request to a program of this machine', function()
  it('is answered, however the body comes', function()
    local ok = 'HTTP/1.1 200 OK\r\n'
    for _, bytes in ipairs({
      ok .. 'Content-Length: 5\r\n\r\nhello',
      ok .. 'Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n',
      ok .. 'Connection: close\r\n\r\nhello',
    }) do
      t.eq({ status = 200, body = 'hello' }, (ask(bytes)))
      server.close()
    end
    t.eq({ status = 404, body = '' }, (ask('HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n')))
  end)

  it('carries method, headers and body, and no line break in a header', function()
    ask(double.json({}), { method = 'POST', body = '{"x":1}', headers = { A = 'b\r\nC: d' } })
    local asked = server.asked[1]
    t.eq({ 'POST', '/a?b=1', '{"x":1}' }, { asked.method, asked.path, asked.body })
    t.eq({ 'bC: d', nil }, { asked.headers.a, asked.headers.c })
  end)

  it('ends with a reason when nobody answers, or something else does', function()
    local _, fault = ask(nil, { timeout = 50 })
    t.eq('it does not answer', fault)
    server.close()
    _, fault = ask('SSH-2.0-x\r\n')
    t.matches('none of HTTP', fault)
    server.close()
    _, fault = ask(nil, { url = 'http://127.0.0.1:1/' })
    t.matches('^nobody listens there', fault)
  end)

  it('goes to no other machine', function()
    for _, url in ipairs({
      'http://example.org/',
      'https://127.0.0.1:1/',
      'http://127.0.0.1:1@example.org/',
      'http://127.0.0.1.example.org:80/',
      'http://127.0.0.1:99999/',
      'http://localhost:80/a b',
    }) do
      t.eq(nil, http.loopback(url), url)
    end
    t.eq('::1', http.loopback('http://[::1]:80/x').host)
    local _, fault = ask(nil, { url = 'http://example.org/' })
    t.matches('no address of this machine', fault)
  end)
end)
