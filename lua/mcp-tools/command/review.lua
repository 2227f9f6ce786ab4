--- `:McpTools review`: what agents propose, hunk by hunk.

local approval = require('mcp-tools.ui.approval')
local core = require('mcp-tools.core')
local notify = require('mcp-tools.notify')
local queue = require('mcp-tools.editor.review')
local sanitize = require('mcp-tools.util.sanitize')
local ui = require('mcp-tools.ui.review')

--- Which of those that wait comes first.
local function choose()
  vim.ui.select(queue.list(), {
    prompt = ('%d wait for review'):format(queue.count()),
    format_item = function(review)
      local who, left = review.client.name or 'an agent', review:undecided()
      return sanitize.line(('%s: %s (%d hunk%s left)'):format(who, review.title, left, left == 1 and '' or 's'))
    end,
  }, function(review)
    if review then
      queue.first(review)
      ui.enter()
    end
  end)
end

local ACTIONS = {
  accept = ui.yes,
  reject = ui.no,
  reason = ui.no_because,
  edit = ui.edit,
  undo = ui.undo,
  all = ui.all,
  none = ui.none,
  next = ui.next,
  previous = ui.previous,
  later = ui.later,
  list = choose,
}

local NAMES = { 'accept', 'reject', 'reason', 'edit', 'undo', 'all', 'none', 'next', 'previous', 'later', 'list' }

---@type mcp-tools.Subcommand
return {
  usage = '[WORD]',
  description = 'go to what an agent proposes, also where it waits in a question for approval; or decide on the hunk at'
    .. ' the cursor, else on the marked one (|mcp-tools-review| lists the words); `list` chooses one of several',
  run = function(rest)
    core.get() -- says who shows reviews
    local action = rest == '' and ui.enter or ACTIONS[rest]
    if not action then
      return notify.error((':McpTools review has no word %s'):format(rest), 'See :h mcp-tools-review')
    elseif queue.count() == 0 then
      local question = approval.current()
      if rest ~= '' or not question or not vim.list_contains(question.choices, 'review') then
        return notify.info('nothing waits for review')
      end
      local ok, why = approval.answer_current('review')
      if not ok and why then
        notify.warn(why)
      end
      return
    end
    action()
    if rest == '' and queue.count() > 1 then
      notify.info(('%d more waiting (:McpTools review list)'):format(queue.count() - 1))
    end
  end,
  complete = function()
    return NAMES
  end,
}
