--- Dashboard: one window that shows what this editor offers, who uses it, and what waits for the person.
---
--- While it is seen it is drawn after something has happened, a few times a second at most, and once a second, for
--- what tells nobody that it is another. While it is not seen nothing is done.

local format = require('mcp-tools.ui.dashboard._format')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local report = require('mcp-tools.loading.report')
local scratch = require('mcp-tools.ui.window.scratch')
local timer = require('mcp-tools.util.timer')
local current = require('mcp-tools.bridge.current')

local api = vim.api

local M = {}

--- ms from something that happened to the look of it, and between two looks without.
local SOON, LATER = 100, 1000

---@class mcp-tools.DashboardParts
---@field style 'float'|'split'
---@field registry mcp-tools.Registry
---@field executor mcp-tools.Executor
---@field gateway mcp-tools.Gateway
---@field history mcp-tools.History
---@field bridge fun(): mcp-tools.bridge.Status
---@field items fun(): mcp-tools.Item[]
---@field run fun(text: string) runs a subcommand of `:McpTools`
---@field open? table<string, boolean> what is unfolded, by id
---@field close? fun() closes the dashboard

---@class mcp-tools.DashboardKey
---@field lhs string
---@field description string
---@field word? string for the frame
---@field item? string[] kinds of row that it is about; of none when left out
---@field run fun(parts: mcp-tools.DashboardParts, item: mcp-tools.RowItem?)

--- A section: what a file beside this one returns.
---@class mcp-tools.DashboardSection
---@field title string
---@field order integer sections stand in this order
---@field folded? boolean until the person unfolds it
---@field note? fun(parts: mcp-tools.DashboardParts): string? stands behind the title
---@field hidden? fun(parts: mcp-tools.DashboardParts): boolean there is nothing to say
---@field rows fun(rows: mcp-tools.Rows, parts: mcp-tools.DashboardParts)
---@field keys? mcp-tools.DashboardKey[]
---@field details? table<string, fun(parts: mcp-tools.DashboardParts, item: mcp-tools.RowItem)> what `<CR>` does, by the
--- kind of the row

---@class mcp-tools.DashboardFile
---@field name string
---@field section mcp-tools.DashboardSection

---@return mcp-tools.DashboardFile[]
local function load()
  local list = {}
  for file in vim.fs.dir(vim.fs.joinpath(project.lua_dir(), 'ui', 'dashboard')) do
    local name = file:match('^(%l[%w_]*)%.lua$')
    if name and name ~= 'init' then
      table.insert(list, { name = name, section = require('mcp-tools.ui.dashboard.' .. name) }) -- by name
    end
  end
  table.sort(list, function(a, b)
    return a.section.order < b.section.order
  end)
  return list
end

local shown ---@type integer? buffer
local open = {} ---@type table<string, boolean> kept from one opening to the next

---@param rows mcp-tools.Rows
---@param file mcp-tools.DashboardFile
---@param parts mcp-tools.DashboardParts
local function add_section(rows, file, parts)
  local section, id = file.section, 'section ' .. file.name
  if section.hidden and section.hidden(parts) then
    return
  end
  local is_open = open[id]
  if is_open == nil then
    is_open = not section.folded
  end
  local note = section.note and section.note(parts)
  rows:add({ { format.fold(is_open), 'Dim' }, ' ', { section.title, 'Heading' }, '  ', { note or '', 'Dim' } }, {
    kind = 'section',
    id = id,
    value = is_open,
  })
  if is_open then
    section.rows(rows, parts)
  end
end

---@param files mcp-tools.DashboardFile[]
---@param parts mcp-tools.DashboardParts
---@return fun(rows: mcp-tools.Rows)
local function renderer(files, parts)
  local failed = {} ---@type table<string, true> it is drawn again and again, and said once
  return function(rows)
    for _, file in ipairs(files) do
      local ok, err = xpcall(add_section, debug.traceback, rows, file, parts)
      if not ok then
        if not failed[file.name] then
          log.error('the section %s of the dashboard failed: %s', file.name, err)
        end
        failed[file.name] = true
        rows:add({ { '  this section cannot be shown; see :McpTools log', 'Bad' } })
      end
    end
  end
end

local function refresh()
  if shown then
    scratch.update(shown)
  end
end

--- Goes to the next row that heads a section, or the one before.
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

---@param files mcp-tools.DashboardFile[]
---@param parts mcp-tools.DashboardParts
---@return mcp-tools.ScratchKey[]
local function keys_of(files, parts)
  local details, keys = {}, {}
  local function unfold(item)
    open[item.id] = not item.value
  end
  for _, file in ipairs(files) do
    details = vim.tbl_extend('error', details, file.section.details or {})
    for _, key in ipairs(file.section.keys or {}) do
      table.insert(keys, {
        lhs = key.lhs,
        description = key.description,
        word = key.word,
        run = function(item)
          local wanted = key.item
          if wanted and not (item and vim.list_contains(wanted, item.kind)) then
            local text = ('%s is for a %s: move the cursor onto one'):format(key.lhs, table.concat(wanted, ' or a '))
            return api.nvim_echo({ { text } }, false, {})
          end
          key.run(parts, item)
          refresh()
        end,
      })
    end
  end
  table.insert(keys, 1, {
    lhs = '<CR>',
    description = 'details of what the cursor is on; fold or unfold a section',
    word = 'details',
    run = function(item)
      if item and item.kind == 'section' then
        unfold(item)
      elseif item and details[item.kind] then
        details[item.kind](parts, item)
      else
        api.nvim_echo({ { 'there is no more to this line' } }, false, {})
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

--- Follows what happens, until it is told to stop.
---@param view integer buffer
---@param parts mcp-tools.DashboardParts
---@return fun() stop
local function follow(view, parts)
  local soon, beat ---@type mcp-tools.Timer?, mcp-tools.Timer?
  local group = api.nvim_create_augroup('mcp-tools-dashboard', { clear = true })

  local function draw()
    soon = nil
    if scratch.is_seen(view) then
      scratch.update(view)
    end
  end
  -- On the way of every call: one comparison while a look is due.
  local function happened()
    if not soon and scratch.is_seen(view) then
      soon = timer.after(SOON, draw)
    end
  end
  local function keep_beat()
    if scratch.is_seen(view) and not beat then
      beat = timer.every(LATER, draw)
    elseif not scratch.is_seen(view) and beat then
      beat:stop()
      beat = nil
    end
  end

  local safely = vim.schedule_wrap(happened) -- others may tell of things where nothing may be drawn
  local stops = { parts.executor:watch(happened), report.on_change(parts.registry, safely), current.on_change(safely) }
  api.nvim_create_autocmd('User', { group = group, pattern = 'McpTools*', callback = safely })
  api.nvim_create_autocmd('TabEnter', {
    group = group,
    callback = function()
      keep_beat()
      happened()
    end,
  })
  keep_beat()
  return function()
    for _, stop in ipairs(stops) do
      stop()
    end
    for _, each in ipairs({ soon or false, beat or false }) do
      if each then
        each:stop()
      end
    end
    api.nvim_del_augroup_by_id(group)
  end
end

--- Opens the dashboard; where it is open already, the cursor goes there.
---@param parts mcp-tools.DashboardParts
function M.open(parts)
  if scratch.is_seen(shown) then
    return api.nvim_set_current_win(vim.fn.bufwinid(shown))
  elseif shown then
    scratch.close(shown) -- on another tab page
  end
  local files, stop = load(), nil
  parts.open = open
  parts.close = function()
    if shown then
      scratch.close(shown)
    end
  end
  shown = scratch.show('dashboard', renderer(files, parts), {
    title = 'MCP tools',
    filetype = 'mcp-tools',
    float = parts.style == 'float',
    rows = true,
    keys = keys_of(files, parts),
    on_close = function()
      shown = nil
      if stop then
        stop()
      end
    end,
  })
  stop = follow(shown, parts)
end

return M
