--- `:McpTools welcome`: leads to the first call by an assistant, step by step.

local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.layout.scratch')
local steps = require('mcp-tools.command._welcome_steps')
local timer = require('mcp-tools.util.timer')
local trim = require('mcp-tools.util.trim')

local api = vim.api

local REFRESH = 250 -- ms
--- As far as the text of a step.
local INDENT = (' '):rep(17)
local MARKS = { done = '✓', todo = '·', busy = '…', waits = ' ', fault = '✗' }
--- Who calls without being an assistant: this editor, and the command of the try.
local OURS = { nvim = true, cli = true, ['mcp-tools'] = true }

local refresh ---@type mcp-tools.Timer? while the window is open
local facts = {} ---@type mcp-tools.WelcomeFacts
local step_of = {} ---@type table<integer, integer> line → step

--- The step that is next: the first that is not done and can be.
---@param list mcp-tools.WelcomeStep[]
---@return integer?
local function next_of(list)
  for i, step in ipairs(list) do
    if step.state == 'busy' then
      return nil
    elseif step.state == 'todo' or step.state == 'fault' then
      return i
    end
  end
end

---@return string[]
local function lines_now()
  local list = steps.look(facts)
  local now, lines = next_of(list), { 'From here to the first call by an assistant:', '' }
  step_of = {}
  for i, step in ipairs(list) do
    local mark = i == now and step.state == 'todo' and '→' or MARKS[step.state]
    table.insert(lines, ('  %s %d %-9s  %s'):format(mark, i, step.title, sanitize.line(step.text)))
    step_of[#lines] = i
    for _, text in ipairs({ step.more or '', i == now and step.hint or '' }) do
      if text ~= '' then
        table.insert(lines, INDENT .. sanitize.line(text))
        step_of[#lines] = i
      end
    end
    if step.title == 'Client' and facts.proposal then
      local ask = 'y writes this for %s, n leaves it:'
      table.insert(lines, INDENT .. ask:format(facts.proposal.client.title))
      for _, line in ipairs(sanitize.lines(trim(facts.proposal.diff))) do
        table.insert(lines, INDENT .. line)
      end
    end
  end
  vim.list_extend(lines, { '', '  Any time: :McpTools status, :checkhealth mcp-tools, :h mcp-tools-errors' })
  return lines
end

local function act()
  local list = steps.look(facts)
  local chosen = list[step_of[api.nvim_win_get_cursor(0)[1]]]
  if not (chosen and chosen.act and chosen.state ~= 'done') then
    chosen = list[next_of(list)]
  end
  if chosen and chosen.act then
    chosen.act()
  end
end

--- Notes who calls while the window is open.
---@return integer group of the autocommand; there is one, however often the window is asked for
local function watch()
  local group = api.nvim_create_augroup('mcp-tools.welcome', {})
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'McpToolsStatus',
    desc = 'mcp-tools: the first call by an assistant is waited for',
    callback = function(args)
      local data = args.data.done or args.data
      if data.client and not OURS[data.client] then
        facts.caller = ('%s has called %s: you are there'):format(data.client, data.tool or 'a tool')
      end
    end,
  })
  return group
end

--- The steps are in view again, once what is to be written is no longer shown.
local function to_top()
  vim.fn.winrestview({ topline = 1, lnum = 1, col = 0 })
end

local function say_nothing_asked()
  api.nvim_echo({ { 'nothing is to be written now: <CR> does what is next' } }, false, {})
end

local function agree()
  if not facts.proposal then
    say_nothing_asked()
  elseif not scratch.reveal() then
    steps.agree(facts)
    to_top()
  end
end

local function leave()
  if not facts.proposal then
    return say_nothing_asked()
  end
  facts.proposal = nil
  to_top()
end

---@type mcp-tools.ScratchKey[]
local KEYS = {
  {
    lhs = '<CR>',
    word = 'does what is next',
    description = 'do the step under the cursor, or what is next',
    run = act,
  },
  { lhs = 'y', description = 'write what is shown', run = agree },
  { lhs = 'n', description = 'leave it', run = leave },
}

---@type mcp-tools.Subcommand
return {
  description = 'lead to the first call by an assistant: options, Python, bridge and client are checked, `<CR>` does'
    .. ' what is missing, and a call is tried',
  run = function()
    local was_tried = facts.test and facts.test.state == 'done'
    facts = { test = was_tried and facts.test or nil, caller = facts.caller }
    if refresh then
      refresh:stop()
    end
    local buffer = scratch.show('welcome', lines_now(), { keys = KEYS })
    vim.wo[0][0].breakindentopt = ('column:%d'):format(#INDENT + 4) -- what goes on stands below the text of its step
    local watcher = watch()
    refresh = timer.every(REFRESH, function()
      if not scratch.update(buffer, lines_now()) then
        refresh:stop()
        pcall(api.nvim_del_augroup_by_id, watcher)
      end
    end)
  end,
}
