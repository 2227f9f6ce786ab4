--- Lists of work that outlives the call that started it (jobs, test runs): its owner can find it, wait for it, and read
--- it for a while after its end.

local await_until = require('mcp-tools.util.deadline').await_until
local errors = require('mcp-tools.errors')
local sessions = require('mcp-tools.util.session')

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

--- Waits for the next `notify` or the end of the work.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param work mcp-tools.process.Work
---@param ms integer
function M.await(ctx, work, ms)
  local has_news = work.is_over
  await_until(ctx, ms, function(check)
    local function listener()
      has_news = true
      check()
    end
    work.listeners[listener] = true
    return function()
      work.listeners[listener] = nil
    end
  end, function()
    return has_news
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
