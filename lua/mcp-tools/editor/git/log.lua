--- Commits: author, date, message, and changed files.

local redact = require('mcp-tools.privacy.redact')
local revision = require('mcp-tools.editor.git.revision')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Fields of a commit, with NUL before the first and after each; git appends another one.
local FORMAT = '--format=tformat:%x00%H%x00%an%x00%aI%x00%P%x00%D%x00%B%x00'
local FIELDS = { 'commit', 'author', 'date', 'parents', 'refs', 'message' }

--- Maximum size of a message in a list, bytes; for one commit it is complete enough.
local MAX_MESSAGE = 16 * 1024

---@class mcp-tools.git.Commit
---@field commit string full hash
---@field author string
---@field date string
---@field parents string[]? unless there is exactly one
---@field refs string?
---@field subject string
---@field body string?
---@field files string[]? such as "M lua/a.lua"

---@param ctx mcp-tools.Ctx
---@param raw table<string, string>
---@return mcp-tools.git.Commit
local function commit_of(ctx, raw)
  local message = redact.text(utf8.cut(trim(raw.message), MAX_MESSAGE), time_slice.of(ctx))
  local subject, body = message:match('^([^\n]*)\n*(.*)$')
  local parents = vim.split(raw.parents, ' ', { trimempty = true })
  return {
    commit = raw.commit,
    author = (utf8.repair(raw.author)),
    date = raw.date,
    parents = #parents ~= 1 and parents or nil,
    refs = raw.refs ~= '' and utf8.repair(raw.refs) or nil,
    subject = (utf8.repair(subject)),
    body = body ~= '' and utf8.repair(body) or nil,
  }
end

---@param ctx mcp-tools.Ctx
---@param list string[] of `log -z`
---@return mcp-tools.git.Commit[]
local function read(ctx, list)
  local commits, i = {}, 1
  while list[i] == '' and list[i + #FIELDS] do
    local raw = {}
    for n, field in ipairs(FIELDS) do
      raw[field] = list[i + n]
    end
    local commit = commit_of(ctx, raw)
    i = i + #FIELDS + 2
    while list[i] and list[i] ~= '' do
      commit.files = commit.files or {}
      local letter = list[i]:gsub('^\n', '')
      table.insert(commit.files, (utf8.repair(('%s %s'):format(letter, list[i + 1] or '?'))))
      i = i + 2
    end
    table.insert(commits, commit)
    coroutine.yield()
  end
  return commits
end

--- Returns commits. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@param args string[] options that select them
---@param path? string resolved
---@param with_files? boolean
---@return mcp-tools.git.Commit[]?
---@return string? fault
---@return boolean? cut
function M.find(ctx, args, path, with_files)
  local command = { 'log', '-z', FORMAT, '--no-renames' }
  if with_files then
    vim.list_extend(command, { '-m', '--first-parent', '--name-status', '--relative' })
  end
  local done = revision.ask(ctx, vim.list_extend(vim.list_extend(command, args), { '--', path or '.' }))
  if not done.ok then
    return nil, done.fault
  end
  return read(ctx, revision.entries(done.stdout)), nil, done.cut
end

--- Returns one commit. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@param name string name of one revision, see `revision.is_name`
---@return mcp-tools.git.Commit?
---@return string? fault
function M.one(ctx, name)
  if name:find('..', 1, true) then
    return nil, revision.unknown(name) -- a range, for which git would return the first commit
  end
  local done = revision.ask(ctx, { 'log', '-z', FORMAT, '-n1', '--no-walk', name .. '^{commit}', '--' })
  if not done.ok then
    local is_unknown = done.code and done.stderr:find('bad revision', 1, true)
    return nil, is_unknown and revision.unknown(name) or done.fault
  end
  return read(ctx, revision.entries(done.stdout))[1]
end

return M
