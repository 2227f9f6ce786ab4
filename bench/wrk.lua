-- What wrk sends, and how it says what it saw. Run by load.py: `wrk … -s wrk.lua URL -- SPEC.lua`.
-- The spec: `headers`, `sessions` (a header value each; every client keeps to its own), `before` and `after` (the body
-- around the request id), `expect` (text that every answer holds), `size` (least bytes of a body).

local head, before, after, expect, size, headers
-- Eight digits from the first request to the last, so that Content-Length is known beforehand.
local id = 10000000
-- Global: `thread:get` reads them.
bad, fault = 0, nil
threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set('client', #threads)
end

function init(args)
  local spec = dofile(args[1])
  before, after, expect, size = spec.before, spec.after, spec.expect, spec.size
  local length = #before + 8 + #after
  headers = { ['Content-Length'] = tostring(length) }
  for name, value in pairs(spec.headers) do
    headers[name] = value
  end
  local session = spec.sessions[(client - 1) % #spec.sessions + 1]
  headers['Mcp-Session-Id'] = session ~= '' and session or nil
  head = wrk.format('POST', wrk.path, headers, ' '):gsub('Content%-Length: %d+', 'Content-Length: ' .. length)
  head = head:sub(1, -2)
end

function request()
  id = id + 1
  return head .. before .. id .. after
end

function response(status, _, body)
  if status ~= 200 or #body < size or not body:find(expect, 1, true) then
    bad = bad + 1
    fault = fault or (status .. ' ' .. body:sub(1, 300))
  end
end

function done(summary, latency)
  local faults, first = 0, ''
  for _, thread in ipairs(threads) do
    faults = faults + (thread:get('bad') or 0)
    first = first .. (thread:get('fault') or '')
  end
  local errors = summary.errors
  io.write(
    ('RESULT %d %d %d %d %d %d\n'):format(
      summary.requests,
      summary.duration,
      latency:percentile(50),
      latency:percentile(99),
      faults,
      errors.connect + errors.read + errors.write + errors.timeout
    )
  )
  io.write('FAULT ', (first:gsub('%s+', ' ')), '\n')
end
