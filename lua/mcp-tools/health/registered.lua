--- Checks what is registered: tools, resources and prompts.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local loading = require('mcp-tools.loading')
local kinds = require('mcp-tools.registry.kinds')
local listing = require('mcp-tools.scope.listing')
local report = require('mcp-tools.loading.report')
local selection = require('mcp-tools.loading.selection')
local source = require('mcp-tools.registry.source')

local health = vim.health

local M = {}

--- For JSON, with the tokenizers of current models.
local BYTES_PER_TOKEN = 4

---@param tool table normalised definition
---@return string[] notes
local function notes_of(tool)
  local notes = {}
  for _, note in ipairs(tool.lint or {}) do
    table.insert(notes, tostring(note))
  end
  for _, gap in ipairs(tool.unchecked or {}) do
    table.insert(notes, ('%s: %s is not checked: %s'):format(gap.path, gap.keyword, gap.why))
  end
  return notes
end

--- Formats what definitions cost a model that gets them with every request: bytes, and roughly tokens.
---@param bytes integer
---@return string
local function cost(bytes)
  return ('%.1f kB, ~%d tokens'):format(bytes / 1000, math.ceil(bytes / BYTES_PER_TOKEN))
end

--- Reports tools by group with their cost, and notes on their definitions.
function M.tools()
  local groups, sizes, notes, count, total = {}, {}, {}, 0, 0
  for _, tool in ipairs(core.get().registry:list('tools')) do
    local group, size = source.group(tool), listing.size(tool, config.get().tool_prefix)
    groups[group] = groups[group] or {}
    sizes[group] = (sizes[group] or 0) + size
    table.insert(groups[group], tool.name)
    count, total = count + 1, total + size
    for _, note in ipairs(notes_of(tool)) do
      table.insert(notes, ('tool %s: %s'):format(tool.name, note))
    end
  end
  for group, names in vim.spairs(groups) do
    health.ok(('%s (%d): %s'):format(group, #names, table.concat(names, ', ')))
  end
  if count > 0 then
    local each = {}
    for group in vim.spairs(groups) do
      table.insert(each, ('%s %s'):format(group, cost(sizes[group])))
    end
    health.info('cost of the definitions for a model that gets all of them: ' .. cost(total))
    health.info('by group: ' .. table.concat(each, '; '))
    health.info('to expose fewer tools to a client: :h mcp-tools-scopes')
  end
  if selection.is_unset('tools') then
    health[count == 0 and 'warn' or 'info'](
      'the bundled tools are off',
      count == 0 and 'Write `require("mcp-tools").setup({ tools = "recommended" })`' or nil
    )
  end
  for _, note in ipairs(notes) do
    health.info(note)
  end
  for _, item in ipairs(report.unknown_names(core.get().registry)) do
    if vim.startswith(item.option, 'approval') then
      health.warn(report.describe(item), 'The option has no effect until something has this name')
    end
  end
end

---@param row mcp-tools.KindRow
---@return boolean
local function is_listed_by_key(row)
  return not row.grouped
end

--- Reports resources and prompts, and notes on their definitions.
function M.resources_and_prompts()
  local notes = {}
  for _, row in ipairs(vim.tbl_filter(is_listed_by_key, kinds.rows)) do
    local names = {}
    for _, entry in ipairs(core.get().registry:list(row.kind)) do
      table.insert(names, entry.key)
      for _, note in ipairs(entry.lint) do
        table.insert(notes, ('%s: %s'):format(entry.key, note))
      end
    end
    health[#names > 0 and 'ok' or 'info'](('%s (%d): %s'):format(row.heading, #names, table.concat(names, ', ')))
  end
  for _, note in ipairs(notes) do
    health.info(note)
  end
end

--- Reports what was found in other plugins, and everything that could not be loaded.
function M.found()
  core.get()
  for _, origin in ipairs(loading.report()) do
    local age = origin.age_ms and ('searched %d s ago'):format(origin.age_ms / 1000) or 'not searched yet'
    health.info(('%s: %d %s, %s'):format(origin.name, #origin.found, #origin.found == 1 and 'file' or 'files', age))
    for _, file in ipairs(origin.found) do
      health.info(('%s: %s'):format(file.file, #file.tools > 0 and table.concat(file.tools, ', ') or 'nothing'))
    end
  end
  for _, failure in ipairs(report.failures(core.get().registry)) do
    local error = failure.error:gsub('\nstack traceback:.*', '') -- the log has it
    health.error(
      ('%s could not be loaded: %s'):format(failure.source, error),
      'Correct it, then run `:McpTools tools reload`; or remove its name from setup()'
    )
  end
end

return M
