--- Lists the commands, skills and agents of a project, make targets and npm scripts.

local access = require('mcp-tools.privacy.access')
local arguments = require('mcp-tools.editor.arguments')
local search_files = require('mcp-tools.editor.search.files')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.privacy.read')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local result = require('mcp-tools.editor.result')
local scripts = require('mcp-tools.editor.runner.scripts')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

--- Kinds of workflows by their directory below `.claude` and `.agents`.
local KINDS = { commands = 'command', workflows = 'command', skills = 'skill', agents = 'agent' }
local HOMES = { '.claude', '.agents' }
local MAX_FILE, MAX_TEXT = 256 * 1024, 300
--- Maximum number of files of one kind below a directory.
local MAX_FILES = 1000

---@class mcp-tools.Workflow
---@field kind 'command'|'skill'|'agent'|'make'|'npm'
---@field name string
---@field path string
---@field description string?

---@param ctx mcp-tools.Ctx
---@param path string absolute
---@param withheld { path: string, why: string }[]
---@return string?
local function text_of(ctx, path, withheld)
  if not vim.uv.fs_stat(path) then
    return nil
  end
  local resolved, why = access.path(path, ctx.root)
  if not resolved then
    table.insert(withheld, { path = access.shown(path, ctx.root), why = why })
    return nil
  end
  local text = read.await(ctx, resolved, MAX_FILE)
  return text and (redacted_text.file(ctx, text)) or nil
end

--- Returns the description of a command file: from its front matter, otherwise its first line.
---@param text string
---@return string?
local function description_of(text)
  local head, rest = text:match('^%-%-%-\r?\n(.-)\n%-%-%-\r?\n(.*)$')
  local description = ('\n' .. (head or '')):match('\ndescription:%s*([^\n]+)')
  description = description and description:gsub('^["\']', ''):gsub('["\']%s*$', '') or (rest or text):match('%S[^\n]*')
  return description and utf8.cut(trim((description:gsub('^#+%s*', ''))), MAX_TEXT)
end

---@param ctx mcp-tools.Ctx
---@param list mcp-tools.Workflow[]
---@param withheld table[]
---@param folder string
---@param kind string
local function add_files(ctx, list, withheld, folder, kind)
  local resolved, why = access.path(folder, ctx.root)
  if not resolved then -- a link to elsewhere; even the names of files there are withheld
    if vim.uv.fs_stat(folder) then
      table.insert(withheld, { path = access.shown(folder, ctx.root), why = why })
    end
    return
  end
  local files = vim.tbl_filter(function(file)
    return file:find(kind == 'skill' and 'SKILL%.md$' or '%.md$') ~= nil
  end, (search_files.names(ctx, folder, { ignored = true })))
  for _, file in ipairs(vim.list_slice(files, 1, MAX_FILES)) do
    local path, name = folder .. '/' .. file, file:gsub('%.md$', '')
    local text = text_of(ctx, path, withheld)
    if text then
      table.insert(list, {
        kind = kind,
        name = utf8.repair(kind == 'skill' and name:gsub('/?SKILL$', '') or name:gsub('/', ':')),
        path = utf8.repair(access.shown(path, ctx.root)),
        description = description_of(text),
      })
    end
  end
end

--- Returns all workflows.
---@param ctx mcp-tools.Ctx
---@return mcp-tools.Workflow[] workflows
---@return { path: string, why: string }[] withheld
local function all_workflows(ctx)
  local root, list, withheld = paths.real_root(ctx.root), {}, {}
  for _, home in ipairs(HOMES) do
    for _, folder in ipairs({ 'commands', 'workflows', 'skills', 'agents' }) do
      add_files(ctx, list, withheld, ('%s/%s/%s'):format(root, home, folder), KINDS[folder])
    end
  end
  for _, name in ipairs(scripts.MAKEFILES) do
    local text = text_of(ctx, root .. '/' .. name, withheld)
    if text then
      for _, target in ipairs(scripts.targets(text)) do
        table.insert(list, { kind = 'make', name = target.name, path = name, description = target.description })
      end
      break
    end
  end
  local package = text_of(ctx, root .. '/package.json', withheld)
  for name, script in vim.spairs(package and scripts.scripts(package) or {}) do
    table.insert(list, { kind = 'npm', name = name, path = 'package.json', description = utf8.cut(script, MAX_TEXT) })
  end
  return list, withheld
end

return {
  name = 'workflow_list',
  title = 'Commands of the project',
  description = 'Lists what the project defines to be run: commands, skills and agents below .claude and .agents,'
    .. ' Makefile targets and package.json scripts.',
  search_hint = 'make targets, npm scripts, slash commands, skills, how to build',
  args = {
    limit = arguments.limit('results', 200, 1000),
    offset = { type = 'integer', description = 'Results to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local all, withheld = all_workflows(ctx)
    local page, answer = result.page(all, args)
    answer.workflows, answer.withheld = page, #withheld > 0 and withheld or nil
    return answer
  end,
  render = function(value, args)
    local rows = { result.with_range(result.count(value.total, 'workflow'), args, value.total) }
    for _, each in ipairs(value.workflows) do
      local description = each.description and ': ' .. each.description or ''
      table.insert(rows, ('%s %s (%s)%s'):format(each.kind, each.name, each.path, description))
    end
    for _, each in ipairs(value.withheld or {}) do
      table.insert(rows, ('withheld: %s: %s'):format(each.path, each.why))
    end
    return table.concat(rows, '\n')
  end,
}
