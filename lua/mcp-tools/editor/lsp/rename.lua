--- A name changed in all of a project: only when the server is ready, complete, and checked afterwards.
---
--- Receives: the arguments of a tool.
--- Sends: files and places that were changed; or why nothing has changed.
--- Does not know about: approval, what the tool is called.
--- Longer than others: asking, looking for what is left out, and looking again afterwards are one promise.
---
--- A server that has not read all of the project renames a part of it, and says that it succeeded. So the name is
--- looked for in the project's text: every place that the server leaves out is asked for what it means, and one that
--- means the renamed thing stops it. Afterwards the new name must have as many references as the old one had.

local access = require('mcp-tools.files.access')
local beforehand = require('mcp-tools.editor.lsp.beforehand')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local grep = require('mcp-tools.editor.search.grep')
local locations = require('mcp-tools.editor.lsp.locations')
local log = require('mcp-tools.log')
local lsp = require('mcp-tools.editor.lsp')
local open = require('mcp-tools.editor.buffer.open')
local outside = require('mcp-tools.editor.lsp.outside')
local paths = require('mcp-tools.files.paths')
local places = require('mcp-tools.editor.lsp.places')
local position = require('mcp-tools.editor.lsp.position')
local request = require('mcp-tools.editor.lsp.request')
local text_search = require('mcp-tools.editor.lsp.text_search')
local trial = require('mcp-tools.editor.lsp.trial')
local wait = require('mcp-tools.editor.lsp.wait')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local M = {}

local METHOD = 'textDocument/rename'
--- Asked again for so long when a place is left out, ms.
local PATIENCE_MS = 6000
--- A server that is told of a file has looked at it by then, ms.
local REMINDED_MS = 1200
--- Lines of the project that have the name; more are a word of the language.
local MAX_LINES = 500
--- Places that are left out by the server and asked for what they mean.
local MAX_ASKED = 40
--- Servers look at the changed files by then, ms.
local CHECK_MS = 6000

---@class mcp-tools.lsp.Renaming
---@field ctx mcp-tools.Ctx
---@field client vim.lsp.Client
---@field spot mcp-tools.lsp.Spot
---@field old string
---@field new string

--- Has a server look at a file again that it may have let go when it was closed.
---@param of mcp-tools.lsp.Renaming
---@param path string resolved
local function remind(of, path)
  disk.tell_servers(path, 1)
  wait.pause(of.ctx, REMINDED_MS)
end

--- Is the thing at a place one that can be renamed, and how is it called?
---@param of mcp-tools.lsp.Renaming
---@return string? name
---@return mcp-tools.Error? err
local function name_of(of)
  local word = places.word(of.spot)
  local provider = of.client.server_capabilities.renameProvider
  if type(provider) ~= 'table' or not provider.prepareProvider then
    return word
  end
  local at = lsp.place(of.spot.bufnr, of.spot.line, of.spot.column)(of.client)
  local function prepare()
    return request.ask(of.ctx, of.client, 'textDocument/prepareRename', at, of.spot.bufnr)
  end
  local result, err = prepare()
  if not result and word ~= '' then
    remind(of, paths.resolve(vim.api.nvim_buf_get_name(of.spot.bufnr)))
    result, err = prepare()
  end
  if not result then
    local text = 'what stands at %s cannot be renamed%s; line and column must be on a name of this project'
    local why = err and (' (%s)'):format(err.message) or ''
    return nil, errors.new('not_found', text:format(places.name(of.spot), why))
  end
  local range = result.range or result.start and result
  if not range or range.start.line ~= range['end'].line then
    return result.placeholder or word
  end
  local line = vim.api.nvim_buf_get_lines(of.spot.bufnr, range.start.line, range.start.line + 1, false)[1] or ''
  local first = position.byte(line, range.start.character, of.client.offset_encoding)
  local last = position.byte(line, range['end'].character, of.client.offset_encoding)
  return line:sub(first + 1, last)
end

--- How many places the thing at a position is used in; nil where the server cannot tell.
---@param of mcp-tools.lsp.Renaming
---@param params table
---@return integer?
local function count(of, params)
  if not clients.supports(of.client, 'textDocument/references', of.spot.bufnr) then
    return nil
  end
  local with = vim.tbl_extend('force', params, { context = { includeDeclaration = true } })
  local result = request.ask(of.ctx, of.client, 'textDocument/references', with, of.spot.bufnr)
  return result and #locations.items({ { result = result, client = of.client } })
end

--- Places of the name in the project's text that a plan does not change.
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return { path: string, line: integer, byte: integer }[] left
---@return boolean? more
local function left_out(of, plan)
  local changed = {}
  for _, file in ipairs(plan.files) do
    for _, each in ipairs(file.edits) do
      changed[('%s %d %d'):format(file.place, each.start_line + 1, each.start_col)] = true
    end
  end
  local root = paths.real_root(of.ctx.root)
  local hits, _, more = grep.find(of.ctx, of.old, root, MAX_LINES)
  if not hits then -- no program that searches
    hits, more = text_search.find(of.ctx, of.spot.bufnr, of.old, MAX_LINES)
  end
  local left, name = {}, vim.pesc(of.old)
  for _, hit in ipairs(hits) do
    local path = paths.resolve(hit.path:sub(1, 1) == '/' and hit.path or root .. '/' .. hit.path)
    for first in hit.text:gmatch('()%f[%w_\128-\255]' .. name .. '%f[^%w_\128-\255]') do
      if not changed[('%s %d %d'):format(path, hit.line, first - 1)] then
        table.insert(left, { path = path, line = hit.line, byte = first - 1 })
      end
    end
  end
  return left, more
end

--- Does a place mean the thing that is renamed?
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param place { path: string, line: integer, byte: integer }
---@return boolean
local function means_it(of, plan, place)
  local bufnr = of.ctx:await(function(done)
    open.load(place.path, done)
  end)
  if not bufnr then
    return false
  end
  local served = lsp.clients(of.ctx, bufnr, 'textDocument/definition')
  if not served or not vim.list_contains(served, of.client) then
    return false
  end
  local line = vim.api.nvim_buf_get_lines(bufnr, place.line - 1, place.line, false)[1] or ''
  local params = lsp.document(bufnr, {
    position = { line = place.line - 1, character = position.units(line, place.byte, of.client.offset_encoding) },
  })
  local result = request.ask(of.ctx, of.client, 'textDocument/definition', params, bufnr)
  for _, item in ipairs(result and locations.items({ { result = result, client = of.client } }) or {}) do
    local path = item.uri:find('^file:') and paths.resolve(vim.uri_to_fname(item.uri))
    for _, file in ipairs(plan.files) do
      for _, each in ipairs(file.edits) do
        if file.place == path and each.start_line == item.range.start.line then
          return true
        end
      end
    end
  end
  return false
end

--- Is a file one that the servers of a buffer may know?
---@param bufnr integer
---@param path string
---@return boolean
local function is_alike(bufnr, path)
  local own = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(bufnr), ':e')
  return vim.fn.fnamemodify(path, ':e') == own
    or vim.filetype.match({ filename = path }) == vim.bo[bufnr].filetype and vim.bo[bufnr].filetype ~= ''
end

--- A place that means the renamed thing and would keep the old name.
---@param of mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return string? missed
---@return boolean sure every place was looked at
---@return { path: string }? place of the missed one
local function missed(of, plan)
  local left, more = left_out(of, plan)
  for i = 1, math.min(#left, MAX_ASKED) do
    local place = left[i]
    local allowed = access.path(place.path, of.ctx.root)
    if allowed and is_alike(of.spot.bufnr, place.path) then
      if means_it(of, plan, place) then
        return ('%s:%d'):format(access.shown(place.path, of.ctx.root), place.line), true, place
      end
    end
  end
  return nil, not more and #left <= MAX_ASKED
end

---@param of mcp-tools.lsp.Renaming
---@return mcp-tools.lsp.Plan?
---@return mcp-tools.Error? err
local function ask(of)
  local params = lsp.place(of.spot.bufnr, of.spot.line, of.spot.column, { newName = of.new })(of.client)
  local change, err = request.ask(of.ctx, of.client, METHOD, params, of.spot.bufnr)
  if not change then
    local text = ('%s does not rename what stands at %s'):format(of.client.name, places.name(of.spot))
    return nil, err or errors.new('not_found', text)
  end
  return workspace_edit.plan(of.ctx, change, of.client)
end

--- A plan that leaves nothing out.
---@param of mcp-tools.lsp.Renaming
---@return mcp-tools.lsp.Plan?
---@return boolean|mcp-tools.Error sure
local function complete(of)
  local over = vim.uv.hrtime() + PATIENCE_MS * 1e6
  while true do
    local plan, err = ask(of)
    if not plan then
      return nil, err --[[@as mcp-tools.Error]]
    elseif plan.count == 0 then
      return nil, errors.new('not_found', ('%s finds nothing to rename'):format(of.client.name))
    end
    local place, sure, missing = missed(of, plan)
    if not place then
      return plan, sure
    elseif vim.uv.hrtime() > over then
      local text = '%s would leave out %s, which has the old name; nothing has been changed.'
        .. ' It may still be indexing: wait with lsp_status, then try again'
      return nil, errors.new('busy', text:format(of.client.name, place))
    end
    remind(of, missing.path)
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
  outside.tell(of.ctx, true)
  local over = vim.uv.hrtime() + CHECK_MS * 1e6
  local params = moved(of, plan)
  while true do
    local now = count(of, params) or 0
    if now >= before or vim.uv.hrtime() > over then
      return now
    end
    wait.pause(of.ctx, 150)
  end
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
  local byte = line and vim.fn.byteidx(line, args.column - 1) or -1
  if byte < 0 then
    return nil
  end
  local word = line:sub(1, byte):match('[%w_\128-\255]*$') .. line:sub(byte + 1):match('^[%w_\128-\255]*')
  return word ~= '' and word or nil
end

---@param ctx mcp-tools.Ctx in a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
function M.run(ctx, args)
  local spot, err = places.spot(ctx, args)
  if not spot then
    return nil, err
  end
  local list
  list, err = lsp.clients(ctx, spot.bufnr, METHOD)
  if not list then
    return nil, err
  end
  local of = { ctx = ctx, client = list[1], spot = spot, new = args.new_name }
  outside.tell(ctx)
  local incomplete = lsp.settle(ctx, of.client, spot.bufnr, METHOD, args.wait_ms)
  if incomplete then
    local text =
      '%s, and a rename now would change a part of the project; nothing has been changed. Wait with lsp_status'
    return nil, errors.new('busy', text:format(incomplete))
  end
  of.old, err = name_of(of)
  if not of.old then
    return nil, err
  elseif of.old == of.new then
    return nil, errors.new('validation_error', ('new_name: it is called %s already'):format(of.new))
  end
  local before = count(of, lsp.place(spot.bufnr, spot.line, spot.column)(of.client))
  local plan, sure = complete(of)
  if not plan then
    return nil, sure --[[@as mcp-tools.Error]]
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
    trial.keep(METHOD, what, answer.diff, ticks)
    return answer
  end
  local files
  files, err = workspace_edit.apply(ctx, plan)
  if not files then
    return nil, err
  end
  answer.files = workspace_edit.summary(plan, files)
  if not before then
    answer.checked = ('no: %s cannot list references'):format(of.client.name)
    return answer
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
  if now < before then
    local fault = ctx:await(function(done)
      workspace_edit.take_back(plan, files, done)
    end)
    local text = 'afterwards %s had %d references where %s had %d; %s'
    local what = fault and ('it could not be taken back: ' .. fault.message) or 'everything has been taken back'
    return nil, errors.new('tool_error', text:format(of.new, now, of.old, before, what))
  end
  answer.checked = ('%d references to %s%s'):format(
    now,
    of.new,
    sure and (', none to %s is left'):format(of.old)
      or ('; the text has too many places of %s to be looked at'):format(of.old)
  )
  return answer
end

--- What is said of a call before it runs.
---@param args table
---@param again? fun(err: mcp-tools.Error?)
---@return string?
---@return mcp-tools.Error? err
function M.preview(args, again)
  local err = beforehand.refusal_at(args, METHOD)
  if err then
    return nil, err
  end
  local where = args.path or (args.bufnr and 'buffer ' .. args.bufnr) or 'the current file'
  local at = args.symbol and ('%q'):format(args.symbol) or ('column %s'):format(args.column or 'of the cursor')
  local word = word_at(args)
  local what = word and ('"%s"'):format(word) or 'what stands'
  local text = 'renames %s at %s, line %s, %s, to %s in all of the project'
  text = text:format(what, where, args.line or 'of the cursor', at, args.new_name)
  return trial.preview(METHOD, args, text, M.run, again)
end

return M
