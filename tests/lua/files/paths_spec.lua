-- slow, every Neovim
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local paths = require('mcp-tools.files.paths')
local project = require('editor_project')
local t = require('helpers')
local targets = require('mcp-tools.approval.targets')

project.each(nil, function()
  config.setup({ tools = { 'buffer', 'file' } })
  core.get()
end)

--- The decision on a call without a user, which is made in little time.
local function call(tool, args, kind)
  core.get().gateway.ask = function(question, answer)
    answer(nil, { code = 'access_denied', message = 'asked: ' .. question.reason }, 'nobody')
  end
  local executor = core.get().executor
  local made = t.fast(executor.execute, executor, tool, args, { host = 'test', kind = kind })
  t.ended(made)
  return made.outcome.error and made.outcome.error.message or ''
end

describe('a path', function()
  it('is resolved part by part, even after a part that does not exist', function()
    local root = project.root
    vim.fn.mkdir(project.base .. '/out/deep', 'p')
    vim.fn.mkdir(root .. '/sub', 'p')
    vim.uv.fs_symlink(project.base .. '/out/deep', root .. '/link')
    vim.uv.fs_symlink('sub/later', root .. '/dangling')
    project.write('file', 'x')
    for given, expected in pairs({
      ['/none/../link/x'] = project.base .. '/out/deep/x',
      ['/none/more/../../link/x'] = project.base .. '/out/deep/x',
      ['/link/../x'] = project.base .. '/out/x',
      ['/link/../none/../../x'] = project.base .. '/x',
      ['/dangling/../../x'] = root .. '/x',
      ['/dangling/./y'] = root .. '/sub/later/y',
      ['/file/../sub/x'] = root .. '/sub/x',
      ['//none//.//x/'] = root .. '/none/x',
      ['/none/../../../../../../../../..'] = '/',
    }) do
      t.eq({ given, expected }, { given, (paths.resolve(root .. given)) })
    end
  end)

  it('is resolved in linear time', function()
    for _, path in ipairs({ ('a/'):rep(32768), ('%61/'):rep(16384), ('a/../'):rep(13000), ('[a]/'):rep(16000) }) do
      for _, prefix in ipairs({ '', '/', project.root .. '/', 'file://' .. project.root .. '/' }) do
        t.matches('longer than 4096 bytes', call('file_read', { path = prefix .. path }))
      end
      t.matches('is not a valid path', call('analyze_module', { path = path }, 'prompt'))
      local ref = { type = 'prompt', name = 'analyze_module' }
      call('completion', { ref = ref, argument = { name = 'path', value = path } }, 'completion')
    end
    for _, part in ipairs({ 'a/', 'a/../', './', '[a]/', '../', 'sub/../', '..' }) do
      vim.fn.mkdir(project.root .. '/sub', 'p')
      local path = part:rep(math.floor((4090 - #project.root) / #part))
      call('file_read', { path = project.root .. '/' .. path .. '/x' })
    end
  end)

  it('that is relative to a deleted directory is denied with the reason', function()
    local folder = project.root .. '/gone'
    vim.fn.mkdir(folder)
    vim.cmd.cd(folder)
    vim.fn.delete(folder, 'd')
    local message = call('file_read', { path = 'a.lua' })
    vim.cmd.cd('/')
    t.matches('a working directory that no longer exists', message)
    t.ok(not message:find('the decision failed', 1, true))
  end)
end)

it('too many paths are not judged', function()
  local many = t.lines(300000, '/p/%d')
  require('mcp-tools').register({
    name = 'many',
    description = 'takes anything',
    execute = t.answers(''),
    annotations = { read_only = true },
  })
  for _, args in ipairs({
    { paths = many },
    { edits = { { files = many } } },
    { uris = vim.list_slice(many, 1, 100000) },
  }) do
    t.matches('more than 128, too many to check', (call('many', args)))
    t.fast(targets.by, args)
  end
  t.eq('', (call('many', { paths = vim.fn['repeat']({ project.root .. '/a' }, 1000) })))
end)

describe('paths that are costly to judge', function()
  --- The targets, found in little time.
  local function judged(list) return (t.fast(targets.by, { paths = list })) end

  it('are judged in little time, even if there are many', function()
    vim.fn.mkdir(project.root .. '/*')
    local parts = { '.1', 'b/', 'a/../', '$a', '$a$b$c', '*/../', '{', ' (', '.~1~', '.bak', '%25', './', '[a]' }
    for _, part in ipairs(parts) do
      for _, size in ipairs({ 4000, 1000, 250, 120 }) do
        for _, ending in ipairs({ '', '/x' }) do
          judged(t.list(120, function(i) return part:rep(math.floor(size / #part)) .. i .. ending end))
        end
      end
    end
  end)

  it('are too many when they are too long together', function()
    local list = t.list(10, function(i) return ('/p'):rep(2000) .. i end)
    t.matches('more than 32768 bytes, too many to check', judged(list)[1].bad)
    t.eq(true, judged(list)[1].sensitive)
    for i = 1, 120 do
      list[i] = ('%s/%099d'):format(project.root, i)
    end
    t.eq({ 120, nil }, { #judged(list), judged(list)[1].bad })
  end)

  it('are not checked when no file can exist there', function()
    t.matches('a name that is longer than 765 bytes', select(2, paths.resolve('/' .. ('x'):rep(766))))
    t.matches('more than 255 parts', select(2, paths.resolve(('/a'):rep(256))))
    t.eq(('/a'):rep(255), (paths.resolve(('/a'):rep(255))))
  end)

  it('are unclear when they name many possible patterns or variables', function()
    vim.fn.mkdir(project.root .. '/[a]/b', 'p')
    local function unclear(path) return targets.by({ path = project.root .. path })[1].unclear end
    t.eq({ nil, nil }, { unclear('/[a]'), unclear(('/[a]/..'):rep(17)) })
    t.eq({ nil, true }, { unclear('/[a]/new'), unclear(('/[a]/..'):rep(17) .. '/new') })
    t.eq({ true, nil }, { unclear('/[a]/[b]'), unclear('/$none_such') })
    t.eq({ true, nil }, { unclear('/$HOME'), unclear(('/$none_such'):rep(20)) })
    local many = t.lines(17, '$none_such_%d')
    t.eq(true, unclear('/' .. table.concat(many)))
  end)
end)

describe('a project', function()
  it('is neither the root of the file system nor the home directory', function()
    local home = vim.env.HOME
    vim.env.HOME = project.base
    project.write(project.base .. '/.profile', 'hidden')
    project.write('a.lua', 'x')
    for _, root in ipairs({ '/', project.base, vim.fs.dirname(project.base) }) do
      t.eq({ root, false }, { root, paths.is_project(root) })
      t.eq({ root, false }, { root, paths.inside('/etc/hostname', root) })
      t.eq({ root, false }, { root, paths.inside(project.base .. '/.profile', root) })
      t.eq({ root, false }, { root, paths.inside(root, root) })
    end
    t.eq({ true, true }, { paths.is_project(project.root), paths.inside(project.root .. '/a.lua', project.root) })

    vim.cmd.cd(project.base)
    t.eq(project.base, require('mcp-tools.instances.project').root())
    for _, path in ipairs({ project.base .. '/.profile', '.profile', '/etc/hostname' }) do
      t.matches('asked: .* is outside the project', (call('file_read', { path = path })))
      t.eq('Resource not found', (call('file://' .. vim.fs.joinpath(project.base, path), nil, 'resource')))
    end
    vim.cmd.edit(project.base .. '/.profile')
    t.eq('outside the project', project.data('nvim://cursor').cursor.withheld)
    t.ok(project.run('prompt', 'review_changes').error)
    t.ok(project.run('prompt', 'search_code', { query = 'hidden' }).error)
    vim.env.HOME = home
  end)

  it('keeps its path when its directory becomes a link later', function()
    local one, two = project.base .. '/one', project.base .. '/two'
    vim.fn.mkdir(one)
    vim.fn.mkdir(two)
    t.eq({ one, two }, { paths.real_root(one), paths.real_root(two) })
    vim.fn.delete(one, 'd')
    vim.uv.fs_symlink('/etc', one)
    t.eq({ two, one }, { paths.real_root(two), (paths.real_root(one)) })
    t.eq(false, paths.inside(paths.resolve(one .. '/hostname'), one))
  end)
end)

describe('the targets of a call', function()
  --- The number of system calls for paths while `fn` runs.
  local function looks(fn)
    local count, before = 0, {}
    for _, name in ipairs({ 'fs_readlink', 'fs_lstat' }) do
      before[name] = vim.uv[name]
      rawset(vim.uv, name, function(...)
        count = count + 1
        return before[name](...)
      end)
    end
    local ok, result = pcall(fn)
    for name, original in pairs(before) do
      rawset(vim.uv, name, original)
    end
    assert(ok, result)
    return count, result
  end

  it('are checked once for many files in the same directories', function()
    local deep = project.root .. '/' .. ('d/'):rep(20)
    vim.fn.mkdir(deep, 'p')
    local list = t.list(60, function(i) return deep .. i end)
    local count, places = looks(function() return targets.by({ paths = list }) end)
    t.eq({ 60, nil }, { #places, places[1].bad })
    t.ok(count < 200, count .. ' looks')
  end)

  it('are not checked beyond a number of path components', function()
    local list = t.list(100, function(i) return project.root .. ('/.'):rep(100) .. '/' .. i end)
    local bad = vim.tbl_filter(function(place) return place.bad ~= nil end, targets.by({ paths = list }))
    t.ok(#bad > 0)
    t.matches('too many path components', bad[1].bad)
    t.eq(true, bad[1].sensitive)
  end)

  it('are judged once if a name is repeated', function()
    local list = t.list(1000, function(i) return { ['none/such'] = i } end)
    t.eq(1, (looks(function() return targets.by({ list = list }) end)))
  end)
end)
