--- git, asked about a repository that nobody trusts.
---
--- No program that the project names is run, whatever its configuration and attributes say: hooks, monitors, pagers,
--- signature checkers and aliases are off; what attributes choose (external diffs, text conversion) is off by the
--- options of each command, and filters by an override for each that the configuration has. Nothing is fetched. git
--- is told which repository and work tree to use (editor/git/repository.lua) and looks for none itself. No fault quotes
--- a file that git was led to and could not read.

local process = require('mcp-tools.editor.process')
local repository = require('mcp-tools.editor.git.repository')
local utf8 = require('mcp-tools.util.utf8')

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
  'grep.threads=0', -- as many as there are cores
  'log.showSignature=false',
  'safe.bareRepository=explicit',
  'status.submoduleSummary=false', -- runs git in there
  'submodule.recurse=false',
}

--- Behind a colon git quotes the line that it cannot read, of whatever file a link or the configuration has it take for
--- one of its own. Only this is said of the repository by no file.
local REASONS = { ['No such file or directory'] = true, ['Permission denied'] = true, ['Not a directory'] = true }

--- Why git failed, without what it quotes.
---@param done mcp-tools.process.Result
---@return string?
local function fault_in(done)
  if not done.fault or not done.code or done.ended_by or done.signal ~= 0 then
    return done.fault
  end
  local said = ('\n' .. done.stderr):match('\nfatal: [^\n]*') or ('\n' .. done.stderr):match('\nerror: [^\n]*')
  local kind, text = (said or ''):match('^\n(%l+): (.*)$')
  if not text then
    return ('git ended with %d'):format(done.code)
  end
  local head, tail = text:match('^(.-): (.*)$')
  local is_kept = not head or REASONS[tail] or vim.startswith(head, 'command line,') -- that one is about a pattern
  return (utf8.repair(('%s: %s'):format(kind, is_kept and text or head)))
end

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

--- ms that the overrides are remembered while the files of the configuration have not changed.
local REMEMBERED = 60000
--- s that such a file must be old: two changes in one tick of the clock have the same time.
local MIN_AGE = 2

--- The overrides that the last question needed.
---@type { state: string, settings: string[], until_ms: number }?
local remembered

--- The state of the files that git reads settings from, without the system's file, which no project can write.
---@param found mcp-tools.git.Repository
---@return string? state nil when one of them has changed just now
local function state_of_config(found)
  local home = vim.env.HOME or ''
  local files = {
    found.common .. '/config',
    found.gitdir .. '/config',
    found.gitdir .. '/config.worktree',
    home .. '/.gitconfig',
    (vim.env.XDG_CONFIG_HOME or home .. '/.config') .. '/git/config',
  }
  local parts, now = {}, os.time()
  for _, file in ipairs(files) do
    local stat = vim.uv.fs_stat(file)
    if stat and stat.ctime.sec > now - MIN_AGE then
      return nil
    end
    local about = stat and { stat.dev, stat.ino, stat.size, stat.ctime.sec, stat.ctime.nsec } or {}
    table.insert(parts, file .. ' ' .. table.concat(about, ' '))
  end
  return table.concat(parts, '\n')
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
---@param cb fun(result: mcp-tools.process.Result) never called before this returns
function M.run(args, opts, cb)
  local options = COMMANDS[args[1]]
  assert(options, ('git %s is not among the commands that run nothing'):format(args[1]))
  local found, missing = repository.find(opts.cwd)
  if not found then
    return vim.schedule(function()
      cb(process.not_run(missing))
    end)
  end
  local env = environment()
  local decided = vim.tbl_extend('force', env, { GIT_COMMON_DIR = found.common }, opts.env or {})
  local function run(settings, more, how)
    local command = command_with(settings)
    vim.list_extend(command, { '--git-dir=' .. found.gitdir, '--work-tree=' .. found.worktree })
    process.run(
      vim.list_extend(command, more),
      vim.tbl_extend('force', how, { env = decided, cwd = opts.cwd }),
      function(done)
        done.fault = fault_in(done)
        how.cb(done)
      end
    )
  end
  local brief = { ctx = opts.ctx, timeout = opts.timeout }
  local function go_on(settings)
    local more = vim.iter({ args[1], options, vim.list_slice(args, 2) }):flatten():totable()
    run(vim.list_extend(vim.list_slice(SETTINGS), settings), more, vim.tbl_extend('force', opts, { cb = cb }))
  end
  local function list()
    local state = state_of_config(found)
    if remembered and remembered.state == state and remembered.until_ms > vim.uv.hrtime() / 1e6 then
      return go_on(remembered.settings)
    end
    local function take(listed)
      if not listed.ok then
        return cb(listed)
      end
      local settings, fault = overrides(listed)
      if not settings then
        return cb(process.not_run(fault))
      end
      -- Files that a configuration includes are not among those of its state.
      if state and not ('\0' .. listed.stdout):find('%zinclude') then
        remembered = { state = state, settings = settings, until_ms = vim.uv.hrtime() / 1e6 + REMEMBERED }
      end
      go_on(settings)
    end
    run(SETTINGS, { 'config', '--list', '--name-only', '-z' }, vim.tbl_extend('force', brief, { cb = take }))
  end
  if found.is_ours then
    return list()
  end
  -- git skips its check of the owner (`safe.directory`) for a repository that it is told.
  local check = vim.list_extend(command_with(SETTINGS), { 'rev-parse', '--git-dir' })
  process.run(check, vim.tbl_extend('force', brief, { env = env, cwd = found.worktree }), function(done)
    done.fault = fault_in(done)
    if not done.ok then
      return cb(done)
    end
    list()
  end)
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
