--- Revisions and commits of the project, and requests to git about it.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local git = require('mcp-tools.editor.git')
local paths = require('mcp-tools.files.paths')
local redact = require('mcp-tools.privacy.redact')
local strings = require('mcp-tools.util.strings')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum length of a name in messages, bytes.
local SHOWN = 200

--- Whether a text is the name of one revision, and not an option or a range.
---@param name string
---@return boolean
function M.is_name(name)
  return #name <= 200 and name:find('^[%w_@][%w%._/@{}~^-]*$') ~= nil
end

--- Runs git in the project. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@param args string[]
---@param limit? integer bytes
---@param stdin? string
---@return mcp-tools.process.Result
function M.ask(ctx, args, limit, stdin)
  return git.await(args, { ctx = ctx, cwd = ctx.root, limit = limit, stdin = stdin })
end

--- Iterates over entries that end with NUL; an incomplete last one is left out.
---@param text string
---@return fun(): string?
function M.each(text)
  return strings.each_ended(text, '\0')
end

--- Like `each`, as a list.
---@param text string
---@return string[]
function M.entries(text)
  return vim.iter(M.each(text)):totable()
end

--- Returns the full hash of a revision. Only commits are accepted: the diff of two blobs could show any file. Call it
--- in a coroutine.
---@param ctx mcp-tools.Ctx
---@param name string
---@return string? commit
---@return string? fault
function M.commit(ctx, name)
  local found = M.ask(ctx, { 'rev-parse', '--verify', '--end-of-options', name .. '^{commit}' })
  local commit = found.stdout:match('^(%x+)\n$')
  if commit then
    return commit
  end
  local is_unknown = found.code and found.stderr:find('single revision', 1, true)
  return nil, is_unknown and M.unknown(name) or found.fault
end

--- Returns the message for an unknown revision.
---@param name string
---@return string
function M.unknown(name)
  return utf8.cut(name, SHOWN) .. ' is not a commit of this repository'
end

--- Returns the commit that an argument names. Call it in a coroutine. Throws an error value if it names none.
---@param ctx mcp-tools.Ctx
---@param args table
---@param name string name of the argument
---@param find? fun(ctx: mcp-tools.Ctx, name: string): any, string? used instead of `commit`
---@return any commit nil if the argument is missing
function M.of_argument(ctx, args, name, find)
  local name_given = args[name]
  if not name_given then
    return nil
  elseif not M.is_name(name_given) then
    local text = '%s: "%s" is not the name of one revision (a branch, a tag, a commit, HEAD~2)'
    error(errors.new('validation_error', text:format(name, utf8.cut(name_given, SHOWN))), 0)
  end
  local commit, fault = (find or M.commit)(ctx, name_given)
  return (errors.unwrap(commit, not commit and M.error_of(('%s: %s'):format(name, fault)) or nil))
end

--- Returns the error for a message of git.
---@param fault string
---@return mcp-tools.Error
function M.error_of(fault)
  local missing = fault:find('not a git repository', 1, true) or fault:find('is not a commit', 1, true)
  return errors.new(missing and 'not_found' or 'tool_error', fault)
end

--- Returns the file or directory of the project that `path` or `bufnr` names.
---@param ctx mcp-tools.Ctx
---@param args { path: string?, bufnr: integer? } at most one of them
---@return { path: string?, bufnr: integer? }? place empty if neither is given
---@return mcp-tools.Error? err
function M.place(ctx, args)
  if args.path == nil and args.bufnr == nil then
    return {}
  end
  local found, err = buffers.find(args)
  if not found then
    return nil, err
  elseif not found.path or found.path == '' then
    return nil, errors.new('not_found', ('buffer %d has no file'):format(args.bufnr))
  end
  local resolved, why = access.path((paths.resolve(found.path)), ctx.root)
  if not resolved then
    return nil, errors.new('access_denied', ('%s: cannot be read, it is %s'):format(args.path or 'bufnr', why))
  end
  return { path = resolved, bufnr = found.bufnr }
end

--- Fields of a commit, with NUL before the first and after each; git appends another one.
local FORMAT = '--format=tformat:%x00%H%x00%an%x00%aI%x00%P%x00%D%x00%B%x00'
local FIELDS = { 'commit', 'author', 'date', 'parents', 'refs', 'message' }

--- Maximum size of a commit message, in bytes.
local MAX_MESSAGE = 16 * 1024

---@class mcp-tools.git.Commit
---@field commit string full hash
---@field author string
---@field date string
---@field parents string[]? unless there is exactly one
---@field refs string?
---@field subject string
---@field body string?

---@param raw table<string, string>
---@param pause fun()
---@return mcp-tools.git.Commit
local function commit_of(raw, pause)
  local message = redact.text(utf8.cut(trim(raw.message), MAX_MESSAGE), pause)
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
  local commits, i, pause = {}, 1, time_slice.of(ctx)
  while list[i] == '' and list[i + #FIELDS] do
    local raw = {}
    for n, field in ipairs(FIELDS) do
      raw[field] = list[i + n]
    end
    table.insert(commits, commit_of(raw, pause))
    i = i + #FIELDS + 2
    pause()
  end
  return commits
end

--- Returns commits. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@param args string[] options that select them
---@param path? string resolved
---@return mcp-tools.git.Commit[]?
---@return string? fault
---@return boolean? cut
function M.log(ctx, args, path)
  local command = vim.list_extend({ 'log', '-z', FORMAT, '--no-renames' }, args)
  local done = M.ask(ctx, vim.list_extend(command, { '--', path or '.' }))
  if not done.ok then
    return nil, done.fault
  end
  return read(ctx, M.entries(done.stdout)), nil, done.cut
end

--- Returns one commit. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@param name string name of one revision, see `is_name`
---@return mcp-tools.git.Commit?
---@return string? fault
function M.show(ctx, name)
  if name:find('..', 1, true) then
    return nil, M.unknown(name) -- a range, for which git would return the first commit
  end
  local done = M.ask(ctx, { 'log', '-z', FORMAT, '-n1', '--no-walk', name .. '^{commit}', '--' })
  if not done.ok then
    local is_unknown = done.code and done.stderr:find('bad revision', 1, true)
    return nil, is_unknown and M.unknown(name) or done.fault
  end
  return read(ctx, M.entries(done.stdout))[1]
end

return M
