--- Search on the disk: lines with a text, by ripgrep, else by git. (search/init.lua: in the text as the editor has it.)
---
--- Receives: what to look for, as plain text.
--- Sends: lines that hold it; nothing of sensitive files.
--- Does not know about: prompts. Uses ripgrep, which reads no configuration then, else git by way of editor/git.

local access = require('mcp-tools.files.access')
local git = require('mcp-tools.editor.git')
local process = require('mcp-tools.editor.process')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

local MAX_LINE = 300
--- Files that are looked at before the editor has its turn.
local LOOKS = 50

---@param result mcp-tools.process.Result
---@return boolean
local function ran(result)
  return result.code ~= nil or result.ended_by ~= nil
end

---@param ctx mcp-tools.Ctx
---@param query string
---@param place string
---@return mcp-tools.process.Result
local function search(ctx, query, place)
  local done = process.await({
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
  }, { ctx = ctx, cwd = ctx.root, env = { PATH = process.search_path() } })
  if ran(done) then
    return done
  end
  local args = { 'grep', '--untracked', '-I', '-n', '-z', '-F', query:find('%u') and '--no-ignore-case' or '-i' }
  done = git.await(vim.list_extend(args, { '-e', query, '--', place }), { ctx = ctx, cwd = ctx.root })
  if not ran(done) then
    done.fault = ('%s; install ripgrep'):format(done.fault)
  end
  return done
end

---@class mcp-tools.search.HitFile
---@field there boolean
---@field resolved string? nil: it must not be shown

--- A function that looks at a file once, and lets the editor have its turn in between.
---@param root string
---@return fun(path: string): mcp-tools.search.HitFile
local function looker(root)
  local seen, count, readable = {}, 0, access.files(root)
  return function(path)
    local place = seen[path]
    if not place then
      local absolute = path:sub(1, 1) == '/' and path or root .. '/' .. path
      place = { there = vim.uv.fs_lstat(absolute) ~= nil, resolved = (readable(absolute)) }
      seen[path], count = place, count + 1
      if count % LOOKS == 0 then
        coroutine.yield()
      end
    end
    return place
  end
end

--- Takes `path NUL number NUL-or-colon text NEWLINE` apart. A path may have line breaks in it; what a program says
--- between the hits is passed over.
---@param text string
---@param look fun(path: string): mcp-tools.search.HitFile
---@return fun(): mcp-tools.search.HitFile?, string?, string?
local function hits_of(text, look)
  local at = 1
  return function()
    while at <= #text do
      local path, number, line, after = text:match('^([^%z]+)%z(%d+)[:%z]([^\n]*)\n?()', at)
      local place = path and look(path)
      if place and place.there then
        at = after
        return place, number, line
      end
      at = (text:find('\n', at, true) or #text) + 1
    end
  end
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
  local done = search(ctx, query, place)
  if not done.ok and done.stdout == '' and not done.quiet then
    return nil, done.fault
  end
  local hits = {}
  for file, number, text in hits_of(done.stdout, looker(ctx.root)) do
    if file.resolved then
      if #hits == max then
        return hits, nil, true
      end
      if #text > MAX_LINE then
        text = text:sub(1, MAX_LINE) .. '…'
      end
      local shown = access.shown(file.resolved, ctx.root):gsub('%c', '?')
      table.insert(hits, { path = shown, line = tonumber(number), text = (utf8.repair(text)) })
    end
  end
  return hits, nil, done.cut
end

return M
