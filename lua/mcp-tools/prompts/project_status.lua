--- Prompt: status of the project.

local findings = require('mcp-tools.editor.diagnostics.findings')
local access = require('mcp-tools.privacy.access')
local excerpt = require('mcp-tools.editor.result.excerpt')
local redact = require('mcp-tools.privacy.redact')
local revision = require('mcp-tools.editor.git.revision')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum size of git's status in bytes.
local MAX_STATUS = 16 * 1024

---@param root string
---@return string
local function open_files(root)
  local lines = {}
  for _, info in ipairs(vim.fn.getbufinfo({ buflisted = 1 })) do
    if vim.bo[info.bufnr].buftype == '' and info.name ~= '' then
      local marks = (info.changed == 1 and ' (unsaved)' or '') .. (#info.windows > 0 and ' (on screen)' or '')
      table.insert(lines, '- ' .. access.shown(info.name, root) .. marks)
    end
  end
  return #lines > 0 and table.concat(lines, '\n') or 'none'
end

---@param root string
---@return string
local function problems(root)
  local counts, parts = findings.counts_open(root), {}
  for _, kind in ipairs({ 'error', 'warning', 'info', 'hint' }) do
    if counts[kind] then
      table.insert(parts, ('%d %s'):format(counts[kind], kind))
    end
  end
  return #parts > 0 and table.concat(parts, ', ') or 'none'
end

---@return string
local function servers()
  local names = {}
  for _, client in ipairs(vim.lsp.get_clients()) do
    table.insert(names, client.name)
  end
  return #names > 0 and table.concat(names, ', ') or 'none'
end

return {
  name = 'project_status',
  title = 'Status of the project',
  description = 'Summarizes the state of the work on this project: git, open and unsaved files, diagnostics.',
  run = function(ctx)
    local command = { 'status', '--short', '--branch', '--untracked-files=normal', '--', '.' }
    local status = revision.ask(ctx, command, MAX_STATUS)
    local quickfix = vim.fn.getqflist({ size = 0, title = 0 })
    local text = table.concat({
      'This is the state of my project. Summarize the work, what is unfinished, and what you would do next.',
      'Project: ' .. ctx.root,
      status.ok and 'git status:\n' .. excerpt.fenced(trim(status.stdout)) or 'git status failed: ' .. status.fault,
      'Open files:\n' .. open_files(ctx.root),
      'Diagnostics: ' .. problems(ctx.root),
      'Language servers: ' .. servers(),
      ('Quickfix list: %d entries %s'):format(quickfix.size, redact.text(quickfix.title, time_slice.of(ctx))),
    }, '\n\n')
    return (utf8.repair(text))
  end,
}
