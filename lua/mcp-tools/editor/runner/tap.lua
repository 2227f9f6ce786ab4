--- TAP, the Test Anything Protocol, as node, mocha, vitest, bats and others print it.
---
--- Receives: what a program printed.
--- Sends: results.
--- Does not know about: which program it was, where its files are.
---
--- Source: https://testanything.org/tap-version-14-specification.html

local trim = require('mcp-tools.util.trim')

local M = {}

local MAX_FAILURES = 500
local MAX_DETAIL = 6000
--- Bytes of a line that are looked at: patterns take longer by the square of it.
local MAX_LINE = 2000

--- Is it TAP?
---@param text string
---@return boolean
function M.is_tap(text)
  return text:find('^TAP version ') ~= nil or text:find('\nTAP version ', 1, true) ~= nil
end

--- A value of the block of facts below a test.
---@param text string
---@return string
local function scalar(text)
  local inner = text:match("^'(.*)'$")
  if inner then
    return (inner:gsub("''", "'"))
  end
  return text:match('^"(.*)"$') or text
end

--- The facts below a test: `key: value`, and `key: |-` with lines.
---@param lines string[] without their indent
---@return table<string, string>
local function facts_of(lines)
  local facts, key = {}, nil
  for _, line in ipairs(lines) do
    local name, value = line:match('^([%w_]+):(.*)$')
    if name then
      key, value = nil, trim(value)
      if value:find('^[|>]') then
        key, facts[name] = name, ''
      else
        facts[name] = scalar(value)
      end
    elseif key then
      facts[key] = facts[key] .. (facts[key] ~= '' and '\n' or '') .. line:gsub('^  ', '')
    elseif line:find('^%s+at:') then -- vitest
      facts.at = scalar(trim(line:match('^%s+at:(.*)$')))
    elseif line:find('^%s+message:') then
      facts.message = scalar(trim(line:match('^%s+message:(.*)$')))
    end
  end
  return facts
end

--- The first of our places in a line, such as `(/project/a.js:5:10)`. From the numbers on backwards: a search for what
--- a path begins with would go through the line again for each of its slashes.
---@param line string
---@param is_ours fun(path: string): boolean
---@return string? path
---@return integer? line
local function place_in(line, is_ours)
  local from = 1
  for last, number, after in line:gmatch('():(%d+):%d+()') do
    local before = line:sub(from, last - 1)
    local path = (before:match('^.*[()"\'\n](.*)$') or before):match('/.*$')
    for _, each in ipairs({ path, path and path:match('^.*%s(/.*)$') }) do -- it may have blanks, or words before it
      each = each:gsub('^//+', '/')
      if is_ours(each) then
        return each, tonumber(number)
      end
    end
    from = after
  end
end

---@param facts table<string, string>
---@param is_ours fun(path: string): boolean
---@return string? path
---@return integer? line
local function place_of(facts, is_ours)
  for _, text in ipairs({ facts.stack or '', facts.at or '', facts.location or '' }) do
    for line in vim.gsplit(text, '\n', { plain = true }) do
      local path, number = place_in(line:sub(1, MAX_LINE), is_ours)
      if path then
        return path, number
      end
    end
  end
end

---@class mcp-tools.tap.Point
---@field ok boolean
---@field name string
---@field directive string?
---@field indent integer
---@field facts string[]?

--- Tests with what is said of them.
---@param text string
---@param pause fun()
---@return mcp-tools.tap.Point[] points
---@return table<string, integer> summary
local function read(text, pause)
  local points, summary, block = {}, {}, nil
  local parents = {} ---@type table<integer, string>
  for line in vim.gsplit(text, '\n', { plain = true }) do
    line = line:sub(1, MAX_LINE)
    local indent, rest = line:match('^( *)(.*)$')
    local last = points[#points]
    if block then
      if rest == '...' and #indent <= block then
        block = nil
      else
        table.insert(last.facts, line:sub(block + 1))
      end
    elseif rest == '---' and last and #indent >= last.indent then
      block, last.facts = #indent, {}
    elseif rest:find('^# Subtest: ') then
      parents[#indent] = rest:sub(#'# Subtest: ' + 1)
    elseif rest:find('^# %l+ %d+$') and indent == '' then
      local key, value = rest:match('^# (%l+) (%d+)$')
      summary[key] = tonumber(value)
    else
      local failed, about = rest:match('^(n?o?t? ?)ok%s*%d*%s*(.*)$')
      if failed == '' or failed == 'not ' then
        local name, directive = about:gsub('^%- ', ''):match('^(.-)%s+#%s+(%u+).*$')
        local names = {}
        for level = 0, #indent - 1 do
          table.insert(names, parents[level])
        end
        table.insert(names, name or (about:gsub('^%- ', '')))
        table.insert(points, {
          ok = failed == '',
          name = table.concat(names, ' > '),
          directive = directive,
          indent = #indent,
        })
      end
    end
    pause()
  end
  return points, summary
end

--- What a run came to.
---@param text string
---@param is_ours fun(path: string): boolean is it a file of the project?
---@param pause fun()
---@return mcp-tools.runner.Results
function M.results(text, is_ours, pause)
  local results = { passed = 0, failed = 0, errors = 0, skipped = 0, failures = {} }
  local points, summary = read(text, pause)
  for i, point in ipairs(points) do
    local facts = facts_of(point.facts or {})
    local is_group = facts.type == 'suite'
      or facts.failureType == 'subtestsFailed'
      or points[i - 1] ~= nil and points[i - 1].indent > point.indent
    local is_skipped = point.directive == 'SKIP' or point.directive == 'TODO'
    if is_skipped and not is_group then -- the tests of a group are counted themselves
      results.skipped = results.skipped + 1
    elseif point.ok and not is_group then
      results.passed = results.passed + 1
    elseif not is_group then
      results.failed = results.failed + 1
      if #results.failures < MAX_FAILURES then
        local path, line = place_of(facts, is_ours)
        table.insert(results.failures, {
          id = point.name,
          kind = 'failed',
          path = path,
          line = line,
          message = facts.error or facts.message or 'failed',
          detail = facts.stack and facts.stack:sub(1, MAX_DETAIL),
        })
      end
    end
    pause()
  end
  results.total = summary.tests or results.passed + results.failed + results.skipped
  return results
end

return M
