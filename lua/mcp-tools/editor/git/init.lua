--- Runs git in repositories that are not trusted.
---
--- No command that the project configures runs, whatever its configuration and attributes say. Hooks, monitors, pagers,
--- signature checkers and aliases are off. External diffs and text conversion, which attributes select, are off by the
--- options of each command, and filters by an override for each one in the configuration. Nothing is fetched. git is
--- given the repository and work tree (editor/git/repository.lua) and searches for none. Error messages do not quote
--- files that git could not parse.

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
  '--submodule=short', -- other formats run git in the submodule
  '--ignore-submodules=dirty', -- checking for changes runs git in the submodule, too
}

--- Commands that may run, with the options without which they would run other programs. Commands that write have more
--- ways to do so (hooks, merge drivers, smudge filters, maintenance), so do not add one lightly.
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
  'diff.autoRefreshIndex=false', -- would lock and write the index
  'format.pretty=medium', -- the project's own, or a format in arguments, could request signature checks
  'gpg.program=false',
  'gpg.ssh.program=false',
  'gpg.x509.program=false',
  'grep.threads=0', -- as many as there are cores
  'log.showSignature=false',
  'safe.bareRepository=explicit',
  'status.relativePaths=true',
  'status.submoduleSummary=false', -- runs git in the submodule
  'submodule.recurse=false',
}

--- After a colon git may quote the contents of any file that a link or the configuration makes it read. Only these
--- fixed reasons are repeated.
local REASONS = { ['No such file or directory'] = true, ['Permission denied'] = true, ['Not a directory'] = true }

--- Returns why git failed, without quoted contents.
---@param done mcp-tools.process.Result
---@return string?
local function fault_in(done)
  if not done.fault or not done.code or done.ended_by or done.signal ~= 0 then
    return done.fault
  end
  local line = ('\n' .. done.stderr):match('\nfatal: [^\n]*') or ('\n' .. done.stderr):match('\nerror: [^\n]*')
  local kind, text = (line or ''):match('^\n(%l+): (.*)$')
  if not text then
    return ('git exited with code %d'):format(done.code)
  end
  local head, tail = text:match('^(.-): (.*)$')
  local is_kept = not head or REASONS[tail] or vim.startswith(head, 'command line,') -- about a pattern in arguments
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

--- Returns our environment without git's variables, and with fetching off: missing objects of a partial clone stay
--- missing.
---@return table<string, string|false>
local function environment()
  local env = {}
  for name in pairs(vim.uv.os_environ()) do
    if vim.startswith(name, 'GIT_') then
      env[name] = false
    end
  end
  env.GIT_ALLOW_PROTOCOL = 'none' -- a list of protocols; none has this name
  env.GIT_NO_LAZY_FETCH = '1' -- ignored before 2.39.4
  env.GIT_TERMINAL_PROMPT = '0'
  env.LANGUAGE = false
  env.LC_ALL = 'C.UTF-8' -- error messages are parsed
  env.PATH = process.search_path()
  return env
end

--- Time that overrides are cached while the configuration files do not change, in ms.
local REMEMBERED = 60000
--- Minimum age of such a file, s: two changes in one tick of the clock have the same time.
local MIN_AGE = 2

--- Overrides of the last command.
---@type { state: string, settings: string[], until_ms: number }?
local remembered

--- Returns the state of the files with settings, except the system's, which no project can write.
---@param found mcp-tools.git.Repository
---@return string? state nil if one of them has just changed
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

--- Returns settings that turn off the filters and hooks of the configuration.
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
      if name:find('=', 1, true) then -- `-c` would end the key there
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

--- Returns settings that turn off the filters and hooks of a repository's configuration.
---@param found mcp-tools.git.Repository
---@param opts mcp-tools.process.Opts
---@param run fun(settings: string[], args: string[], opts: mcp-tools.process.Opts): mcp-tools.process.Result
---@return string[]? settings
---@return mcp-tools.process.Result? failed
local function own_settings(found, opts, run)
  local state = state_of_config(found)
  if remembered and remembered.state == state and remembered.until_ms > vim.uv.hrtime() / 1e6 then
    return remembered.settings
  end
  local listed = run(SETTINGS, { 'config', '--list', '--name-only', '-z' }, opts)
  if not listed.ok then
    return nil, listed
  end
  local settings, fault = overrides(listed)
  if not settings then
    return nil, process.not_run(fault)
  end
  -- The state does not cover files that a configuration includes.
  if state and not ('\0' .. listed.stdout):find('%zinclude') then
    remembered = { state = state, settings = settings, until_ms = vim.uv.hrtime() / 1e6 + REMEMBERED }
  end
  return settings
end

--- Runs git: `git.await({ 'log', '-n1', '--end-of-options', sha }, { ctx = ctx, cwd = ctx.root })`. Arguments from
--- clients must follow `--end-of-options` or `--`; paths are literal, not patterns.
---@param args string[] a command of `COMMANDS` and its arguments
---@param opts mcp-tools.process.Opts with `ctx`; `cwd` is inside the project
---@return mcp-tools.process.Result
function M.await(args, opts)
  local options = COMMANDS[args[1]]
  assert(options, ('git %s is not an allowed command'):format(args[1]))
  local found, missing = repository.find(opts.cwd)
  if not found then
    return process.not_run(missing)
  end
  local place, env = {}, environment()
  local function run(settings, more, how)
    local done = process.await(vim.iter({ command_with(settings), place, more }):flatten(2):totable(), how)
    done.fault = fault_in(done)
    return done
  end
  local brief = { ctx = opts.ctx, timeout = opts.timeout, env = env, cwd = found.worktree }
  if not found.is_ours then
    -- git skips its check of the owner (`safe.directory`) if it is given the repository.
    local checked = run(SETTINGS, { 'rev-parse', '--git-dir' }, brief)
    if not checked.ok then
      return checked
    end
  end
  place = { '--git-dir=' .. found.gitdir, '--work-tree=' .. found.worktree }
  brief.cwd, brief.env = opts.cwd, vim.tbl_extend('force', env, { GIT_COMMON_DIR = found.common }, opts.env or {})
  local settings, failed = own_settings(found, brief, run)
  if not settings then
    return failed --[[@as mcp-tools.process.Result]]
  end
  local how = vim.tbl_extend('force', opts, { env = brief.env })
  return run(vim.list_extend(vim.list_slice(SETTINGS), settings), { args[1], options, vim.list_slice(args, 2) }, how)
end

return M
