--- git, asked about a repository that nobody trusts.
---
--- Receives: a command that only reads, with its arguments.
--- Sends: what git printed.
--- Does not know about: what is asked, or who may see it (editor/git/changes.lua).
---
--- No program that the project names is run, whatever its configuration and attributes say: hooks, monitors, pagers,
--- signature checkers and aliases are off; what attributes choose (external diffs, text conversion) is off by the
--- options of each command, and filters by an override for each that the configuration has. Nothing is fetched. The
--- repository is `.git` of the folder or of one above, never a bare one that lies there as files, and its work tree is
--- the folder that has `.git` in it, never another. What `.git` only points to says itself that it belongs there, and
--- what lies in the folder borrows no objects: a stranger's folder does not show the history of another project. Nor
--- does a fault quote the file that git was led to and could not make sense of.

local fault_in = require('mcp-tools.editor.git.fault')
local process = require('mcp-tools.editor.process')
local read_now = require('mcp-tools.files.read_now')

local M = {}

local DIFF = {
  '--no-ext-diff',
  '--no-textconv',
  '--no-color',
  '--src-prefix=a/',
  '--dst-prefix=b/',
  '--submodule=short', -- others run git in there
  '--ignore-submodules=dirty', -- so does a look at what has changed in there
}

--- Commands that may be run, and the options without which they would run others' programs. Commands that write have
--- more ways to do so (hooks, merge drivers, smudge filters, maintenance): think before adding one.
local COMMANDS = {
  blame = { '--no-textconv' },
  diff = DIFF,
  ['for-each-ref'] = {},
  grep = { '--no-color' },
  log = DIFF,
  ['ls-files'] = {},
  ['rev-parse'] = {},
  show = DIFF,
  status = { '--ignore-submodules=dirty' },
}

local SETTINGS = {
  'color.status=false', -- `status` has no option for it
  'core.fsmonitor=false',
  'core.hooksPath=/dev/null',
  'core.quotePath=false',
  'diff.autoRefreshIndex=false', -- would take the lock of the index, and write it
  'format.pretty=medium', -- the project's could ask for signatures to be checked, as a format among the arguments can
  'gpg.program=false',
  'gpg.ssh.program=false',
  'gpg.x509.program=false',
  'log.showSignature=false',
  'safe.bareRepository=explicit',
  'status.submoduleSummary=false', -- runs git in there
  'submodule.recurse=false',
}

---@param settings string[] `key=value`
---@return string[]
local function command_with(settings)
  local command = { 'git', '--no-pager', '--no-optional-locks', '--literal-pathspecs' }
  for _, setting in ipairs(settings) do
    vim.list_extend(command, { '-c', setting })
  end
  return command
end

--- Ours without what steers git, and with what keeps it from fetching: what is missing of a partial clone stays away.
---@return table<string, string|false>
local function environment()
  local env = {}
  for name in pairs(vim.uv.os_environ()) do
    if vim.startswith(name, 'GIT_') then
      env[name] = false
    end
  end
  env.GIT_ALLOW_PROTOCOL = 'none' -- a list of names; nothing is called so
  env.GIT_NO_LAZY_FETCH = '1' -- not known to versions before 2.39.4
  env.GIT_TERMINAL_PROMPT = '0'
  env.LANGUAGE = false
  env.LC_ALL = 'C.UTF-8' -- its faults are looked for
  env.PATH = process.search_path()
  return env
end

--- Would git take this folder for a repository? Rather too often than too seldom.
---@param folder string
---@return boolean
local function is_repository(folder)
  local function has(name)
    return vim.uv.fs_lstat(folder .. '/' .. name) ~= nil
  end
  return has('HEAD') and (has('commondir') or (has('objects') and has('refs')))
end

---@param path string
---@param base string that a relative one counts from
local function absolute(path, base)
  return path:sub(1, 1) == '/' and path or base .. '/' .. path
end

--- The path that a file of git's consists of.
---@param file string
---@param base string that a relative one counts from
---@param prefix? string before it
---@return string? resolved
local function path_in(file, base, prefix)
  local line = (read_now(file, 4096) or ''):match('^[^\n]*')
  if not vim.startswith(line, prefix or '') then
    return nil
  end
  local path = line:sub(#(prefix or '') + 1)
  if path == '' or path:find('%z') then
    return nil
  end
  return vim.uv.fs_realpath(absolute(path, base))
end

---@param path string
---@param folder string
local function is_below(path, folder)
  return vim.startswith(path, folder == '/' and '/' or folder .. '/')
end

--- Does what `.git` points to name this folder? That of a linked work tree has the path of the `.git` in it, that of a
--- submodule its work tree among its settings.
---@param gitdir string resolved
---@param folder string resolved
---@return boolean
local function points_back(gitdir, folder)
  if path_in(gitdir .. '/gitdir', gitdir) == folder .. '/.git' then
    return true
  end
  local settings = read_now(gitdir .. '/config', 64 * 1024) or ''
  local worktree = settings:match('%f[%w]worktree%s*=%s*"?([^\n"]+)')
  return worktree ~= nil and vim.uv.fs_realpath(absolute(worktree, gitdir)) == folder
end

--- The repository that has the history: this one, or that which it is a linked work tree of.
---@param gitdir string resolved
---@return string?
local function common_of(gitdir)
  if not vim.uv.fs_lstat(gitdir .. '/commondir') then
    return gitdir
  end
  local common = path_in(gitdir .. '/commondir', gitdir)
  return common and is_below(gitdir, common .. '/worktrees') and common or nil
end

--- Has it what it names? No link among its objects leads away, and no other repository lends it some. Then a name of
--- a revision that leads elsewhere names nothing.
---@param common string resolved
---@return boolean
local function has_its_objects(common)
  local objects = common .. '/objects'
  if vim.uv.fs_realpath(objects) ~= objects then
    return vim.uv.fs_lstat(objects) == nil
  end
  for name, kind in vim.fs.dir(objects) do
    kind = kind ~= 'unknown' and kind or (vim.uv.fs_lstat(objects .. '/' .. name) or {}).type
    if kind == 'link' then
      return false
    end
  end
  return vim.uv.fs_lstat(objects .. '/info/alternates') == nil
end

--- Why its repository is not looked at.
---@param folder string resolved
---@return string? fault
local function fault_of(folder)
  local dot_git = folder .. '/.git'
  local stat = vim.uv.fs_stat(dot_git)
  local gitdir = stat and stat.type == 'file' and path_in(dot_git, folder, 'gitdir: ') or vim.uv.fs_realpath(dot_git)
  local common = gitdir and common_of(gitdir)
  if not common or not (is_below(gitdir, folder) or points_back(gitdir, folder)) then
    return ('%s points to a repository that does not point back'):format(dot_git)
  elseif not has_its_objects(common) then
    return ('%s borrows its objects from another repository'):format(dot_git)
  end
end

--- The folder that has `.git` in it: this one, or the nearest above.
---@param folder string
---@return string? worktree
---@return string? fault
local function worktree_of(folder)
  folder = vim.uv.fs_realpath(folder) or folder
  while true do
    local dot_git = (folder == '/' and '' or folder) .. '/.git'
    local stat = vim.uv.fs_stat(dot_git)
    if stat and (stat.type == 'file' or is_repository(dot_git)) then
      local fault = fault_of(folder)
      return not fault and folder or nil, fault
    elseif is_repository(folder) then
      return nil, ('%s is a bare repository'):format(folder)
    elseif folder == '/' then
      return nil, 'not a git repository'
    end
    folder = folder:match('^(.*)/[^/]*$')
    folder = folder == '' and '/' or folder
  end
end

--- What keeps the filters and hooks that the configuration names from being run.
---@param listed mcp-tools.process.Result its keys, each with a NUL after it
---@return string[]? settings
---@return string? fault
local function overrides(listed)
  if listed.cut then
    return nil, 'the configuration of the repository is too large'
  end
  local settings, seen = {}, {}
  for key in listed.stdout:gmatch('[^%z]+') do
    local section, name = key:match('^(%l+)%.(.*)%.[^.]*$')
    local known = section == 'filter' or section == 'hook'
    local place = known and section .. '.' .. name
    if known and not seen[place] then
      seen[place] = true
      if name:find('=', 1, true) then -- there `-c` would end the key
        return nil, ('the configuration has a %s that cannot be turned off: %s'):format(section, name)
      elseif section == 'hook' then
        table.insert(settings, place .. '.enabled=false')
      else
        vim.list_extend(settings, {
          place .. '.clean=',
          place .. '.smudge=',
          place .. '.process=',
          place .. '.required=false',
        })
      end
    end
  end
  return settings
end

--- Runs git: `git.run({ 'log', '-n1', '--end-of-options', sha }, { ctx = ctx, cwd = ctx.root }, cb)`. What comes from
--- others among the arguments stands behind `--end-of-options` or `--`; paths are taken as they are, not as patterns.
---@param args string[] a command of `COMMANDS` and its arguments
---@param opts mcp-tools.process.Opts `cwd` is in the project
---@param cb fun(result: mcp-tools.process.Result)
function M.run(args, opts, cb)
  local options = COMMANDS[args[1]]
  assert(options, ('git %s is not among the commands that run nothing'):format(args[1]))
  local env = environment()
  local worktree, missing = worktree_of(opts.cwd)
  local function run(settings, more, how)
    local command = vim.list_extend(command_with(settings), { worktree and '--work-tree=' .. worktree })
    process.run(
      vim.list_extend(command, more),
      vim.tbl_extend('force', how, { env = env, cwd = opts.cwd }),
      function(done)
        done.fault = fault_in(done)
        how.cb(done)
      end
    )
  end
  local function go_on(listed)
    if not listed.ok then
      return cb(listed)
    end
    local settings, fault = overrides(listed)
    if not (worktree and settings) then
      return cb(process.not_run(missing or fault))
    end
    local more = vim.iter({ args[1], options, vim.list_slice(args, 2) }):flatten():totable()
    run(vim.list_extend(vim.list_slice(SETTINGS), settings), more, vim.tbl_extend('force', opts, { cb = cb }))
  end
  run(SETTINGS, { 'config', '--list', '--name-only', '-z' }, { ctx = opts.ctx, timeout = opts.timeout, cb = go_on })
end

--- The same for coroutines of `run` handlers.
---@param args string[]
---@param opts mcp-tools.process.Opts with its ctx
---@return mcp-tools.process.Result
function M.await(args, opts)
  return opts.ctx:await(function(done)
    M.run(args, opts, done)
  end)
end

return M
