--- A search in the text of the project, for prompts.
---
--- Receives: what to look for, as plain text.
--- Sends: lines that hold it; nothing of sensitive files.
--- Does not know about: prompts. Uses ripgrep, else git; neither reads a configuration of the project.

local process = require('mcp-tools.editor.process')
local access = require('mcp-tools.files.access')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

local MAX_LINE = 300

---@param query string
---@param place string
---@return string[] command, string name
local function command_for(query, place)
  if vim.fn.executable('rg') == 1 then
    return {
      'rg',
      '--no-config',
      '--null',
      '--line-number',
      '--no-heading',
      '--color=never',
      '--max-count=20',
      '--sort=path',
      '--fixed-strings',
      '--smart-case',
      '--regexp=' .. query,
      '--',
      place,
    },
      'rg'
  end
  local mixed = query:find('%u') ~= nil
  local command = { 'git', '--literal-pathspecs', 'grep', '--untracked', '-I', '-n', '-z', '--no-color', '-F' }
  if not mixed then
    table.insert(command, '-i')
  end
  return vim.list_extend(command, { '-e', query, '--', place }), 'git'
end

---@class mcp-tools.Hit
---@field path string relative to the root
---@field line integer
---@field text string

--- Lines that hold the text. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param query string
---@param place string resolved file or folder
---@param max integer
---@return mcp-tools.Hit[]? hits
---@return string? fault
---@return boolean? more
function M.find(ctx, query, place, max)
  local command, name = command_for(query, place)
  local done = process.await(command, { ctx = ctx, cwd = ctx.root })
  if not done.ok and done.stdout == '' and not done.quiet then
    local missing = name == 'git' and not done.code
    return nil, missing and 'neither rg nor git can be run; install ripgrep' or done.fault
  end
  local hits, verdicts = {}, {}
  for line in vim.gsplit(done.stdout, '\n', { plain = true }) do
    local path, number, text = line:match('^([^%z]+)%z(%d+)[:%z](.*)$')
    if path then
      if verdicts[path] == nil then
        verdicts[path] = access.path(path, ctx.root) or false
      end
      if verdicts[path] then
        if #hits == max then
          return hits, nil, true
        end
        if #text > MAX_LINE then
          text = text:sub(1, MAX_LINE) .. '…'
        end
        local shown = access.shown(verdicts[path], ctx.root)
        table.insert(hits, { path = shown, line = tonumber(number), text = (utf8.repair(text)) })
      end
    end
  end
  return hits, nil, done.cut
end

return M
