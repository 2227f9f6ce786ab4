--- SHA-256 of text in pieces. `vim.fn.sha256` needs the whole text without NUL bytes.
---
--- Source: FIPS 180-4.

local band, bnot, bxor, ror, rshift, tobit, tohex =
  bit.band, bit.bnot, bit.bxor, bit.ror, bit.rshift, bit.tobit, bit.tohex

local M = {}

--- First 32 bits of the fractional parts of the roots of the first primes: 64 cube roots, 8 square roots.
local K, START = {}, {}

do
  local function is_prime(n)
    for i = 2, math.floor(math.sqrt(n)) do
      if n % i == 0 then
        return false
      end
    end
    return true
  end
  local n = 2
  while #K < 64 do
    if is_prime(n) then
      local cube = n ^ (1 / 3)
      K[#K + 1] = tobit(math.floor((cube % 1) * 2 ^ 32))
      if #START < 8 then
        START[#START + 1] = tobit(math.floor((math.sqrt(n) % 1) * 2 ^ 32))
      end
    end
    n = n + 1
  end
end

---@class mcp-tools.Sha256
---@field state integer[]
---@field rest string bytes of an incomplete block
---@field bytes integer
---@field words integer[] reused for each block
local Sum = {}
Sum.__index = Sum

---@return mcp-tools.Sha256
function M.new()
  return setmetatable({ state = vim.list_slice(START), rest = '', bytes = 0, words = {} }, Sum)
end

---@param text string
---@param at integer where a block of 64 bytes begins
function Sum:block(text, at)
  local w, state = self.words, self.state
  for i = 0, 15 do
    local a, b, c, d = text:byte(at + i * 4, at + i * 4 + 3)
    w[i + 1] = tobit(a * 0x1000000 + b * 0x10000 + c * 0x100 + d)
  end
  for i = 17, 64 do
    local x, y = w[i - 15], w[i - 2]
    local s0 = bxor(ror(x, 7), ror(x, 18), rshift(x, 3))
    local s1 = bxor(ror(y, 17), ror(y, 19), rshift(y, 10))
    w[i] = tobit(w[i - 16] + s0 + w[i - 7] + s1)
  end
  local a, b, c, d, e, f, g, h = unpack(state)
  for i = 1, 64 do
    local s1 = bxor(ror(e, 6), ror(e, 11), ror(e, 25))
    local choice = bxor(band(e, f), band(bnot(e), g))
    local one = tobit(h + s1 + choice + K[i] + w[i])
    local s0 = bxor(ror(a, 2), ror(a, 13), ror(a, 22))
    local most = bxor(band(a, b), band(a, c), band(b, c))
    h, g, f, e, d, c, b, a = g, f, e, tobit(d + one), c, b, a, tobit(one + s0 + most)
  end
  local sums = { a, b, c, d, e, f, g, h }
  for i = 1, 8 do
    state[i] = tobit(state[i] + sums[i])
  end
end

--- Adds the next piece.
---@param text string
function Sum:add(text)
  self.bytes = self.bytes + #text
  if self.rest ~= '' then
    text = self.rest .. text
  end
  local at = 1
  while #text - at + 1 >= 64 do
    self:block(text, at)
    at = at + 64
  end
  self.rest = text:sub(at)
end

--- Ends the text and returns its hash.
---@return string sum 64 hexadecimal digits
function Sum:finish()
  local bits = self.bytes * 8
  local high, low = math.floor(bits / 2 ^ 32), bits % 2 ^ 32
  local function bytes_of(n)
    return string.char(math.floor(n / 2 ^ 24) % 256, math.floor(n / 2 ^ 16) % 256, math.floor(n / 256) % 256, n % 256)
  end
  local zeros = (55 - self.bytes) % 64
  self:add('\128' .. ('\0'):rep(zeros) .. bytes_of(high) .. bytes_of(low))
  local out = {}
  for i = 1, 8 do
    out[i] = tohex(self.state[i])
  end
  return table.concat(out)
end

return M
