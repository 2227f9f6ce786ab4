-- neotest, or as much of it as our side needs, over real processes: files `*.check` with a test in each line, as
-- `name: command for the shell`.

local M = {}

---@param path string
---@return table[] positions of the file and its tests
local function positions(path)
  local lines = vim.split(table.concat(vim.fn.readfile(path), '\n'), '\n')
  local list = {
    { id = path, type = 'file', name = vim.fs.basename(path), path = path, range = { 0, 0, #lines, 0 } },
  }
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

local function files(root)
  return vim.fn.glob(root .. '/**/*.check', true, true)
end

--- The second implementation: no more than our side asks of it.
---@param root string
function M.double(root)
  local client, results, running = {}, {}, nil
  local function tree_of(list)
    return {
      data = function()
        return list[1]
      end,
      iter = function()
        return ipairs(list)
      end,
      list = list,
    }
  end
  local function find(id)
    local path = id:match('^(.-)::') or id
    if not path:find('%.check$') or not vim.uv.fs_stat(path) then
      return nil
    end
    local all = positions(path)
    return path == id and all or vim.tbl_filter(function(position)
      return position.id == id
    end, all)
  end
  function client.get_adapters()
    return { 'check' }
  end
  function client.get_position(_, id)
    local list = {}
    if id then
      list = find(id)
    else
      for _, path in ipairs(files(root)) do
        vim.list_extend(list, positions(path))
      end
    end
    if list and list[1] then
      return tree_of(list), 'check'
    end
  end
  function client.get_nearest(_, path, row)
    local best
    for _, position in ipairs(find(path) or {}) do
      best = position.range[1] <= row and position or best
    end
    return best and tree_of({ best }), 'check'
  end
  function client.run_tree(_, tree)
    local done = coroutine.yield(function(step)
      running = vim.system({ 'sh', '-c', script_of(tree.list) }, { detach = true }, vim.schedule_wrap(step))
    end)
    results = vim.tbl_extend('force', results, results_of(done.stdout, tree.list))
  end
  function client.get_results()
    return results
  end
  function client.stop()
    vim.uv.kill(-running.pid, 'sigkill')
  end
  package.loaded.neotest = {
    run = {
      get_tree_from_args = function()
        return client
      end,
    },
  }
  package.loaded.nio = {
    run = function(fn, cb)
      local co = coroutine.create(fn)
      local function step(...)
        local ok, value = coroutine.resume(co, ...)
        if not ok or coroutine.status(co) == 'dead' then
          return cb(ok, value)
        end
        value(step)
      end
      step()
    end,
  }
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
  function adapter.root(dir)
    return vim.startswith(dir, root) and root or nil
  end
  function adapter.is_test_file(path)
    return vim.endswith(path, '.check')
  end
  function adapter.filter_dir()
    return true
  end
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
  function adapter.build_spec(args)
    return { command = { 'sh', '-c', script_of(list_of(args.tree)) } }
  end
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
