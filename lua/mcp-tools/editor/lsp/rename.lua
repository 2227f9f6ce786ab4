--- Renames a symbol in the whole project: only if the server is ready, no place is left out, and the name is free.

local approval_diff = require('mcp-tools.editor.lsp.approval_diff')
local buffers = require('mcp-tools.editor.buffer')
local check = require('mcp-tools.editor.lsp.rename_check')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local lsp = require('mcp-tools.editor.lsp')
local navigation = require('mcp-tools.editor.lsp.navigation')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.lsp.position')
local request = require('mcp-tools.editor.lsp.request')
local strings = require('mcp-tools.util.strings')
local server_state = require('mcp-tools.editor.lsp.server_state')
local watched_files = require('mcp-tools.editor.lsp.watched_files')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local M = {}

local METHOD = 'textDocument/rename'
--- How long the server is asked again if it leaves a place out, ms.
local PATIENCE_MS = 6000
--- Wait for a server to read a file that it was notified of, ms.
local REREAD_MS = 1200

--- Makes a server read a file again that it may have dropped when it was closed.
---@param rename mcp-tools.lsp.Renaming
---@param path string resolved
local function reread(rename, path)
  disk.tell_servers(path, 1)
  server_state.pause(rename.ctx, REREAD_MS)
end

--- Asks whether the symbol can be renamed, and for its name.
---@param rename mcp-tools.lsp.Renaming
---@return fun(): lsp.PrepareRenameResult?, mcp-tools.Error? wait returns the answer
local function begin_prepare(rename)
  local at = lsp.place(rename.spot.bufnr, rename.spot.line, rename.spot.column)(rename.client)
  return request.begin(rename.ctx, rename.client, 'textDocument/prepareRename', at, rename.spot.bufnr)
end

---@param rename mcp-tools.lsp.Renaming
---@return fun(): table?, mcp-tools.Error? wait returns the changes
local function begin_rename(rename)
  local spot = rename.spot
  local params = lsp.place(spot.bufnr, spot.line, spot.column, { newName = rename.new })(rename.client)
  return request.begin(rename.ctx, rename.client, METHOD, params, spot.bufnr)
end

--- Returns the old name from the answer to `prepareRename`.
---@param rename mcp-tools.lsp.Renaming
---@param result table of `prepareRename`
---@param word string at the place
---@return string
local function name_in(rename, result, word)
  local range = result.range or result.start and result
  if not range or range.start.line ~= range['end'].line then
    return result.placeholder or word
  end
  local line = vim.api.nvim_buf_get_lines(rename.spot.bufnr, range.start.line, range.start.line + 1, false)[1] or ''
  local first = position.byte(line, range.start.character, rename.client.offset_encoding)
  local last = position.byte(line, range['end'].character, rename.client.offset_encoding)
  return line:sub(first + 1, last)
end

---@class mcp-tools.lsp.RenameAsked
---@field change fun(): table?, mcp-tools.Error? waits for the changes of the server
---@field places mcp-tools.lsp.Named[]
---@field more boolean there are more places

--- Sends all requests of a rename at once: whether it is possible, what changes, and which places have the old name.
---@param rename mcp-tools.lsp.Renaming its `old` is set here
---@return mcp-tools.lsp.RenameAsked?
---@return mcp-tools.Error? err it cannot be renamed
local function begin(rename)
  local word = navigation.word(rename.spot)
  local provider = rename.client.server_capabilities.renameProvider
  local prepare = type(provider) == 'table' and provider.prepareProvider and begin_prepare(rename)
  local asked = { change = begin_rename(rename) }
  rename.old = word
  if word ~= '' then
    asked.places, asked.more = check.places(rename, rename.old)
  end
  if prepare then
    local result, err = prepare()
    if not result and word ~= '' then
      reread(rename, paths.resolve(vim.api.nvim_buf_get_name(rename.spot.bufnr)))
      result, err = begin_prepare(rename)()
      asked.change = begin_rename(rename)
    end
    if not result then
      local text = 'the symbol at %s cannot be renamed%s; line and column must be on a name of this project'
      local why = err and (' (%s)'):format(err.message) or ''
      return nil, errors.new('not_found', text:format(navigation.name(rename.spot), why))
    end
    rename.old = name_in(rename, result, word)
  end
  if rename.old ~= word or word == '' then
    asked.places, asked.more = check.places(rename, rename.old)
  end
  return asked
end

--- Returns a plan that leaves no place out.
---@param rename mcp-tools.lsp.Renaming
---@param asked mcp-tools.lsp.RenameAsked
---@return mcp-tools.lsp.Plan?
---@return boolean|mcp-tools.Error sure all places were checked
local function complete(rename, asked)
  local over = vim.uv.hrtime() + PATIENCE_MS * 1e6
  while true do
    local change, err = asked.change()
    if not change then
      local text = ('%s does not rename the symbol at %s'):format(rename.client.name, navigation.name(rename.spot))
      return nil, err or errors.new('not_found', text)
    end
    local plan
    plan, err = workspace_edit.plan(rename.ctx, change, rename.client)
    if not plan then
      return nil, err --[[@as mcp-tools.Error]]
    elseif plan.count == 0 then
      return nil, errors.new('not_found', ('%s finds nothing to rename'):format(rename.client.name))
    end
    local place, sure, missing = check.left_out(rename, plan, asked.places, asked.more)
    if not place then
      return plan, sure
    elseif vim.uv.hrtime() > over then
      local text = '%s would leave out %s, which has the old name; nothing was changed.'
        .. ' It may still be indexing: wait with lsp_status, then try again'
      return nil, errors.new('busy', text:format(rename.client.name, place))
    end
    reread(rename, missing.path)
    asked.change = begin_rename(rename)
    asked.places, asked.more = check.places(rename, rename.old)
  end
end

--- Renames a symbol, or returns the diff of a dry run.
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
  local rename = { ctx = ctx, client = list[1], spot = spot, new = args.new_name }
  watched_files.notify_servers(ctx)
  local incomplete = lsp.wait_until_ready(ctx, rename.client, spot.bufnr, METHOD, args.wait_ms)
  if incomplete then
    local text = '%s, and a rename now would be incomplete; nothing was changed. Wait with lsp_status'
    return nil, errors.new('busy', text:format(incomplete))
  end
  local asked
  asked, err = begin(rename)
  if not asked then
    return nil, err
  elseif rename.old == rename.new then
    return nil, errors.new('validation_error', ("new_name: the symbol is already called '%s'"):format(rename.new))
  end
  local plan, sure = complete(rename, asked)
  if not plan then
    return nil, sure --[[@as mcp-tools.Error]]
  end
  local conflict = check.conflict(rename, plan)
  if conflict then
    return nil, errors.new('validation_error', conflict)
  end
  local answer = {
    old_name = rename.old,
    new_name = rename.new,
    places = plan.count,
    files = workspace_edit.summary(plan),
  }
  if args.dry_run then
    answer.diff = workspace_edit.preview(plan, ctx.root)
    local what = { bufnr = spot.bufnr, line = spot.line, column = spot.column, new_name = rename.new }
    local ticks = {}
    for _, file in ipairs(plan.files) do
      ticks[file.bufnr] = file.changedtick
    end
    approval_diff.keep(METHOD, what, answer.diff, ticks)
    return workspace_edit.bounded(answer)
  end
  local files
  files, err = workspace_edit.apply(ctx, plan)
  if not files then
    return nil, err
  end
  answer.files = workspace_edit.summary(plan, files)
  answer.rejected, answer.edited_by_person = files.rejected, files.edited
  if workspace_edit.changed_in_review(files) then
    answer.places = nil -- the number of proposed places
    answer.checked = ('no: the user has %s a part of it'):format(files.rejected and 'rejected' or 'changed')
    return workspace_edit.bounded(answer)
  end
  local text = sure and 'no reference to %s is left' or 'no: the text has too many places of %s to be checked'
  answer.checked = text:format(rename.old)
  return workspace_edit.bounded(answer)
end

--- Returns the word at a position of an open file, to make the approval text clearer.
---@param args table
---@return string?
local function word_at(args)
  local found = args.line and args.column and buffers.find(args, { current = true })
  if not found or not found.bufnr or not vim.api.nvim_buf_is_loaded(found.bufnr) then
    return nil
  end
  local line = vim.api.nvim_buf_get_lines(found.bufnr, args.line - 1, args.line, false)[1]
  local byte = line and vim.fn.byteidxcomp(line, args.column - 1) or -1
  if byte < 0 then
    return nil
  end
  local word = strings.last_word(line:sub(1, byte)) .. line:sub(byte + 1):match('^[%w_\128-\255]*')
  return word ~= '' and word or nil
end

--- Returns the text that is shown for approval of a rename.
---@param args table
---@param again? fun(err: mcp-tools.Error?)
---@return string?
---@return mcp-tools.Error? err
function M.preview(args, again)
  local err = approval_diff.refusal(args, METHOD, true)
  if err then
    return nil, err
  end
  local where = args.path or (args.bufnr and 'buffer ' .. args.bufnr) or 'the current file'
  local at = args.symbol and ('%q'):format(args.symbol) or ('column %s'):format(args.column or 'of the cursor')
  local word = word_at(args)
  local what = word and ('"%s"'):format(word) or 'the symbol'
  local text = 'renames %s in %s, line %s, %s, to %s in the whole project'
  text = text:format(what, where, args.line or 'of the cursor', at, args.new_name)
  return approval_diff.preview(METHOD, args, text, M.run, again)
end

return M
