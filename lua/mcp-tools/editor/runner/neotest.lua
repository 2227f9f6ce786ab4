--- Runs tests with neotest. The only file that uses its module.
---
--- neotest passes its client only to consumers listed in its setup. To need no configuration, the client is taken from
--- the upvalues of the consumer `run`. Used API, which tests replace: `neotest.run.get_tree_from_args`, a closure over
--- `client`; the client's `get_adapters`, `get_position`, `get_nearest`, `run_tree`, `get_results`, `stop`; a tree's
--- `iter`; `nio.run`.

local optional = require('mcp-tools.util.optional')
local paths = require('mcp-tools.files.paths')
local suggest = require('mcp-tools.util.suggest')

local M = {}

--- Error if there is nothing to run.
local UNKNOWN = 'neotest finds no test there; give runner=pytest, npm:<script> or make:<target>'

--- Lua's maximum number of upvalues.
local MAX_UPVALUES = 60

--- Returns neotest's client, or nil if neotest is not installed or not set up.
---@return table?
function M.client()
  local neotest = optional.load('neotest')
  local run = type(neotest) == 'table' and neotest.run
  local fn = type(run) == 'table' and run.get_tree_from_args
  for i = 1, type(fn) == 'function' and MAX_UPVALUES or 0 do
    local name, value = debug.getupvalue(fn, i)
    if name == 'client' then
      return type(value) == 'table' and value or nil
    end
  end
end

--- Returns the name in an id.
---@param id string
---@return string
local function last_part(id)
  return id:match('^.*:(.*)$') or id
end

---@class mcp-tools.neotest.Tree
---@field iter fun(self): fun(): integer, table

--- Returns the trees of a target. Runs in a nio task.
---@param client table
---@param target mcp-tools.runner.Target
---@return { tree: mcp-tools.neotest.Tree, adapter: string }[]
---@return { name: string, near: string[] }? unknown
local function trees(client, target)
  local list, ids, updated = {}, {}, {}
  --- Reads a file's tests again: it may have changed on disk.
  local function update(path)
    local _, adapter = client:get_position(path, {})
    if adapter and not updated[path] and type(client._update_positions) == 'function' then
      updated[path] = true
      client:_update_positions(path, { adapter = adapter })
    end
  end
  local function add(tree, adapter)
    if tree and adapter then
      table.insert(list, { tree = tree, adapter = adapter })
    end
  end
  --- Adds the positions that match.
  local function add_each(matches)
    for _, adapter in ipairs(client:get_adapters()) do
      local tree, results = client:get_position(nil, { adapter = adapter }), client:get_results(adapter)
      if tree then
        for _, position in tree:iter() do
          local is_inside = not target.path or vim.startswith((position.path or '') .. '/', target.path .. '/')
          if is_inside and matches(position, results[position.id] or {}) then
            update(position.path)
            add(client:get_position(position.id, { adapter = adapter }), adapter)
          end
        end
      end
    end
  end
  if target.path then
    update(target.path)
  end
  if target.line then
    add(client:get_nearest(target.path, target.line - 1, {}))
  elseif target.last_failed then
    add_each(function(position, result)
      return position.type == 'test' and result.status == 'failed'
    end)
  elseif target.tests then
    for _, name in ipairs(target.tests) do
      local count = #list
      update(name:match('^(.-)::') or name)
      add_each(function(position)
        table.insert(ids, position.type == 'test' and position.id or nil)
        return position.id == name or position.name == name or vim.endswith(position.id, '::' .. name)
      end)
      if #list == count then
        local near = suggest(name, vim.tbl_map(last_part, ids))
        local similar = vim.iter(ids):find(function(id)
          return last_part(id) == near
        end)
        return {}, { name = name, near = { similar } }
      end
    end
  elseif target.path then
    add(client:get_position(target.path, {}))
  else
    for _, adapter in ipairs(client:get_adapters()) do
      add(client:get_position(nil, { adapter = adapter }), adapter)
    end
  end
  return list
end

--- Adds the results of a tree's tests.
---@param results mcp-tools.runner.Results
---@param tree mcp-tools.neotest.Tree
---@param of table<string, table> by id
local function collect(results, tree, of)
  for _, position in tree:iter() do
    local result = of[position.id]
    if position.type == 'test' and result and results[result.status] then
      results[result.status] = results[result.status] + 1
      results.total = results.total + 1
      if result.status == 'failed' then
        local found = result.errors and result.errors[1] or {}
        table.insert(results.failures, {
          id = position.id,
          kind = 'failed',
          path = position.path and paths.resolve(position.path),
          line = found.line and found.line + 1 or position.range and position.range[1] + 1 or nil,
          message = found.message or result.short or 'failed',
          detail = found.message and result.short or nil,
        })
      end
    end
  end
end

--- Runs tests. `cb` is called once, on the main loop.
---@param client table
---@param target mcp-tools.runner.Target
---@param cb fun(results: mcp-tools.runner.Results?, fault: string?)
---@return fun() stop
function M.run(client, target, cb)
  local nio = assert(optional.load('nio'))
  local results = { passed = 0, failed = 0, errors = 0, skipped = 0, total = 0, failures = {} }
  local current, stopped, fault
  local function stop()
    stopped = true
    if current then
      nio.run(function()
        client:stop(current.tree, { adapter = current.adapter })
      end, function() end)
    end
  end
  nio.run(function()
    local list, unknown = trees(client, target)
    results.unknown = unknown
    if #list == 0 and not unknown and not target.last_failed then
      fault = UNKNOWN
    end
    for _, entry in ipairs(list) do
      if stopped then
        break
      end
      current = entry
      client:run_tree(entry.tree, { adapter = entry.adapter, extra_args = #target.extra > 0 and target.extra or nil })
      collect(results, entry.tree, client:get_results(entry.adapter))
    end
    current = nil
  end, function(ok, err)
    vim.schedule(function()
      fault = fault or not ok and tostring(err) or nil
      cb(not fault and results or nil, fault)
    end)
  end)
  return stop
end

return M
