--- What git knows of the project: its changes, its status, its revisions.
---
--- Receives: the root of the project, revisions as people write them.
--- Sends: names and diffs; no text of files that are sensitive or outside the project.
--- Does not know about: prompts, how git is kept from running other programs (editor/git.lua).

local access = require('mcp-tools.files.access')
local git = require('mcp-tools.editor.git')

local M = {}

--- Diffs beyond this fit no model's context.
local MAX_DIFF = 256 * 1024
--- Files that one diff is asked about: a command line has an end, too.
local MAX_FILES = 2000
--- Files that are looked at before the editor has its turn.
local LOOKS = 50

--- Is it the name of a revision, and nothing that git would take for an option or a range of files?
---@param revision string
---@return boolean
function M.is_revision(revision)
  return #revision <= 200 and revision:find('^[%w_@][%w%._/@{}~^-]*$') ~= nil
end

---@param ctx mcp-tools.Ctx
---@param args string[]
---@param limit? integer
---@return mcp-tools.process.Result
local function ask(ctx, args, limit)
  return git.await(args, { ctx = ctx, cwd = ctx.root, limit = limit })
end

--- Whole entries of what was printed with NUL after each, also when it was cut.
---@param text string
---@return string[]
local function entries(text)
  local list = {}
  for entry in text:gmatch('([^%z]*)%z') do
    table.insert(list, entry)
  end
  return list
end

local ESCAPES = { ['"'] = '\\"', ['\\'] = '\\\\', ['\a'] = '\\a', ['\b'] = '\\b', ['\t'] = '\\t', ['\n'] = '\\n' }
ESCAPES['\v'], ESCAPES['\f'], ESCAPES['\r'] = '\\v', '\\f', '\\r'

--- A name as git writes it in the head of a diff.
---@param name string
---@return string
local function quoted(name)
  local escaped, n = name:gsub('[%c"\\]', function(char)
    return ESCAPES[char] or ('\\%03o'):format(char:byte())
  end)
  return n > 0 and '"' .. escaped .. '"' or name
end

--- The parts of a diff that are about these files; a folder with the name of a file brings along what is in it.
---@param text string
---@param files string[]
---@return string
local function parts_about(text, files)
  local heads = {}
  for _, name in ipairs(files) do
    heads[('diff --git %s %s'):format(quoted('a/' .. name), quoted('b/' .. name))] = true
  end
  local kept, start = {}, 1
  while start <= #text do
    local stop = text:find('\ndiff --git ', start, true) or #text
    local part = text:sub(start, stop)
    local head, rest = part:match('^([^\n]*)\n(.*)$')
    if rest and rest ~= '' and heads[head] then -- no more than a head: touched, but the same
      table.insert(kept, part)
    end
    start = stop + 1
  end
  return table.concat(kept)
end

--- Which files may be shown. Each is looked up on the disk, so the editor has its turn in between.
---@param ctx mcp-tools.Ctx
---@param list string[] of `diff --numstat -z`
---@return string[] files
---@return string[] withheld
local function judged(ctx, list)
  local files, withheld, readable = {}, {}, access.files(ctx.root)
  for i, entry in ipairs(list) do
    local name = entry:match('^[%d-]+\t[%d-]+\t(.+)$')
    if name then
      table.insert(readable(name) and files or withheld, name)
    end
    if i % LOOKS == 0 then
      coroutine.yield()
    end
  end
  return files, withheld
end

---@class mcp-tools.Changes
---@field diff string against the revision, staged or not
---@field cut boolean
---@field withheld string[] changed too, but not to be shown
---@field untracked string[]

--- What has changed since a revision. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param revision string
---@param path? string resolved; only this file or folder
---@return mcp-tools.Changes?
---@return string? fault
function M.changes(ctx, revision, path)
  local limits = path and { '--', path } or { '--' }
  -- Only a commit: the diff of two blobs has whatever name was asked for.
  local base = ask(ctx, { 'rev-parse', '--verify', '--end-of-options', revision .. '^{commit}' })
  local commit = base.stdout:match('^(%x+)\n$')
  if not commit then
    local unknown = base.code and base.stderr:find('single revision', 1, true)
    return nil, unknown and revision .. ' is no commit of this repository' or base.fault
  end
  local listed = ask(ctx, vim.list_extend({ 'diff', '--no-renames', '--numstat', '-z', '--relative', commit }, limits))
  if not listed.ok then
    return nil, listed.fault
  end
  local all = entries(listed.stdout)
  local files, withheld = judged(ctx, vim.list_slice(all, 1, MAX_FILES))
  local diff = { stdout = '', cut = false }
  if #files > 0 then
    -- Named one by one, so that what is withheld is not asked for in the first place.
    local command = { 'diff', '--no-renames', '--relative', commit, '--' }
    diff = ask(ctx, vim.list_extend(command, files), MAX_DIFF)
    if not diff.ok then
      return nil, diff.fault
    end
  end
  local others = ask(ctx, vim.list_extend({ 'ls-files', '-z', '--others', '--exclude-standard' }, limits))
  return {
    diff = parts_about(diff.stdout, files),
    cut = diff.cut or listed.cut or #all > MAX_FILES,
    withheld = withheld,
    untracked = entries(others.stdout),
  }
end

--- Branch, and the short status of every file. In a coroutine.
---@param ctx mcp-tools.Ctx
---@return string? text
---@return string? fault
function M.status(ctx)
  local done = ask(ctx, { 'status', '--short', '--branch', '--untracked-files=normal', '--', '.' }, 16 * 1024)
  return done.ok and done.stdout or nil, done.fault
end

--- Completion of revisions: branches and tags.
---@param ctx mcp-tools.Ctx
---@param prefix string
function M.complete_revision(ctx, prefix)
  local args = { 'for-each-ref', '--format=%(refname:short)', '--sort=-committerdate' }
  vim.list_extend(args, { 'refs/heads', 'refs/tags', 'refs/remotes' })
  git.run(args, { ctx = ctx, cwd = ctx.root, limit = 64 * 1024 }, function(done)
    local values = {}
    for _, name in ipairs(vim.split('HEAD\n' .. done.stdout, '\n', { trimempty = true })) do
      if vim.startswith(name, prefix) and M.is_revision(name) then
        table.insert(values, name)
      end
    end
    ctx(values)
  end)
end

return M
