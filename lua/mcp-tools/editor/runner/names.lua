--- Tests by the text of their file, without running anything.
---
--- Receives: lines of a file in Python, JavaScript or TypeScript.
--- Sends: the tests in it, and the one that a line is in.
--- Does not know about: files, runners.

local M = {}

---@class mcp-tools.runner.Test
---@field name string groups and test, with "::" or " > " between
---@field line integer
---@field indent integer
---@field group boolean? a class, or what holds tests

--- The rest of a call behind its first word. In two steps: as one pattern it would try every part of a long word.
local JS_CALL = '^[%w_.]*%s*%(%s*(["\'`])(.-)%1'
local JS_TESTS = { it = true, test = true, specify = true, fit = true }
local JS_GROUPS = { describe = true, suite = true, context = true, fdescribe = true }

--- A group or test of Python in a line.
---@param line string
---@return integer? indent, string? name, boolean? group
local function of_python(line)
  local indent, name = line:match('^(%s*)class%s+([%w_]+)')
  if indent then
    return #indent, name, true
  end
  indent, name = line:match('^(%s*)def%s+(test[%w_]*)%s*%(')
  if not indent then
    indent, name = line:match('^(%s*)async%s+def%s+(test[%w_]*)%s*%(')
  end
  return indent and #indent, name, false
end

---@param line string
---@return integer? indent, string? name, boolean? group
local function of_js(line)
  local indent, word, after = line:match('^(%s*)([%w_]+)()')
  if not (JS_TESTS[word] or JS_GROUPS[word]) then
    return nil
  end
  local _, name = line:match(JS_CALL, after)
  if name then
    return #indent, name, JS_GROUPS[word] or false
  end
end

local LANGUAGES = { py = { of_python, '::' } }
for extension in ('js mjs cjs jsx ts mts cts tsx'):gmatch('%S+') do
  LANGUAGES[extension] = { of_js, ' > ' }
end

--- How tests of such a file are read; nil: they are not.
---@param path string
---@return table?
function M.language(path)
  return LANGUAGES[path:match('%.(%w+)$') or '']
end

--- Tests and groups, in the order of the lines.
---@param lines string[]
---@param language table of `language`
---@param pause? fun()
---@return mcp-tools.runner.Test[]
function M.all(lines, language, pause)
  local read, separator = language[1], language[2]
  local open, found = {}, {}
  for number, line in ipairs(lines) do
    local indent, name, group = read(line)
    if indent then
      while open[#open] and open[#open].indent >= indent do
        table.remove(open)
      end
      local parent = open[#open]
      local whole = parent and parent.name .. separator .. name or name
      local test = { name = whole, own = name, line = number, indent = indent, group = group or nil }
      table.insert(found, test)
      if group then
        table.insert(open, test)
      end
    end
    if pause then
      pause()
    end
  end
  return found
end

--- The test or group that a line is in.
---@param lines string[]
---@param line integer
---@param language table
---@return (mcp-tools.runner.Test|{ own: string })?
function M.nearest(lines, line, language)
  local best
  for _, test in ipairs(M.all(lines, language)) do
    if test.line <= line then
      best = test
    end
  end
  return best
end

return M
