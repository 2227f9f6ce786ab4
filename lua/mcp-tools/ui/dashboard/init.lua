--- Dashboard: one window with the bridge, clients, calls and tools, and with what waits for the user.
---
--- While it is visible it is redrawn after events, at most ten times a second, and once a second for values that fire
--- no event.

local Rows = require('mcp-tools.ui.window.rows')
local calls = require('mcp-tools.ui.dashboard.calls')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local log = require('mcp-tools.log')
local report = require('mcp-tools.loading.report')
local scratch = require('mcp-tools.ui.window.scratch')
local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

--- Delay of a redraw after an event, and interval without events, ms.
local AFTER_EVENT, INTERVAL = 100, 1000

---@class mcp-tools.DashboardParts
---@field registry mcp-tools.Registry
---@field executor mcp-tools.Executor
---@field gateway mcp-tools.Gateway
---@field bridge fun(): mcp-tools.bridge.Status
---@field run fun(text: string) runs a subcommand of `:McpTools`
---@field open? table<string, boolean> unfolded rows, by id
---@field close? fun() closes the dashboard

---@class mcp-tools.DashboardKey
---@field lhs string
---@field description string
---@field word? string label of the key in the frame
---@field item? string[] kinds of row that it applies to; default: it needs no row
---@field run mcp-tools.DashboardAction

--- A function, or a subcommand of `:McpTools` that runs after the dashboard was closed.
---@alias mcp-tools.DashboardAction string|fun(parts: mcp-tools.DashboardParts, item: mcp-tools.RowItem?)

---@class mcp-tools.DashboardSection
---@field title string
---@field folded? boolean folded by default
---@field in_status? boolean `:McpTools status` shows it
---@field note? fun(parts: mcp-tools.DashboardParts): string? text after the title
---@field optional? boolean omitted while it has no rows
---@field rows fun(rows: mcp-tools.Rows, parts: mcp-tools.DashboardParts)
---@field keys? mcp-tools.DashboardKey[]
---@field details? table<string, mcp-tools.DashboardAction> actions of `<CR>`, by kind of row

local endpoint, environment, log_section = unpack(require('mcp-tools.ui.dashboard.bridge'))

local shown ---@type integer? buffer
local open = {} ---@type table<string, boolean> unfolded rows, by id; kept when the dashboard is closed

---@param rows mcp-tools.Rows
---@param section mcp-tools.DashboardSection
---@param parts mcp-tools.DashboardParts
---@param is_folding boolean the user can fold it
local function add_section(rows, section, parts, is_folding)
  local id, content = 'section ' .. section.title, Rows.new(rows.width)
  local is_open = open[id] or open[id] == nil and not section.folded or not is_folding
  if is_open or section.optional then
    section.rows(content, parts)
  end
  if section.optional and #content.list == 0 then
    return
  end
  local title = { { section.title, 'Heading' }, '  ', { section.note and section.note(parts) or '', 'Dim' } }
  if is_folding then
    table.insert(title, 1, { is_open and '▾ ' or '▸ ', 'Dim' })
  end
  rows:add(title, { kind = 'section', id = id, value = is_open })
  vim.list_extend(rows.list, is_open and content.list or {})
end

---@param sections mcp-tools.DashboardSection[]
---@param parts mcp-tools.DashboardParts
---@param is_folding boolean
---@return fun(rows: mcp-tools.Rows)
local function renderer(sections, parts, is_folding)
  local failed = {} ---@type table<string, true> sections whose error was logged
  return function(rows)
    for _, section in ipairs(sections) do
      local ok, err = xpcall(add_section, debug.traceback, rows, section, parts, is_folding)
      if not ok then
        if not failed[section.title] then
          log.error('the section %s of the dashboard failed: %s', section.title, err)
        end
        failed[section.title] = true
        rows:add({ { section.title, 'Heading' }, { '  failed; see :McpTools log', 'Bad' } })
      end
    end
  end
end

local function refresh()
  if shown then
    scratch.update(shown)
  end
end

--- Moves the cursor to the next or previous section.
---@param step 1|-1
local function next_section(step)
  local lnum, rows = api.nvim_win_get_cursor(0)[1] + step, scratch.rows(shown)
  while rows[lnum] do
    local item = rows[lnum].item
    if item and item.kind == 'section' then
      return api.nvim_win_set_cursor(0, { lnum, 0 })
    end
    lnum = lnum + step
  end
end

---@param sections mcp-tools.DashboardSection[]
---@param parts mcp-tools.DashboardParts
---@return mcp-tools.ScratchKey[]
local function keys_of(sections, parts)
  local details, keys = {}, {}
  local function run(action, item)
    if type(action) == 'string' then
      parts.close()
      return parts.run(action)
    end
    action(parts, item)
  end
  for _, section in ipairs(sections) do
    details = vim.tbl_extend('error', details, section.details or {})
    for _, key in ipairs(section.keys or {}) do
      local function run_key(item)
        local wanted = key.item
        if wanted and not (item and vim.list_contains(wanted, item.kind)) then
          local text = ('%s is for a %s: move the cursor onto one'):format(key.lhs, table.concat(wanted, ' or a '))
          return api.nvim_echo({ { text } }, false, {})
        end
        run(key.run, item)
        refresh()
      end
      table.insert(keys, vim.tbl_extend('force', key, { run = run_key }))
    end
  end
  table.insert(keys, 1, {
    lhs = '<CR>',
    description = 'show details of the row, or fold and unfold a section',
    word = 'details',
    run = function(item)
      if item and item.kind == 'section' then
        open[item.id] = not item.value
      elseif item and details[item.kind] then
        run(details[item.kind], item)
      else
        api.nvim_echo({ { 'this row has no details' } }, false, {})
      end
      refresh()
    end,
  })
  for lhs, step in pairs({ ['<Tab>'] = 1, ['<S-Tab>'] = -1 }) do
    table.insert(keys, {
      lhs = lhs,
      description = step > 0 and 'next section' or 'previous section',
      run = function()
        next_section(step)
      end,
    })
  end
  return keys
end

--- Redraws the dashboard after events until `stop` is called.
---@param parts mcp-tools.DashboardParts
---@return fun() stop
local function follow(parts)
  local soon ---@type mcp-tools.Timer?
  local group = api.nvim_create_augroup('mcp-tools-dashboard', { clear = true })
  -- Called for every call, so it must be cheap.
  local function draw_soon()
    if not soon and scratch.is_seen(shown) then
      soon = timer.after(AFTER_EVENT, function()
        soon = nil
        if scratch.is_seen(shown) then
          refresh()
        end
      end)
    end
  end

  local safely = vim.schedule_wrap(draw_soon) -- these events may come where the API must not be called
  local stops = { parts.executor:watch(draw_soon), report.on_change(parts.registry, safely), current.on_change(safely) }
  api.nvim_create_autocmd('User', { group = group, pattern = 'McpTools*', callback = safely })
  return function()
    for _, stop in ipairs(stops) do
      stop()
    end
    if soon then
      soon:stop()
    end
    api.nvim_del_augroup_by_id(group)
  end
end

--- Opens the dashboard, or moves the cursor to it if it is open.
---@param parts mcp-tools.DashboardParts
function M.open(parts)
  if scratch.is_seen(shown) then
    return api.nvim_set_current_win(vim.fn.bufwinid(shown))
  elseif shown then
    scratch.close(shown) -- on another tab page
  end
  local tools = require('mcp-tools.ui.dashboard.tools') -- start-up cost: `:McpTools status` does not need it
  local sections, stop = vim.list_extend(vim.list_extend({ endpoint }, calls), tools), nil
  vim.list_extend(sections, { environment, log_section })
  parts.open = open
  parts.close = function()
    if shown then
      scratch.close(shown)
    end
  end
  shown = scratch.show('dashboard', renderer(sections, parts, true), {
    title = 'MCP tools',
    filetype = 'mcp-tools',
    float = config.get('ui.dashboard') == 'float',
    rows = true,
    every = INTERVAL,
    keys = keys_of(sections, parts),
    on_close = function()
      shown = nil
      if stop then
        stop()
      end
    end,
  })
  stop = follow(parts)
end

--- Shows the state of the bridge, its clients and the running calls, in the window at the bottom.
---@param parts mcp-tools.DashboardParts
function M.show_status(parts)
  local sections = vim.tbl_filter(function(section)
    return section.in_status
  end, vim.list_extend({ endpoint }, calls))
  scratch.show('status', renderer(sections, parts, false), { every = INTERVAL })
end

return M
