--- Lists of work that outlives the call that started it (jobs, test runs): its owner can find it, wait for it, and read
--- it for a while after its end.

local errors = require('mcp-tools.errors')
local sessions = require('mcp-tools.util.session')
local timer = require('mcp-tools.util.timer')

local M = {}

---@class mcp-tools.process.Work
---@field id string
---@field owner mcp-tools.Owner
---@field is_over boolean
---@field listeners table<fun(), true>

--- Argument of tools that wait for work.
M.WAIT =
  { type = 'integer', description = 'Time to wait for news or the end, ms', default = 0, minimum = 0, maximum = 120000 }

--- Calls the listeners of a piece of work.
---@param work mcp-tools.process.Work
function M.notify(work)
  for listener in pairs(vim.tbl_extend('force', {}, work.listeners)) do
    listener()
  end
end

--- Calls `cb` once: at the next `notify`, after a timeout, or immediately if the work is over.
---@param work mcp-tools.process.Work
---@param ms integer? default: no timeout
---@param cb fun()
---@return fun() stop
local function on_notify(work, ms, cb)
  local limit, finish
  local function stop()
    work.listeners[finish] = nil
    if limit then
      limit:stop()
    end
  end
  function finish()
    stop()
    cb()
  end
  if work.is_over or ms == 0 then
    cb()
    return function() end
  end
  limit = ms and timer.after(ms, finish)
  work.listeners[finish] = true
  return stop
end

--- Waits for the next `notify`. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param work mcp-tools.process.Work
---@param ms integer?
function M.await(ctx, work, ms)
  ctx:await(function(done)
    ctx:on_cancel(on_notify(work, ms, done))
  end)
end

--- Creates a bounded list of work of one kind.
---@param opts { prefix: string, max_running: integer, max_ended: integer, busy: string }
function M.new(opts)
  ---@type mcp-tools.process.Work[] oldest first
  local all, count, list = {}, 0, {}

  local function running()
    return #vim.tbl_filter(function(work)
      return not work.is_over
    end, all)
  end

  --- Returns why no work can be started now.
  ---@return mcp-tools.Error?
  function list.refusal()
    return running() >= opts.max_running and errors.new('busy', opts.busy:format(opts.max_running)) or nil
  end

  --- Adds starting work.
  ---@param work table
  ---@param owner mcp-tools.Owner
  ---@return mcp-tools.Error? err
  function list.add(work, owner)
    local err = list.refusal()
    if err then
      return err
    end
    count = count + 1
    work.id, work.owner, work.is_over, work.listeners = opts.prefix .. count, owner, false, {}
    table.insert(all, work)
  end

  --- Marks work as over. The oldest finished work is dropped.
  ---@param work mcp-tools.process.Work
  function list.finish(work)
    work.is_over = true
    M.notify(work)
    local left = #all - running() - opts.max_ended
    all = vim.tbl_filter(function(each)
      local is_kept = not each.is_over or left <= 0
      left = left - (is_kept and 0 or 1)
      return is_kept
    end, all)
  end

  --- Returns all work, oldest first.
  ---@return any[]
  function list.all()
    return vim.list_slice(all)
  end

  --- Returns the work that a call may see, oldest first: of its session and of clients with the same name.
  ---@param call table a call or its ctx
  ---@return any[]
  function list.of(call)
    return vim.tbl_filter(function(work)
      return sessions.is_related(work.owner, call)
    end, all)
  end

  --- Returns one of them by id.
  ---@param call table a call or its ctx
  ---@param id string?
  ---@return any?
  function list.get(call, id)
    return vim.iter(list.of(call)):find(function(work)
      return work.id == id
    end)
  end

  --- Returns why a call needs approval to read or end work.
  ---@param call table a call or its ctx
  ---@param id string?
  ---@return string|false
  function list.reason(call, id)
    local work = list.get(call, id)
    local is_own = not work or sessions.is_own(work.owner, call)
    return not is_own and ('another session has started this %s'):format(opts.prefix)
  end

  return list
end

return M
