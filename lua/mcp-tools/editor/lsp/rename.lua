--- Rename of a symbol in all of a project: only when the server is ready, leaves nothing out, and the name is free.

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
--- Asked again for so long when a place is left out, ms.
local PATIENCE_MS = 6000
--- A server that is told of a file has looked at it by then, ms.
local REMINDED_MS = 1200

--- Has a server look at a file again that it may have let go when it was closed.
---@param of mcp-tools.lsp.Renaming
---@param path string resolved
local function remind(of, path)
  disk.tell_servers(path, 1)
  server_state.pause(of.ctx, REMINDED_MS)
end

--- Asks whether the thing at a place can be renamed, and how it is called.
---@param of mcp-tools.lsp.Renaming
---@return fun(): lsp.PrepareRenameResult?, mcp-tools.Error? answer waits for it
local function begin_prepare(of)
  local at = lsp.place(of.spot.bufnr, of.spot.line, of.spot.column)(of.client)
  return request.begin(of.ctx, of.client, 'textDocument/prepareRename', at, of.spot.bufnr)
end

---@param of mcp-tools.lsp.Renaming
---@return fun(): table?, mcp-tools.Error? answer waits for the changes
local function begin_rename(of)
  local params = lsp.place(of.spot.bufnr, of.spot.line, of.spot.column, { newName = of.new })(of.client)
  return request.begin(of.ctx, of.client, METHOD, params, of.spot.bufnr)
end

--- How the thing is called, by what a server said of it.
---@param of mcp-tools.lsp.Renaming
---@param result table of `prepareRename`
---@param word string at the place
---@return string
local function name_in(of, result, word)
  local range = result.range or result.start and result
  if not range or range.start.line ~= range['end'].line then
    return result.placeholder or word
  end
  local line = vim.api.nvim_buf_get_lines(of.spot.bufnr, range.start.line, range.start.line + 1, false)[1] or ''
  local first = position.byte(line, range.start.character, of.client.offset_encoding)
  local last = position.byte(line, range['end'].character, of.client.offset_encoding)
  return line:sub(first + 1, last)
end

---@class mcp-tools.lsp.RenameAsked
---@field change fun(): table?, mcp-tools.Error? waits for what the server would change
---@field places mcp-tools.lsp.Named[]
---@field more boolean there are others

--- Asks for all that a rename needs at once: whether it can be, what would change, and where the text has the name.
---@param of mcp-tools.lsp.Renaming its `old` is set
---@return mcp-tools.lsp.RenameAsked?
---@return mcp-tools.Error? err it cannot be renamed
local function begin(of)
  local word = navigation.word(of.spot)
  local provider = of.client.server_capabilities.renameProvider
  local prepare = type(provider) == 'table' and provider.prepareProvider and begin_prepare(of)
  local asked = { change = begin_rename(of) }
  of.old = word
  if word ~= '' then
    asked.places, asked.more = check.places(of, of.old)
  end
  if prepare then
    local result, err = prepare()
    if not result and word ~= '' then
      remind(of, paths.resolve(vim.api.nvim_buf_get_name(of.spot.bufnr)))
      result, err = begin_prepare(of)()
      asked.change = begin_rename(of)
    end
    if not result then
      local text = 'what stands at %s cannot be renamed%s; line and column must be on a name of this project'
      local why = err and (' (%s)'):format(err.message) or ''
      return nil, errors.new('not_found', text:format(navigation.name(of.spot), why))
    end
    of.old = name_in(of, result, word)
  end
  if of.old ~= word or word == '' then
    asked.places, asked.more = check.places(of, of.old)
  end
  return asked
end

--- A plan that leaves nothing out.
---@param of mcp-tools.lsp.Renaming
---@param asked mcp-tools.lsp.RenameAsked
---@return mcp-tools.lsp.Plan?
---@return boolean|mcp-tools.Error sure
local function complete(of, asked)
  local over = vim.uv.hrtime() + PATIENCE_MS * 1e6
  while true do
    local change, err = asked.change()
    if not change then
      local text = ('%s does not rename what stands at %s'):format(of.client.name, navigation.name(of.spot))
      return nil, err or errors.new('not_found', text)
    end
    local plan
    plan, err = workspace_edit.plan(of.ctx, change, of.client)
    if not plan then
      return nil, err --[[@as mcp-tools.Error]]
    elseif plan.count == 0 then
      return nil, errors.new('not_found', ('%s finds nothing to rename'):format(of.client.name))
    end
    local place, sure, missing = check.left_out(of, plan, asked.places, asked.more)
    if not place then
      return plan, sure
    elseif vim.uv.hrtime() > over then
      local text = '%s would leave out %s, which has the old name; nothing has been changed.'
        .. ' It may still be indexing: wait with lsp_status, then try again'
      return nil, errors.new('busy', text:format(of.client.name, place))
    end
    remind(of, missing.path)
    asked.change = begin_rename(of)
    asked.places, asked.more = check.places(of, of.old)
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
  local asked
  asked, err = begin(of)
  if not asked then
    return nil, err
  elseif of.old == of.new then
    return nil, errors.new('validation_error', ('new_name: it is called %s already'):format(of.new))
  end
  local plan, sure = complete(of, asked)
  if not plan then
    return nil, sure --[[@as mcp-tools.Error]]
  end
  local conflict = check.conflict(of, plan)
  if conflict then
    return nil, errors.new('validation_error', conflict)
  end
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
  if workspace_edit.is_changed(files) then
    answer.places = nil -- those that were proposed
    answer.checked = ('no: the person has %s a part of it'):format(files.rejected and 'rejected' or 'changed')
    return workspace_edit.bounded(answer)
  end
  local text = sure and 'no reference to %s is left' or 'no: the text has too many places of %s to be checked'
  answer.checked = text:format(of.old)
  return workspace_edit.bounded(answer)
end

--- The word at a place of an open file, for a person to whom line and column say little.
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

--- What is said of a call before it runs.
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
  local what = word and ('"%s"'):format(word) or 'what stands'
  local text = 'renames %s at %s, line %s, %s, to %s in all of the project'
  text = text:format(what, where, args.line or 'of the cursor', at, args.new_name)
  return approval_diff.preview(METHOD, args, text, M.run, again)
end

return M
