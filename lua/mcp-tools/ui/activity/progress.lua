--- Shows the progress of long calls as messages that replace each other.

local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')

local api, uv = vim.api, vim.uv

local M = {}

--- Shorter calls are not shown, ns.
local MIN_TIME = 1e9
local TITLE = 'mcp-tools'

---@class mcp-tools.ShownCall
---@field key string text and percentage on the screen
---@field text string
---@field record any the notification plugin's handle

local shown = {} ---@type table<string, mcp-tools.ShownCall> by call id
local native ---@type boolean? whether Neovim has progress messages

---@type table<string, string> by the call's state
local STATUS = { done = 'success', failed = 'failed', timed_out = 'failed', cancelled = 'cancel' }
local WORDS = { done = 'done', failed = 'failed', timed_out = 'timed out', cancelled = 'cancelled' }

---@return boolean
local function is_native()
  if native == nil then
    native = vim.fn.has('nvim-0.12') == 1
  end
  return native
end

--- Returns whether a message can be shown without covering the command line or a prompt, or causing one.
---@return boolean
local function can_show()
  return #api.nvim_list_uis() > 0
    and not api.nvim_get_mode().mode:find('^[rc]')
    and (is_native() and (vim.o.cmdheight > 0 or notify.has_room()) or not notify.is_builtin())
end

---@param call mcp-tools.Call
---@param item mcp-tools.ShownCall
---@param status 'running'|'success'|'failed'|'cancel'
---@param percent? integer
local function put(call, item, status, percent)
  local id = 'mcp-tools call ' .. call.id
  if is_native() then
    local line = notify.fitting(item.text, vim.v.echospace - #TITLE - 8) -- minus the title and a percentage
    local opts = { id = id, kind = 'progress', source = TITLE, title = TITLE, status = status, percent = percent }
    opts.data = { id = call.id, tool = call.name, client = call.client.name }
    api.nvim_echo({ { line } }, false, opts)
    return
  end
  local running = status == 'running'
  local text = percent and ('%s (%d%%)'):format(item.text, percent) or item.text
  local opts = { title = TITLE, id = id, replace = item.record, hide_from_history = running }
  if running then
    opts.timeout = false -- until it is replaced
  end
  item.record = vim.notify(text, vim.log.levels[status == 'failed' and 'WARN' or 'INFO'], opts)
end

--- Shows the progress of long calls.
---@param calls mcp-tools.Call[]
---@param percent_of fun(call: mcp-tools.Call): integer?
function M.show(calls, percent_of)
  local now = uv.hrtime()
  for _, call in ipairs(calls) do
    if call.state == 'running' and now - call.started_at > MIN_TIME and can_show() then
      local percent, message = percent_of(call), call.latest and call.latest.message
      local text = call.name .. (message and ': ' .. sanitize.line((message:gsub('%s+', ' '))) or ' is running')
      local key = ('%s %s'):format(text, percent or '')
      local item = shown[call.id] or {}
      if item.key ~= key then
        item.key, item.text = key, text
        shown[call.id] = item
        log.guard('progress of a call', put, call, item, 'running', percent)
      end
    end
  end
end

--- Shows the end of a call if its progress was shown.
---@param call mcp-tools.Call
function M.ended(call)
  local item = shown[call.id]
  if not item then
    return
  end
  shown[call.id] = nil
  vim.schedule(function() -- after the result was sent
    if can_show() then
      local seconds = (call.ended_at - call.started_at) / 1e9
      item.text = ('%s: %s, %.1f s'):format(call.name, WORDS[call.state], seconds)
      log.guard('progress of a call', put, call, item, STATUS[call.state], call.state == 'done' and 100 or nil)
    end
  end)
end

return M
