--- What a project names to be run: targets of its Makefile, scripts of its package.json.
---
--- Receives: texts of such files.
--- Sends: names, with what is said of them.
--- Does not know about: trust, how any of it is run.

local trim = require('mcp-tools.util.trim')

local M = {}

--- In the order in which make looks for them.
M.MAKEFILES = { 'GNUmakefile', 'makefile', 'Makefile' }

--- More are no help.
local MAX = 500

--- What is said of a target behind `##`.
---@param rest string
---@return string?
local function description_of(rest)
  local text = rest:match('##(.*)$')
  return text and trim(text)
end

--- Targets, in the order in which they stand; without patterns, files with a path and names with variables.
---@param text string of a Makefile
---@return { name: string, description: string? }[]
function M.make(text)
  local list, seen = {}, {}
  for line in vim.gsplit(text, '\n', { plain = true }) do
    local names, rest = line:match('^([%w_][%w_%-. ]*)::?(.*)$')
    if names and not rest:find('^=') then
      for name in names:gmatch('%S+') do
        if not seen[name] and #list < MAX then
          seen[name] = true
          table.insert(list, { name = name, description = description_of(rest) })
        end
      end
    end
  end
  return list
end

--- Scripts by name.
---@param text string of a package.json
---@return table<string, string>? scripts nil when it is no such file
function M.scripts(text)
  local ok, value = pcall(vim.json.decode, text, { luanil = { object = true, array = true } })
  if not ok or type(value) ~= 'table' then
    return nil
  end
  local scripts = {}
  for name, script in pairs(type(value.scripts) == 'table' and value.scripts or {}) do
    if type(name) == 'string' and type(script) == 'string' then
      scripts[name] = script
    end
  end
  return scripts
end

return M
