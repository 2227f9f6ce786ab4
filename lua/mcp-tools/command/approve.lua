--- `:McpTools approve`: allows the call that waits for approval.

local approval = require('mcp-tools.ui.approval')
local canonical_json = require('mcp-tools.util.canonical_json')
local core = require('mcp-tools.core')
local notify = require('mcp-tools.notify')
local reviews = require('mcp-tools.editor.review')
local sanitize = require('mcp-tools.util.sanitize')

local CHOICES = { 'once', 'review', 'session', 'always' }

---@param item mcp-tools.Unanswered
---@param choice string
local function grant(item, choice)
  local gateway = core.get().gateway
  if not vim.list_contains(item.choices, choice) then
    return notify.error(('this question cannot be answered by "%s"'):format(choice))
  elseif choice == 'once' then
    item.granted = true
    return notify.info(('%s may run when it is tried again with the same arguments'):format(item.tool))
  end
  -- As when it is answered in time: a yes to a question about files is for these files.
  local ok, err = gateway:allow_always(item.project, item.definition, item.files, item.key)
  if not ok then
    return notify.error(err)
  end
  gateway.grants.unanswered = vim.tbl_filter(function(other)
    return other ~= item
  end, gateway.grants.unanswered)
  local how = item.key and ' with the same arguments' or item.files and ' with these files' or ''
  notify.info(('%s may run from now on%s'):format(item.tool, how))
end

--- Nothing is being asked: what nobody answered before may run at its next try.
---@param choice string
local function approve_missed(choice)
  local missed = vim.tbl_filter(function(item)
    return not item.granted
  end, core.get().gateway.grants.unanswered)
  if #missed == 0 then
    notify.info('there is no open question')
  elseif choice == 'session' or choice == 'review' then
    notify.error('that question is over: only once or always')
  elseif #missed == 1 then
    grant(missed[1], choice)
  else
    vim.ui.select(missed, {
      prompt = 'Which of these may run when it is tried again?',
      format_item = function(item)
        return sanitize.line(('%s %s'):format(item.tool, canonical_json.head(item.args, 60)))
      end,
    }, function(item)
      if item then
        grant(item, choice)
      end
    end)
  end
end

---@type mcp-tools.Subcommand
return {
  usage = '[once | review | session | always | look]',
  description = 'allow the call that waits for approval, or its next attempt if nobody answered in time; without an'
    .. ' open question accept what is on the screen of a review; `look` goes to the window of the question',
  run = function(rest)
    local choice = rest == '' and 'once' or rest
    if choice == 'look' then
      return approval.focus()
    elseif not vim.list_contains(CHOICES, choice) then
      return notify.error(('approve %s? :McpTools approve [once | review | session | always | look]'):format(choice))
    elseif approval.count() == 0 and choice == 'once' and reviews.count() > 0 then
      return require('mcp-tools.ui.review').accept_seen() -- start-up cost
    elseif approval.count() == 0 then
      return approve_missed(choice)
    end
    local ok, why = approval.answer_current(choice)
    if not ok and why then
      notify.warn(why)
    end
  end,
  complete = function()
    return { 'once', 'review', 'session', 'always', 'look' }
  end,
}
