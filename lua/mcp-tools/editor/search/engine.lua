--- Regular expression searches with ripgrep, or else with `git grep -P`.
---
--- The same engine finds candidate files on disk and the matches in a text. It is given texts as the editor has them,
--- so results are correct for unsaved text, other encodings and CRLF files. A pattern that takes too long is stopped
--- with its process.

local errors = require('mcp-tools.errors')
local git = require('mcp-tools.editor.git')
local process = require('mcp-tools.editor.process')
local strings = require('mcp-tools.util.strings')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

--- Maximum size of a pattern, in bytes.
local MAX_PATTERN = 4096
--- Maximum size of the output for one text, and of all names, in bytes.
local MAX_OUTPUT, MAX_NAMES = 32 * 1024 * 1024, 16 * 1024 * 1024
local TIMEOUT = 30000
--- Maximum number of tracked files that .gitignore ignores; every search reads all of them.
local MAX_TRACKED = 5000

local RG = { 'rg', '--no-config', '--color=never' }
--- Options to list files. ripgrep ignores what git ignores, so results do not depend on what is installed.
local RG_FILES = { '--files-with-matches', '--null', '--hidden', '--glob=!.git', '--no-ignore-dot', '--no-messages' }
--- Options to search a text on stdin.
local RG_TEXT = { '--no-filename', '--no-heading', '--text', '--encoding=none', '--engine=auto', '--line-number' }
--- The same for git. Its columns are wrong except for the first match of a line, so matches are found by their color.
--- `--no-index` needs no repository.
local GIT_TEXT = vim
  .iter({
    'git',
    { '-c', 'color.grep.match=#123457', '-c', 'color.grep.separator=normal', '-c', 'color.grep.lineNumber=normal' },
    { 'grep', '--no-index', '--color=always', '--text', '-h', '--line-number', '-P' },
  })
  :flatten()
  :totable()
local GIT_MATCH, GIT_END = '\27[38;2;18;52;87m', '\27[m'

--- Matches bytes that are not valid UTF-8, which the editor shows as other text.
local NOT_UTF8 = table.concat({
  '[\\xC0\\xC1\\xF5-\\xFF]',
  '(?:^|[\\x00-\\x7F])[\\x80-\\xBF]',
  '[\\xC2-\\xDF](?:[^\\x80-\\xBF]|$|[\\x80-\\xBF]{2})',
  '[\\xE0-\\xEF](?:[\\x80-\\xBF]?(?:[^\\x80-\\xBF]|$)|[\\x80-\\xBF]{3})',
  '[\\xF0-\\xF4](?:[\\x80-\\xBF]{0,2}(?:[^\\x80-\\xBF]|$)|[\\x80-\\xBF]{4})',
}, '|')

---@class mcp-tools.search.Spot
---@field row integer from 0
---@field col integer bytes from 0
---@field end_col integer

---@class mcp-tools.search.Engine
---@field name 'rg'|'git'
---@field pattern string
---@field flags string[]
local Engine = {}
Engine.__index = Engine

--- Returns the names of files, each followed by NUL. The last one of truncated output is incomplete and left out.
---@param done mcp-tools.process.Result
---@return (fun(): string?)? names nil if the search failed
---@return boolean? cut
local function names_of(done)
  -- ripgrep exits with 2 if it could not read some files.
  local is_usable = done.ok or done.quiet or done.stdout ~= '' and done.code == 2 and trim(done.stderr) == ''
  if not is_usable and not (done.code == 1 and done.stdout == '') then
    return nil
  end
  return strings.each_ended(done.stdout, '\0'), done.cut
end

---@class mcp-tools.search.FileQuery
---@field pattern string one line
---@field is_regex boolean
---@field flags string[] `-i`
---@field engine? 'rg'|'git' the only engine to use

--- Returns whether the editor's text of a file may differ from the bytes that ripgrep and git search.
---@param query mcp-tools.search.FileQuery
---@return boolean
local function depends_on_encoding(query)
  return query.is_regex or query.pattern:find('[\128-\255]') ~= nil
end

--- Returns the files that several searches find.
---@param ctx mcp-tools.Ctx
---@param place mcp-tools.search.Place
---@param searches (fun(): mcp-tools.process.Result)[]
---@param base string prefix that makes the names of their output paths
---@return string[]? paths nil if one of them failed
---@return boolean? cut
local function collect(ctx, place, searches, base)
  local found, is_cut, pause = {}, false, time_slice.of(ctx)
  local function add(done, before, max)
    local names, cut = names_of(done)
    local last = #found + max
    for name in names or function() end do
      if #found >= last then
        break
      end
      found[#found + 1] = before .. name
      pause()
    end
    is_cut = is_cut or cut == true
    return names ~= nil
  end
  -- Neither engine searches tracked files that .gitignore ignores.
  local args = { 'ls-files', '-z', '--cached', '--ignored', '--exclude-standard' }
  local tracked = git.await(args, { ctx = ctx, cwd = place.path, limit = MAX_NAMES, timeout = TIMEOUT })
  for _, search in ipairs(searches) do
    if not add(search(), base, math.huge) then
      return nil
    end
  end
  add(tracked, place.path .. '/', MAX_TRACKED)
  return found, is_cut
end

---@param ctx mcp-tools.Ctx
---@param place mcp-tools.search.Place
---@param query mcp-tools.search.FileQuery
---@return string[]? paths
---@return boolean? cut
local function files_by_rg(ctx, place, query)
  if process.is_missing(RG[1], process.search_path()) then
    return nil -- so that the other processes are not started
  end
  local function start(args)
    local command = vim.iter({ RG, RG_FILES, args, '--', place.path }):flatten():totable()
    local opts = { ctx = ctx, cwd = place.path, env = { PATH = process.search_path() } }
    return process.begin(command, vim.tbl_extend('error', opts, { limit = MAX_NAMES, timeout = TIMEOUT }))
  end
  local how = query.is_regex and { '--engine=auto', '--crlf' } or { '--fixed-strings' }
  local list = { start(vim.iter({ how, query.flags, '--regexp=' .. query.pattern }):flatten():totable()) }
  if depends_on_encoding(query) then
    -- Also files with a CR inside a line, which `--crlf` takes for a line break.
    table.insert(list, start({ '--regexp=(?-u)\\r[^\\n]|' .. NOT_UTF8 }))
  end
  return collect(ctx, place, list, '')
end

---@param ctx mcp-tools.Ctx
---@param place mcp-tools.search.Place
---@param query mcp-tools.search.FileQuery
---@return string[]? paths
---@return boolean? cut
local function files_by_git(ctx, place, query)
  local function start(args, env)
    return function()
      local command = vim.iter({ 'grep', '--untracked', '-I', '-l', '-z', args, '--', '.' }):flatten():totable()
      return git.await(command, { ctx = ctx, cwd = place.path, limit = MAX_NAMES, timeout = TIMEOUT, env = env })
    end
  end
  local how = query.is_regex and '-P' or '-F'
  local list = { start(vim.iter({ how, query.flags, '-e', query.pattern }):flatten():totable()) }
  if depends_on_encoding(query) then
    -- git treats a CR and a byte order mark as text. Single bytes match only in a locale without encoding.
    local pattern = query.is_regex and '\\r|^\\xEF\\xBB\\xBF|' .. NOT_UTF8 or NOT_UTF8
    table.insert(list, start({ '-P', '-e', pattern }, { LC_ALL = 'C' }))
  end
  return collect(ctx, place, list, place.path .. '/')
end

--- Finds files on disk that may match. Access to them was not checked.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param place mcp-tools.search.Place a directory
---@param query mcp-tools.search.FileQuery
---@return string[]? paths absolute, in any order, with duplicates; nil if no engine is available
---@return boolean? cut there are more
function M.files(ctx, place, query)
  local paths, cut
  if query.engine ~= 'git' then
    paths, cut = files_by_rg(ctx, place, query)
  end
  if not paths and query.engine ~= 'rg' then
    paths, cut = files_by_git(ctx, place, query)
  end
  return paths, cut
end

--- Returns an environment in which git finds neither a repository nor settings.
---@param directory string its working directory
---@return table<string, string|false>
local function bare_environment(directory)
  local env = {}
  for name in pairs(uv.os_environ()) do
    if vim.startswith(name, 'GIT_') then
      env[name] = false
    end
  end
  env.GIT_CEILING_DIRECTORIES = vim.fs.dirname(directory)
  env.GIT_CONFIG_GLOBAL, env.GIT_CONFIG_SYSTEM = '/dev/null', '/dev/null'
  env.LANGUAGE, env.LC_ALL = false, 'C.UTF-8'
  env.PATH = process.search_path()
  return env
end

--- Runs `git grep` on a text, in a file in the editor's private temporary directory, which is deleted even if the call
--- ends first.
---@param ctx mcp-tools.Ctx
---@param args string[]
---@param text string
---@return mcp-tools.process.Result
local function git_grep(ctx, args, text)
  local directory = vim.fn.tempname()
  local function clean()
    vim.fn.delete(directory, 'rf')
  end
  ctx.call:on_end(clean)
  vim.fn.mkdir(directory, '', tonumber('700', 8))
  local file, fault = io.open(directory .. '/text', 'wb')
  local is_written = false
  if file then
    is_written, fault = file:write(text)
    is_written = file:close() and is_written
  end
  if not is_written then
    return process.not_run(fault or 'the text cannot be written')
  end
  local done = process.await(
    vim.iter({ GIT_TEXT, args, '--', 'text' }):flatten():totable(),
    { ctx = ctx, cwd = directory, env = bare_environment(directory), limit = MAX_OUTPUT, timeout = TIMEOUT }
  )
  clean()
  return done
end

--- Returns the error of an engine that did not search a text.
---@param done mcp-tools.process.Result
---@return mcp-tools.Error
local function error_of(done)
  if done.ended_by == 'timeout' then
    return errors.new('too_large', 'query: this regular expression takes too long; simplify it, or narrow it with path')
  elseif not done.code or done.signal ~= 0 or done.stderr:find('--engine', 1, true) then -- ripgrep before 12
    return errors.new('tool_error', done.fault)
  end
  -- The reason is at the end; git prints it after the pattern.
  local why = strings.last_line(trim(done.stderr)):gsub("^fatal: .*': ", ''):gsub('^error: ', '')
  local text = ('query: this regular expression cannot be used: %s'):format((utf8.repair(why)))
  return errors.new('validation_error', text)
end

--- Runs the engine on a text.
---@param ctx mcp-tools.Ctx
---@param text string
---@param args string[] of ripgrep
---@param pause fun()
---@return string? output
---@return mcp-tools.Error? err
---@return boolean? cut
function Engine:run(ctx, text, args, pause)
  text = strings.replace_all(text, '\r\n', '\n', pause)
  local done
  if self.name == 'rg' then
    local command = vim.iter({ RG_TEXT, self.flags, args, '--regexp=' .. self.pattern, '-' }):flatten():totable()
    done = process.await(vim.list_extend(vim.list_slice(RG), command), {
      ctx = ctx,
      cwd = '/',
      env = { PATH = process.search_path() },
      stdin = text,
      limit = MAX_OUTPUT,
      timeout = TIMEOUT,
    })
  else
    local command = vim.iter({ self.flags, '-e', self.pattern }):flatten():totable()
    done = git_grep(ctx, command, strings.replace_all(text, '\27', '\1', pause))
  end
  if done.ok or done.code == 1 and done.stderr == '' then
    return done.stdout, nil, done.cut
  end
  return nil, error_of(done)
end

--- Reads the matches of a line that git has colored.
---@param output string
---@param at integer start of the text of the line
---@param stop integer end of the line
---@param first integer? the next match
---@param add fun(col: integer, end_col: integer): boolean returns true for enough matches
---@return integer? first the next match after the line
local function colored(output, at, stop, first, add)
  local col = 0
  while first and first < stop do
    local from = first + #GIT_MATCH
    local to = output:find(GIT_END, from, true)
    if not to or to > stop then
      return nil -- the output was truncated here
    end
    col = col + first - at
    local end_col = col + to - from
    if add(col, end_col) then
      return nil
    end
    col, at = end_col, to + #GIT_END
    first = output:find(GIT_MATCH, at, true)
  end
  return first
end

--- Finds the matches in a text, line by line, without the CR at the end of lines.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param text string its lines end with "\n"
---@param max integer maximum number of places
---@return mcp-tools.search.Spot[]? spots in order
---@return mcp-tools.Error? err
---@return boolean? cut there are more
function Engine:matches(ctx, text, max)
  local pause = time_slice.of(ctx)
  local output, err, cut = self:run(ctx, text, { '--only-matching', '--column' }, pause)
  if not output then
    return nil, err
  end
  local spots, at = {}, 1
  local row = 0
  local function add(col, end_col)
    if end_col > col then
      spots[#spots + 1] = { row = row, col = col, end_col = end_col }
    end
    pause()
    return #spots >= max
  end
  -- By position, since creating strings for millions of lines with empty matches takes seconds.
  local next_match = self.name == 'git' and output:find(GIT_MATCH, 1, true) or nil
  while at <= #output and #spots < max and (next_match or self.name == 'rg') do
    local stop = output:find('\n', at, true)
    local text_at = output:match('^%d+:()', at) --[[@as integer?]]
    local from = self.name == 'rg' and stop and output:match('^%d+:()', text_at)
    if from and from < stop then
      row = tonumber(output:sub(at, text_at - 2)) - 1
      local col = tonumber(output:sub(text_at, from - 2)) - 1
      add(col, col + stop - from)
    elseif next_match and next_match < (stop or #output) and text_at then
      row = tonumber(output:sub(at, text_at - 2)) - 1
      next_match = colored(output, text_at, stop or #output, next_match, add)
    end
    at = (stop or #output) + 1
    pause()
  end
  cut = cut or #spots >= max
  return spots, nil, cut
end

--- Returns the groups of each match, `$0` to `$9`.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param text string its lines end with "\n"
---@return table<string, string>[]? in the order of `matches`
---@return mcp-tools.Error? err
function Engine:groups(ctx, text)
  if self.name ~= 'rg' then
    local hint = 'replacement: groups ($1 to $9) need ripgrep (rg), which is not installed; $0 is the whole match'
    return nil, errors.new('tool_error', hint)
  end
  local between, number = '\30', 0
  while text:find(between, 1, true) do
    number = number + 1
    between = ('\30%d\30'):format(number)
  end
  local parts = {}
  for i = 0, 9 do
    parts[i + 1] = ('${%d}%s'):format(i, between)
  end
  local pause = time_slice.of(ctx)
  local output, err, cut = self:run(ctx, text, { '--only-matching', '--replace=' .. table.concat(parts) }, pause)
  if not output or cut then
    return nil, err or errors.new('too_large', 'query: its matches are too large; narrow it with path')
  end
  local list = {}
  for entry in strings.each_ended(output, '\n') do
    local texts = vim.split(entry:match('^%d+:(.*)$') or '', between, { plain = true })
    if texts[1] ~= '' then
      local groups = {}
      for i = 0, 9 do
        groups[tostring(i)] = texts[i + 1] or ''
      end
      table.insert(list, groups)
    end
    pause()
  end
  return list
end

--- Finds the engine for a pattern and checks the pattern with it.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param query mcp-tools.search.Query
---@return mcp-tools.search.Engine?
---@return mcp-tools.Error? err
function M.open(ctx, query)
  local pattern = query.query
  if #pattern > MAX_PATTERN then
    return nil, errors.new('validation_error', ('query: maximum length of a pattern is %d bytes'):format(MAX_PATTERN))
  elseif pattern:find('\n', 1, true) or pattern:gsub('\\\\', ''):find('\\n', 1, true) then
    local text = 'query: a regular expression is matched line by line; search for several lines without regex'
    return nil, errors.new('validation_error', text)
  elseif query.word then
    pattern = ('\\b(?:%s)\\b'):format(pattern)
  end
  local flags = query.ignore_case and { '-i' } or {}
  for _, name in ipairs({ 'rg', 'git' }) do
    -- Without UCP, PCRE knows only ASCII words and digits.
    local engine = { name = name, pattern = name == 'git' and '(*UCP)' .. pattern or pattern, flags = flags }
    setmetatable(engine, Engine)
    local _, err = engine:matches(ctx, '', 1)
    if not err then
      return engine
    elseif err.code ~= 'tool_error' then
      return nil, err
    end
  end
  local text = 'regex: a search by regular expression needs ripgrep (rg) or git; install one, or search for plain text'
  return nil, errors.new('tool_error', text)
end

return M
