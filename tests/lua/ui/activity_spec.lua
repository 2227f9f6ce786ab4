-- slow, every Neovim
local activity = require('mcp-tools.ui.activity')
local core = require('mcp-tools.core')
local current = require('mcp-tools.bridge.current')
local reviews = require('mcp-tools.editor.review')
local t = require('helpers')
local tools = require('mcp-tools')

local group = vim.api.nvim_create_augroup('spec.activity', {})

--- The data of all events from now on.
---@return mcp-tools.Activity[]
local function events()
  local list = {}
  vim.api.nvim_clear_autocmds({ group = group })
  vim.api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'McpToolsStatus',
    callback = function(args) table.insert(list, args.data) end,
  })
  return list
end

---@param list mcp-tools.Activity[]
---@return string[]
local function states(list) return t.field('state', list) end

---@param list mcp-tools.Activity[]
---@param state string
---@return mcp-tools.Activity
local function wait_for(list, state)
  return t.wait(function()
    return vim.iter(list):find(function(each) return each.state == state end)
  end, 4000, 'the event ' .. state)
end

local finish ---@type fun(result: any, err: any)?

describe('activity', function()
  before_each(function()
    core.get()
    local slow = { name = 'slow_one', description = 'Waits.', annotations = { read_only = true } }
    function slow.execute(ctx)
      ctx:progress(2, 5, 'at it')
      finish = ctx
    end
    local quick = { name = 'quick_one', description = 'Answers.', annotations = { read_only = true } }
    function quick.execute(ctx, args)
      if args.fail then
        return ctx:fail('no')
      end
      ctx('yes')
    end
    tools.register(slow)
    tools.register(quick)
    t.wait(function() return vim.g.mcp_tools_status == '' end, 3000, 'quiet')
  end)

  after_each(function()
    vim.api.nvim_clear_autocmds({ group = group })
    core.get().executor:cancel_where(t.returns(true), 'user')
    local function is_idle() return not vim.list_contains({ 'working', 'waiting' }, activity.get().state) end
    t.wait(is_idle, 3000, 'the end of the work')
    core.get().registry:clear('tools')
  end)

  it('reports that a call runs, its progress, and what was done', function()
    local heard = events()
    t.eq('', tools.statusline())
    tools.call('slow_one', {}, function() end)
    t.eq('slow_one 40%%', tools.statusline())
    local working = wait_for(heard, 'working')
    t.eq({ 1, 'slow_one', 40, 'nvim' }, { working.calls, working.tool, working.percent, working.client })
    t.eq('slow_one 40%', vim.g.mcp_tools_status)
    finish('done')
    local done = wait_for(heard, 'done')
    t.eq({ 1, 0 }, { done.done.calls, done.done.failed })
    t.eq({ '', '', 'off' }, { vim.g.mcp_tools_status, tools.statusline(), tools.activity().state })
  end)

  it('triggers two or three events for five hundred calls', function()
    local heard = events()
    for i = 1, 500 do
      tools.call('quick_one', { fail = i % 5 == 0 }, function() end)
    end
    local done = wait_for(heard, 'done')
    t.eq({ 500, 100 }, { done.done.calls, done.done.failed })
    t.ok(#heard <= 3, table.concat(states(heard), ' '))
  end)

  it('counts further calls, but not reads of resources', function()
    tools.call('slow_one', {}, function() end)
    tools.call('slow_one', {}, function() end)
    t.eq('slow_one 40%% +1', tools.statusline())
    local kind = require('mcp-tools.calls.kinds').resource
    local executor = require('mcp-tools.core').get().executor
    executor:notify_watchers({ kind = kind, client = { name = 'spec' }, created_at = 0 })
    t.eq(2, tools.activity().calls)
  end)

  it('shows what waits for the user first, also without a call', function()
    local heard = events()
    tools.call('slow_one', {}, function() end)
    wait_for(heard, 'working')
    local asked = reviews.open({
      client = { name = 'somebody' },
      key = 'spec',
      title = 'a change',
      files = { { path = vim.fn.tempname(), text = 'new\n', base = 'old\n' } },
      on_end = function() end,
    })
    local waiting = wait_for(heard, 'waiting')
    t.eq({ '1 review', '1 review' }, { waiting.text, tools.statusline() })
    t.eq({ approvals = 0, interviews = 0, reviews = 1 }, waiting.waiting)
    heard = events()
    asked.close('enough')
    wait_for(heard, 'working')
    t.eq('slow_one 40%%', tools.statusline())
  end)

  it('reports each connection and disconnection of a client once', function()
    local heard = events()
    current.reported.sessions = { count = 1, calls = 0, clients = { { name = 'claude-code' } } }
    current.changed()
    current.changed()
    t.eq({ 'claude-code' }, wait_for(heard, 'connected').clients)
    current.reported.sessions = nil
    current.changed()
    wait_for(heard, 'off')
    t.eq({ 'connected', 'off' }, states(heard))
  end)

  it('returns a copy', function()
    local heard = events()
    tools.call('slow_one', {}, function() end)
    wait_for(heard, 'working').waiting.approvals = 7
    t.eq(0, tools.activity().waiting.approvals)
  end)
end)
