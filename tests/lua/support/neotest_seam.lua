-- neotest, or as much of it as our side needs, over real processes: files `*.check` with a test in each line, as
-- `name: command for the shell`.

local M = {}

---@param path string
---@return table[] positions of the file and its tests
local function positions(path)
  local lines = vim.split(table.concat(vim.fn.readfile(path), '\n'), '\n')
  local list = { { id = path, type = 'file', name = vim.fs.basename(path), path = path, range = { 0, 0, #lines, 0 } } }
  for number, line in ipairs(lines) do
    local name, command = line:match('^(%w+): (.*)$')
    if name then
      table.insert(list, {
        id = path .. '::' .. name,
        type = 'test',
        name = name,
        path = path,
        range = { number - 1, 0, number - 1, #line },
        command = command,
      })
    end
  end
  return list
end

---@param list table[]
---@return string
local function script_of(list)
  local lines = {}
  for _, position in ipairs(list) do
    if position.type == 'test' then
      table.insert(lines, ('( %s ); echo "%s $?"'):format(position.command, position.id))
    end
  end
  return table.concat(lines, '\n')
end

---@param output string
---@param list table[]
---@return table<string, table>
local function results_of(output, list)
  local results = {}
  for _, position in ipairs(list) do
    local code = output:match(vim.pesc(position.id) .. ' (%d+)')
    if position.type == 'test' and code then
      results[position.id] = code == '0' and { status = 'passed' }
        or { status = 'failed', short = 'it ended', errors = { { message = 'ended with ' .. code } } }
    end
  end
  return results
end

local function files(root) return vim.fn.glob(root .. '/**/*.check', true, true) end

--- The second implementation: no more than our side asks of it.
---@param root string
function M.double(root)
  local client, results, running = {}, {}, nil
  local function tree_of(list)
    if list[1] then
      return { iter = function() return ipairs(list) end, list = list }, 'check'
    end
  end
  local function find(id)
    local path = id:match('^(.-)::') or id
    local is_there = path:find('%.check$') and vim.uv.fs_stat(path)
    return vim.tbl_filter(
      function(position) return path == id or position.id == id end,
      is_there and positions(path) or {}
    )
  end
  function client.get_adapters() return { 'check' } end
  function client.get_position(_, id)
    return tree_of(id and find(id) or vim.iter(files(root)):map(positions):flatten():totable())
  end
  function client.get_nearest(_, path, row)
    return tree_of({ vim.iter(find(path)):rfind(function(position) return position.range[1] <= row end) })
  end
  function client.run_tree(_, tree)
    local done = coroutine.yield(
      function(step)
        running = vim.system({ 'sh', '-c', script_of(tree.list) }, { detach = true }, vim.schedule_wrap(step))
      end
    )
    results = vim.tbl_extend('force', results, results_of(done.stdout, tree.list))
  end
  function client.get_results() return results end
  function client.stop() vim.uv.kill(-running.pid, 'sigkill') end
  local function get_tree_from_args() return client end
  local function run(fn, cb)
    local co = coroutine.create(fn)
    local function step(...)
      local ok, value = coroutine.resume(co, ...)
      if not ok or coroutine.status(co) == 'dead' then
        return cb(ok, value)
      end
      value(step)
    end
    step()
  end
  package.loaded.neotest, package.loaded.nio = { run = { get_tree_from_args = get_tree_from_args } }, { run = run }
end

--- The real one, with an adapter for such files.
---@param checkouts string of neotest, nvim-nio and plenary.nvim, with colons between
---@param root string
function M.real(checkouts, root)
  for path in checkouts:gmatch('[^:]+') do
    vim.opt.runtimepath:append(path)
  end
  local nio, lib = require('nio'), require('neotest.lib')
  local adapter = { name = 'check' }
  function adapter.root(dir) return vim.startswith(dir, root) and root or nil end
  function adapter.is_test_file(path) return vim.endswith(path, '.check') end
  function adapter.filter_dir() return true end
  function adapter.discover_positions(path)
    nio.scheduler()
    return lib.positions.parse_tree(positions(path), {})
  end
  local function list_of(tree)
    local list = {}
    for _, position in tree:iter() do
      table.insert(list, position)
    end
    return list
  end
  function adapter.build_spec(args) return { command = { 'sh', '-c', script_of(list_of(args.tree)) } } end
  function adapter.results(_, result, tree)
    nio.scheduler()
    return results_of(table.concat(vim.fn.readfile(result.output), '\n'), list_of(tree))
  end
  require('neotest').setup({ adapters = { adapter }, log_level = vim.log.levels.OFF })
end

function M.forget()
  for name in pairs(package.loaded) do
    if name:find('^neotest') or name == 'nio' or name:find('^nio%.') then
      package.loaded[name] = nil
    end
  end
end

return M
