--- Lists the code actions of language servers, and applies them by id.
---
--- An action has an edit, a command, or both. A command runs in the server, which then requests edits. Commands that a
--- Neovim plugin implements are refused.

local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local lsp = require('mcp-tools.editor.lsp')
local lru = require('mcp-tools.util.lru')
local args_of = require('mcp-tools.editor.lsp.args')
local position = require('mcp-tools.editor.position')
local request = require('mcp-tools.editor.lsp.request')
local server_text = require('mcp-tools.editor.lsp.server_text')
local server_state = require('mcp-tools.editor.lsp.server_state')
local watched_files = require('mcp-tools.editor.lsp.watched_files')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of actions in one list.
M.MAX_LISTED = 1000

---@class mcp-tools.lsp.ListedAction
---@field action table CodeAction or Command
---@field client vim.lsp.Client
---@field bufnr integer
---@field changedtick integer
---@field diff string? of a dry run

--- Actions that can still be applied, by their id.
local by_id = lru(M.MAX_LISTED)
local count = 0

---@param listed mcp-tools.lsp.ListedAction
---@return string id
local function keep(listed)
  count = count + 1
  -- The random part keeps other clients from guessing it.
  local id = ('a%d-%s'):format(count, vim.text.hexencode(assert(vim.uv.random(4))))
  by_id:set(id, listed)
  return id
end

--- Returns the original diagnostics of servers for some lines.
---@param bufnr integer
---@param first integer from 1
---@param last integer
---@return lsp.Diagnostic[]
local function diagnostics(bufnr, first, last)
  local list = {}
  for _, each in ipairs(vim.diagnostic.get(bufnr)) do
    local original = vim.tbl_get(each, 'user_data', 'lsp')
    if original and each.lnum + 1 <= last and (each.end_lnum or each.lnum) + 1 >= first then
      table.insert(list, original)
    end
  end
  return list
end

--- Returns the line of the diagnostic that an action fixes.
---@param action table
---@return integer?
local function line_of(action)
  local first = type(action.diagnostics) == 'table' and action.diagnostics[1]
  return first and first.range.start.line + 1 or nil
end

--- Lists the code actions for a range.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
function M.list(ctx, args)
  local is_whole = not args.line and not args.symbol
  local place = is_whole and vim.tbl_extend('force', args, { line = 1, column = 1 }) or args
  local spot, err = args_of.spot(ctx, place)
  if not spot then
    return nil, err
  end
  local total = vim.api.nvim_buf_line_count(spot.bufnr)
  local end_line = is_whole and total or args.end_line
  local last = math.max(spot.line, math.min(end_line or spot.line, total))
  local end_text = vim.api.nvim_buf_get_lines(spot.bufnr, last - 1, last, false)[1] or ''
  local answers
  answers, err = lsp.request_all(ctx, spot.bufnr, 'textDocument/codeAction', function(client)
    local from = lsp.position_params(spot.bufnr, spot.line, spot.column)(client).position
    local to = from
    if end_line then
      to = { line = last - 1, character = position.units(end_text, #end_text, client.offset_encoding) }
    end
    return lsp.document_params(spot.bufnr, {
      range = { start = from, ['end'] = to },
      context = {
        diagnostics = diagnostics(spot.bufnr, spot.line, last),
        only = args.kinds,
        triggerKind = 1,
      },
    })
  end, { every = true })
  if not answers then
    return nil, err
  end
  server_text.refresh(ctx)
  local actions, tick = {}, vim.api.nvim_buf_get_changedtick(spot.bufnr)
  for _, answer in ipairs(answers) do
    for _, action in ipairs(answer.result) do
      if #actions < args.limit then
        table.insert(actions, {
          id = keep({ action = action, client = answer.client, bufnr = spot.bufnr, changedtick = tick }),
          title = server_text.text(action.title),
          kind = action.kind,
          line = is_whole and line_of(action) or nil,
          preferred = action.isPreferred or nil,
          disabled = type(action.disabled) == 'table' and server_text.text(action.disabled.reason) or nil,
        })
      end
    end
  end
  return { actions = actions, note = #actions == 0 and 'no code actions here' or nil }
end

--- Returns an action with the edit or command that `codeAction/resolve` adds.
---@param ctx mcp-tools.Ctx
---@param listed mcp-tools.lsp.ListedAction
---@return table? action
---@return mcp-tools.Error? err
local function resolved(ctx, listed)
  local action, client = listed.action, listed.client
  if action.edit or type(action.command) == 'string' then
    return action
  end
  local provider = client.server_capabilities.codeActionProvider
  local can = type(provider) == 'table' and provider.resolveProvider
    or clients.supports(client, 'codeAction/resolve', listed.bufnr)
  if not can or not action.data and action.command then
    return action
  end
  local result, err = request.ask(ctx, client, 'codeAction/resolve', action, listed.bufnr)
  if err and not action.command then
    return nil, err
  end
  return result or action
end

--- Clients that are running a command. One at a time, so that requested edits can be attributed to it.
---@type table<integer, true>
local executing = {}

--- Runs a command in its server, after the running one has finished.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param bufnr integer
---@param command table
---@return table[] edits that the server requested, even if the command failed
---@return mcp-tools.Error? err
local function execute(ctx, client, bufnr, command)
  local provider = client.server_capabilities.executeCommandProvider
  if not provider or not vim.list_contains(provider.commands or {}, command.command) then
    local text = '%s is a command of the editor, not of %s, and is not run'
    return {}, errors.new('tool_error', text:format(command.command, client.name))
  end
  local free = server_state.await(ctx, request.TIMEOUT_MS, function()
    return not executing[client.id]
  end)
  if not free then
    return {}, errors.new('busy', ('apply: %s is still running another command; try again'):format(client.name))
  end
  executing[client.id] = true
  local edits, before, is_restored = {}, client.handlers['workspace/applyEdit'], false
  local function collect(_, params)
    table.insert(edits, params.edit)
    return { applied = true }
  end
  local function restore()
    if is_restored then
      return
    end
    is_restored, executing[client.id] = true, nil
    if client.handlers['workspace/applyEdit'] == collect then
      client.handlers['workspace/applyEdit'] = before
    end
  end
  client.handlers['workspace/applyEdit'] = collect
  ctx.call:on_end(restore)
  local params = { command = command.command, arguments = command.arguments }
  local _, err = request.ask(ctx, client, 'workspace/executeCommand', params, bufnr)
  restore()
  return edits, err
end

--- Returns the action with an id if it can still be applied.
---@param id string
---@return mcp-tools.lsp.ListedAction? listed
---@return mcp-tools.Error? err
local function usable(id)
  local listed = by_id:get(id)
  if not listed then
    return nil,
      errors.new('not_found', ("apply: unknown action '%s'; list the actions again"):format(utf8.cut(id, 200)))
  elseif not vim.api.nvim_buf_is_loaded(listed.bufnr) or clients.is_stopped(listed.client) then
    return nil, errors.new('stale', 'apply: the file or its server was closed; list the actions again')
  elseif vim.api.nvim_buf_get_changedtick(listed.bufnr) ~= listed.changedtick then
    return nil, errors.new('stale', 'apply: the file has changed since the actions were listed; list them again')
  elseif listed.action.disabled then
    return nil, errors.new('tool_error', 'apply: disabled: ' .. server_text.text(listed.action.disabled.reason))
  end
  return listed
end

--- Returns whether an action has this id.
---@param id string
---@return boolean
function M.is_listed(id)
  return by_id:get(id) ~= nil
end

--- Returns the approval text of an action until its diff is known.
---@param id string
---@return string?
---@return mcp-tools.Error? err
function M.title(id)
  local listed, err = usable(id)
  if not listed then
    return nil, err
  end
  return ('%s: %s'):format(listed.client.name, server_text.text(listed.action.title))
end

--- Applies a listed action.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param id string
---@param dry_run boolean
---@return table?
---@return mcp-tools.Error? err
---@return string? text of a dry run, for approval
---@return table<integer, integer>? ticks buffer → changedtick
function M.apply(ctx, id, dry_run)
  local listed, err = usable(id)
  if not listed then
    return nil, err
  end
  server_text.refresh(ctx)
  watched_files.notify_servers(ctx)
  local action
  action, err = resolved(ctx, listed)
  if not action then
    return nil, err
  end
  local answer = { title = server_text.text(action.title or listed.action.title), places = 0, files = {} }
  if action.edit then
    err = workspace_edit.plan_and_apply(ctx, listed.client, action.edit, answer, dry_run, listed.diff)
    if err then
      return nil, err
    end
  end
  local command = type(action.command) == 'string' and action or action.command
  if command and dry_run then
    answer.note = ('runs the command %s of %s; its changes are not known in advance'):format(
      command.command,
      listed.client.name
    )
  elseif command then
    local edits
    edits, err = execute(ctx, listed.client, listed.bufnr, command)
    for _, change in ipairs(edits) do
      err = workspace_edit.plan_and_apply(ctx, listed.client, change, answer, false) or err
    end
    if err and #answer.files == 0 then
      return nil, err
    elseif err then -- an error result would imply that nothing has changed
      answer.failed = ('partly applied: %s failed: %s'):format(command.command, err.message)
    end
  elseif not action.edit then
    return nil, errors.new('tool_error', 'apply: the action has neither an edit nor a command')
  end
  listed.diff = answer.diff
  local text = (answer.diff or '') .. (answer.note and answer.note .. '\n' or '')
  return workspace_edit.bounded(answer), nil, text, { [listed.bufnr] = listed.changedtick }
end

return M
