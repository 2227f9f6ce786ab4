-- Runs one Lua spec inside a real Neovim: `nvim --headless -u NONE -i NONE -n -l tests/lua/run.lua SPEC`.

local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local root = vim.fs.dirname(vim.fs.dirname(vim.uv.fs_realpath(here)))
package.path = ('%s/tests/lua/?.lua;%s/tests/lua/support/?.lua;%s'):format(root, root, package.path)
vim.opt.runtimepath:prepend(root)

---@class SpecGroup
---@field name string
---@field parent SpecGroup?
---@field before fun()[]
---@field after fun()[]

---@class SpecTest
---@field name string
---@field group SpecGroup
---@field fn fun()

---@type SpecGroup
local current = { name = '', before = {}, after = {} }
---@type SpecTest[]
local tests = {}

---Group tests; groups nest, and hooks of outer groups run around those of inner ones.
function _G.describe(name, fn)
  local outer = current
  current = { name = name, parent = outer, before = {}, after = {} }
  fn()
  current = outer
end

---Declare a test; it runs after the whole spec has been read.
function _G.it(name, fn) tests[#tests + 1] = { name = name, group = current, fn = fn } end

---Run `fn` before each test of this group.
function _G.before_each(fn) table.insert(current.before, fn) end

---Run `fn` after each test of this group, also when the test failed.
function _G.after_each(fn) table.insert(current.after, fn) end

-- 0.10 prints to stderr from a headless Neovim, and in odd order: write to stdout instead.
local function say(line)
  io.stdout:write(line, '\n')
  io.stdout:flush()
end

---@param test SpecTest
---@return SpecGroup[] chain the groups around the test, the outermost first
local function chain_of(test)
  local chain, group = {}, test.group
  while group do
    table.insert(chain, 1, group)
    group = group.parent
  end
  return chain
end

---@param test SpecTest
---@return string
local function full_name(test)
  local parts = {}
  for _, group in ipairs(chain_of(test)) do
    if group.name ~= '' then
      parts[#parts + 1] = group.name
    end
  end
  parts[#parts + 1] = test.name
  return table.concat(parts, ' > ')
end

local function describe_error(err) return debug.traceback(type(err) == 'string' and err or vim.inspect(err), 2) end

---@param test SpecTest
---@return string[] failures empty when the test passed
local function run(test)
  local failures = {}
  local function attempt(fn)
    local ok, err = xpcall(fn, describe_error)
    if not ok then
      failures[#failures + 1] = err
    end
    return ok
  end
  local chain, ready = chain_of(test), true
  for _, group in ipairs(chain) do
    for _, hook in ipairs(group.before) do
      ready = ready and attempt(hook)
    end
  end
  if ready then
    attempt(test.fn)
  end
  for i = #chain, 1, -1 do
    for _, hook in ipairs(chain[i].after) do
      attempt(hook)
    end
  end
  -- An error in a callback that the event loop ran reaches nobody else; its wording varies, 'callback:' stays.
  if vim.v.errmsg:find('^[%a%. ]*callback:') then
    failures[#failures + 1] = 'outside the test: ' .. vim.v.errmsg
  end
  vim.v.errmsg = ''
  return failures
end

local function main(spec)
  local loaded, err = xpcall(dofile, describe_error, spec)
  if not loaded then
    say('not ok - ' .. spec .. ' could not be read\n' .. err)
    return 1
  end
  if #tests == 0 then
    say('not ok - ' .. spec .. ' declares no test')
    return 1
  end
  local failed = 0
  for _, test in ipairs(tests) do
    local started = vim.uv.hrtime()
    local failures = run(test)
    local ms = (vim.uv.hrtime() - started) / 1e6
    say(('%s - %s (%.1f ms)'):format(#failures == 0 and 'ok' or 'not ok', full_name(test), ms))
    for _, failure in ipairs(failures) do
      say('    ' .. failure:gsub('\n', '\n    '))
    end
    failed = failed + (#failures > 0 and 1 or 0)
  end
  say(('%d tests, %d failed, Neovim %s'):format(#tests, failed, tostring(vim.version())))
  return failed > 0 and 1 or 0
end

-- Without closing the Lua state: handles of the spec that are still open would be freed under libuv's feet.
os.exit(main(assert(_G.arg[1], 'usage: nvim -l tests/lua/run.lua SPEC')), false)
