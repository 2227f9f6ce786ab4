--- Rename of a symbol in all of a project: only when the server is ready, complete, and checked afterwards.
---
--- Receives: the arguments of a tool.
--- Sends: files and places that were changed; or why nothing has changed.
--- Does not know about: approval, what the tool is called.
---
--- A server that has not read all of the project renames a part of it, and says that it succeeded. So the name is
--- looked for in the project's text (rename_left_out.lua), and a place that means the renamed thing stops it.
--- Afterwards the new name must have as many references as the old one had: fewer were left out, more belong to
--- another symbol that had this name already.

local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local locations = require('mcp-tools.editor.lsp.locations')
local log = require('mcp-tools.log')
local lsp = require('mcp-tools.editor.lsp')
local navigation = require('mcp-tools.editor.lsp.navigation')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.lsp.position')
local rename_ask = require('mcp-tools.editor.lsp.rename_ask')
local rename_conflict = require('mcp-tools.editor.lsp.rename_conflict')
local request = require('mcp-tools.editor.lsp.request')
local dry_run = require('mcp-tools.editor.lsp.dry_run')
local wait = require('mcp-tools.editor.lsp.wait')
local watched_files = require('mcp-tools.editor.lsp.watched_files')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local M = {}

local METHOD = rename_ask.METHOD
M.METHOD = METHOD
--- Servers look at the changed files by then, ms.
local CHECK_MS = 6000

--- Asks how many places the thing at a position is used in.
---@param of mcp-tools.lsp.Renaming
---@param params table
---@return fun(): integer? count waits for it; nil where the server cannot tell
local function begin_count(of, params)
  if not clients.supports(of.client, 'textDocument/references', of.spot.bufnr) then
    return function() end
  end
  local with = vim.tbl_extend('force', params, { context = { includeDeclaration = true } })
  local answer = request.begin(of.ctx, of.client, 'textDocument/references', with, of.spot.bufnr)
  return function()
    local result = answer()
    return result and #locations.items({ { result = result, client = of.client } })
  end
end

--- Where the renamed thing is now.
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return table params
local function moved(of, plan)
  local place = paths.resolve(vim.api.nvim_buf_get_name(of.spot.bufnr))
  local byte = position.byte(of.spot.text, of.spot.column - 1, 'utf-32')
  local shift = 0
  for _, file in ipairs(plan.files) do
    for _, each in ipairs(file.place == place and file.edits or {}) do
      if each.start_line == of.spot.line - 1 and each.end_line == each.start_line then
        if each.end_col <= byte then
          shift = shift + #each.text - (each.end_col - each.start_col)
        elseif each.start_col < byte then
          byte = each.start_col
        end
      end
    end
  end
  local line = vim.api.nvim_buf_get_lines(of.spot.bufnr, of.spot.line - 1, of.spot.line, false)[1] or ''
  return lsp.document(of.spot.bufnr, {
    position = {
      line = of.spot.line - 1,
      character = position.units(line, byte + shift, of.client.offset_encoding),
    },
  })
end

--- Has the new name all references that the old one had?
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param before integer
---@return integer references in the end
local function count_after(of, plan, before)
  watched_files.tell(of.ctx, true)
  local over = vim.uv.hrtime() + CHECK_MS * 1e6
  local params = moved(of, plan)
  while true do
    local now = begin_count(of, params)() or 0
    if now >= before or vim.uv.hrtime() > over then
      return now
    end
    wait.pause(of.ctx, 150)
  end
end

---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
function M.run(ctx, args)
  local spot, err = navigation.spot(ctx, args)
  if not spot then
    return nil, err
  end
  local list
  list, err = lsp.clients(ctx, spot.bufnr, METHOD)
  if not list then
    return nil, err
  end
  local of = { ctx = ctx, client = list[1], spot = spot, new = args.new_name }
  watched_files.tell(ctx)
  local incomplete = lsp.settle(ctx, of.client, spot.bufnr, METHOD, args.wait_ms)
  if incomplete then
    local text =
      '%s, and a rename now would change a part of the project; nothing has been changed. Wait with lsp_status'
    return nil, errors.new('busy', text:format(incomplete))
  end
  local count
  local asked
  asked, err = rename_ask.begin(of, function()
    count = begin_count(of, lsp.place(spot.bufnr, spot.line, spot.column)(of.client))
  end)
  if not asked then
    return nil, err
  elseif of.old == of.new then
    return nil, errors.new('validation_error', ('new_name: it is called %s already'):format(of.new))
  end
  local plan, sure = rename_ask.complete(of, asked)
  if not plan then
    return nil, sure --[[@as mcp-tools.Error]]
  end
  local is_used = rename_conflict.is_used(of)
  local conflict = is_used and rename_conflict.find(of, plan)
  if conflict then
    return nil, errors.new('validation_error', conflict)
  elseif asked.again then -- the server knows more places than it counted at first
    count = begin_count(of, lsp.place(spot.bufnr, spot.line, spot.column)(of.client))
  end
  local before = count()
  local answer = {
    old_name = of.old,
    new_name = of.new,
    places = plan.count,
    files = workspace_edit.summary(plan),
  }
  if args.dry_run then
    answer.diff = workspace_edit.preview(plan, ctx.root)
    local what = { bufnr = spot.bufnr, line = spot.line, column = spot.column, new_name = of.new }
    local ticks = {}
    for _, file in ipairs(plan.files) do
      ticks[file.bufnr] = file.changedtick
    end
    dry_run.keep(METHOD, what, answer.diff, ticks)
    return workspace_edit.bounded(answer)
  end
  local files
  files, err = workspace_edit.apply(ctx, plan)
  if not files then
    return nil, err
  end
  answer.files = workspace_edit.summary(plan, files)
  answer.rejected, answer.edited_by_person = files.rejected, files.edited
  if workspace_edit.is_changed(files) then
    answer.places = nil -- those that were proposed
    answer.checked = ('no: the person has %s a part of it'):format(files.rejected and 'rejected' or 'changed')
    return workspace_edit.bounded(answer)
  end
  if not before then
    answer.checked = ('no: %s cannot list references'):format(of.client.name)
    return workspace_edit.bounded(answer)
  end
  local checked = false
  ctx:on_cancel(function() -- whoever asked is told that nothing came of it
    if not checked then
      checked = true
      workspace_edit.take_back(plan, files, function(fault)
        if fault then
          log.error('a rename to %s was cancelled, and could not be taken back: %s', of.new, fault.message)
        end
      end)
    end
  end)
  local now = count_after(of, plan, before)
  checked = true
  if now < before or now > before and is_used then
    local fault = ctx:await(function(done)
      workspace_edit.take_back(plan, files, done)
    end)
    local text = '%safterwards %s had %d references where %s had %d; %s'
    local why = now > before and 'conflict: the name is used already: ' or ''
    local what = fault and ('it could not be taken back: ' .. fault.message) or 'everything has been taken back'
    return nil, errors.new('tool_error', text:format(why, of.new, now, of.old, before, what))
  end
  answer.checked = ('%d references to %s%s'):format(
    now,
    of.new,
    sure and (', none to %s is left'):format(of.old)
      or ('; the text has too many places of %s to be looked at'):format(of.old)
  )
  return workspace_edit.bounded(answer)
end

return M
