--- Problem matcher: places that programs name in their output, as `path:line: text` or `File "path", line 3`.
---
--- Receives: what a program printed.
--- Sends: failures, as far as their files exist.
--- Does not know about: which program it was.

local trim = require('mcp-tools.util.trim')

local M = {}

--- Lines from the end that are looked at, and places that are taken.
local MAX_LINES, MAX_PLACES = 5000, 100

local FORMS = {
  '^%s*File "([^"]+)", line (%d+)()',
  '^%s*at .*%(([^()]+):(%d+):%d+%)()',
  '^%s*at ([^()%s]+):(%d+):%d+()',
  '^%s*([^%s:()]+):(%d+):%d*:?%s*()',
  '^%s*([^%s:()]+):(%d+):%s+()',
}

---@param line string
---@return string? path, string? number, string text
local function read(line)
  for _, form in ipairs(FORMS) do
    local path, number, after = line:match(form)
    if path then
      return path, number, line:sub(after)
    end
  end
  return nil, nil, ''
end

--- Failures by their places.
---@param text string
---@param find fun(path: string): string? the file of the project that it names
---@param pause fun()
---@return mcp-tools.runner.Failure[]
function M.failures(text, find, pause)
  local lines, list, seen, known = vim.split(text, '\n', { plain = true }), {}, {}, {}
  for i = math.max(1, #lines - MAX_LINES), #lines do
    local path, number, message = read(lines[i])
    if path and #path <= 4096 then
      if known[path] == nil then
        known[path] = find((path:gsub('^file://', ''))) or false
      end
      local key = ('%s:%s'):format(path, number)
      if known[path] and not seen[key] then
        seen[key] = true
        table.insert(list, {
          id = key,
          kind = 'error',
          path = known[path],
          line = tonumber(number),
          message = message:find('%S') and message or trim(lines[i]),
        })
        if #list >= MAX_PLACES then
          break
        end
      end
    end
    pause()
  end
  return list
end

return M
