-- Requests and results of wrk. Run by load.py: `wrk … -s wrk.lua URL -- SPEC.lua`.
-- The spec: `headers`, `sessions` (a header value for each; every client uses one), `before` and `after` (the body
-- around the request id), `expect` (a text in every answer), `size` (minimum bytes of a body).
--
-- Every call is timed here: wrk reports latencies of clients with a constant rate, where one pause of 4 ms counts
-- as 25 slow calls. Its p99 is printed as well.

local ffi = require('ffi')

ffi.cdef([[
  typedef struct { long seconds; long ns; } moment;
  int clock_gettime(int clock, moment *now);
]])

local MONOTONIC, MICRO = 1, 1e-3
local moment = ffi.new('moment')

local head, before, after, expect, size, headers
-- All ids have eight digits, so that Content-Length is constant.
local id = 10000000
-- Global: `thread:get` reads them.
bad, fault = 0, nil
times = {} -- µs → number of calls
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

--- ns
local function now()
  ffi.C.clock_gettime(MONOTONIC, moment)
  return tonumber(moment.seconds) * 1e9 + tonumber(moment.ns)
end

local sent

function request()
  id = id + 1
  sent = now()
  return head .. before .. id .. after
end

function response(status, _, body)
  local took = math.floor((now() - sent) * MICRO)
  times[took] = (times[took] or 0) + 1
  if status ~= 200 or #body < size or not body:find(expect, 1, true) then
    bad = bad + 1
    fault = fault or (status .. ' ' .. body:sub(1, 300))
  end
end

--- The percentile of the times, µs.
local function percentile(counts, calls, share)
  local sorted, seen = {}, 0
  for took in pairs(counts) do
    table.insert(sorted, took)
  end
  table.sort(sorted)
  for _, took in ipairs(sorted) do
    seen = seen + counts[took]
    if seen >= calls * share then
      return took
    end
  end
  return 0
end

function done(summary, latency)
  local faults, first, counts, calls = 0, '', {}, 0
  for _, thread in ipairs(threads) do
    faults = faults + (thread:get('bad') or 0)
    first = first .. (thread:get('fault') or '')
    for took, count in pairs(thread:get('times')) do
      counts[took], calls = (counts[took] or 0) + count, calls + count
    end
  end
  local errors = summary.errors
  io.write(
    ('RESULT %d %d %d %d %d %d %d\n'):format(
      summary.requests,
      summary.duration,
      percentile(counts, calls, 0.5),
      percentile(counts, calls, 0.99),
      latency:percentile(99),
      faults,
      errors.connect + errors.read + errors.write + errors.timeout
    )
  )
  io.write('FAULT ', (first:gsub('%s+', ' ')), '\n')
end
