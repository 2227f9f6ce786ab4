--- `:McpTools mounts`: servers that are mounted, how they are, and what of them is left out.

local mounts = require('mcp-tools.mounts')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.layout.scratch')

---@return string[]
local function names()
  return vim.tbl_map(function(each)
    return each.name
  end, mounts.status())
end

local show

function show()
  local lines = {}
  for _, each in ipairs(mounts.status()) do
    table.insert(lines, mounts.describe(each))
    table.insert(lines, sanitize.line(('    from %s'):format(each.from)))
    for _, fault in ipairs(each.faults) do
      table.insert(lines, sanitize.line('    left out: ' .. fault))
    end
  end
  if #lines == 0 then
    lines = { 'nothing is mounted; :h mcp-tools-mounts' }
  end
  scratch.show('mounts', lines, { again = show })
end

---@type mcp-tools.Subcommand
return {
  usage = '[retry [NAME]]',
  description = 'show the mounted servers; with `retry`, connect them anew, or one of them',
  arguments = 2,
  run = function(rest)
    local word, name = rest:match('^(%S*)%s*(%S*)$')
    mounts.sync()
    if word == '' then
      return show()
    elseif word ~= 'retry' then
      return notify.error((':McpTools mounts takes retry or nothing: %s'):format(rest))
    elseif name ~= '' and not vim.list_contains(names(), name) then
      return notify.error(('nothing is mounted as %s'):format(name))
    end
    mounts.retry(name ~= '' and name or nil)
    notify.info(
      name ~= '' and ('mount %s is being connected anew'):format(name) or 'all mounts are being connected anew'
    )
  end,
  complete = function(_, rest)
    return rest:find('^retry%s') and names() or { 'retry' }
  end,
}
