--- Health of what clients are offered.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local discovery = require('mcp-tools.loading')
local kinds = require('mcp-tools.registry.kinds')
local listing = require('mcp-tools.scope.listing')
local report = require('mcp-tools.loading.report')
local selection = require('mcp-tools.loading.selection')
local source = require('mcp-tools.registry.source')

local health = vim.health

local M = {}

--- Of JSON, in the tokenizers of today's models.
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

--- What is mistyped in a definition.
---@param what string
---@param entry table normalised definition
local function report_typos(what, entry)
  local file = (entry.source or {}).file
  local advice = file and ('Correct it in ' .. file) or 'Correct it where it is registered'
  for _, typo in ipairs(entry.typos) do
    health.warn(('%s %s: %s'):format(what, entry.key or entry.name, typo), advice)
  end
end

--- What a model pays for definitions that it is sent with every request: bytes, and tokens as far as those can be told
--- without knowing the model.
---@param bytes integer
---@return string
local function cost(bytes)
  return ('%.1f kB, ~%d tokens'):format(bytes / 1000, math.ceil(bytes / BYTES_PER_TOKEN))
end

--- Tools by group with what they cost, and what is to be noted of their definitions.
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
    health.info('what their definitions cost a model that sees all of them: ' .. cost(total))
    health.info('by group: ' .. table.concat(each, '; '))
    health.info('less of them for a client: :h mcp-tools-scopes')
  end
  if selection.is_unset('tools') then
    health[count == 0 and 'warn' or 'info'](
      'no bundled tools are on',
      count == 0 and 'Write `require("mcp-tools").setup({ tools = "recommended" })`' or nil
    )
  end
  for _, tool in ipairs(core.get().registry:list('tools')) do
    report_typos('tool', tool)
  end
  for _, note in ipairs(notes) do
    health.info(note)
  end
  for _, item in ipairs(report.unknown_names(core.get().registry)) do
    if vim.startswith(item.option, 'approval') then
      health.warn(report.describe(item), 'The option is ignored until something has that name')
    end
  end
end

---@param row mcp-tools.KindRow
---@return boolean
local function is_listed_by_key(row)
  return not row.grouped
end

--- Resources and prompts, and what is to be noted of their definitions.
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
    for _, entry in ipairs(core.get().registry:list(row.kind)) do
      report_typos(row.what, entry)
    end
  end
  for _, note in ipairs(notes) do
    health.info(note)
  end
end

--- What other plugins were found to ship, and everything that could not be loaded, theirs or not.
function M.found()
  core.get()
  for _, looked in ipairs(discovery.report()) do
    local age = looked.age_ms and ('looked %d s ago'):format(looked.age_ms / 1000) or 'nobody has looked yet'
    health.info(('%s: %d %s, %s'):format(looked.name, #looked.found, #looked.found == 1 and 'file' or 'files', age))
    for _, file in ipairs(looked.found) do
      health.info(('%s: %s'):format(file.file, #file.tools > 0 and table.concat(file.tools, ', ') or 'nothing'))
    end
  end
  for _, failure in ipairs(report.failures(core.get().registry)) do
    local error = failure.error:gsub('\nstack traceback:.*', '') -- that is for the log
    health.error(
      ('%s could not be loaded: %s'):format(failure.source, error),
      'Correct it, then run `:McpTools tools reload`; or take its name out of setup()'
    )
  end
end

return M
