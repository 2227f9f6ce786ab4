--- Renames a symbol in the whole project. Refuses a rename that would miss references, or would use the name of another
--- symbol in the same scope. Servers often do not list parameters and locals there.
---
--- A server that has not read the whole project renames a part of it and reports success. Therefore the project is
--- searched for the old name, and the server is asked for the definition at each place that it does not change.

local access = require('mcp-tools.privacy.access')
local approval_diff = require('mcp-tools.editor.lsp.approval_diff')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local args_of = require('mcp-tools.editor.lsp.args')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.position')
local request = require('mcp-tools.editor.lsp.request')
local search = require('mcp-tools.editor.search')
local server_state = require('mcp-tools.editor.lsp.server_state')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local watched_files = require('mcp-tools.editor.lsp.watched_files')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local M = {}

local METHOD = 'textDocument/rename'
--- How long the request is repeated while the answer misses a reference, ms.
local PATIENCE_MS = 6000
--- Maximum number of attempts: the first one opens files, which the server then begins to read.
local TRIES = 3
--- Wait for a server to read a file that it was notified of, ms.
local REREAD_MS = 1200

--- Maximum number of places with the name; a more common name is not checked.
local MAX_PLACES = 500
--- Maximum number of unchanged places for which the server is asked.
local MAX_ASKED = 100

---@class mcp-tools.lsp.Renaming
---@field ctx mcp-tools.Ctx
---@field client vim.lsp.Client
---@field spot mcp-tools.lsp.Spot
---@field old? string nil until the server has reported it
---@field new string

---@class mcp-tools.lsp.Occurrence of the old name
---@field path string resolved
---@field line integer from 1
---@field byte integer from 0

--- Searches the project for a name, in the text of the editor where a file is open.
---@param rename mcp-tools.lsp.Renaming
---@param name string
---@param max? integer number of places
---@return mcp-tools.lsp.Occurrence[]
---@return boolean more there are more places, or the search failed
local function find_name(rename, name, max)
  local found = search.find(rename.ctx, { query = name, word = true }, { max = max or MAX_PLACES })
  local places = {}
  for _, file in ipairs(found and found.files or {}) do
    for _, match in ipairs(file.matches) do
      table.insert(places, { path = file.path, line = match.row + 1, byte = match.col })
    end
  end
  return places, not found or found.cut or found.skipped > 0
end

--- Returns the places that a plan does not change.
---@param plan mcp-tools.lsp.Plan
---@param places mcp-tools.lsp.Occurrence[]
---@return mcp-tools.lsp.Occurrence[]
local function unchanged(plan, places)
  local changed = {}
  for _, file in ipairs(plan.files) do
    for _, each in ipairs(file.edits) do
      changed[('%s %d %d'):format(file.resolved, each.start_line + 1, each.start_col)] = true
    end
  end
  return vim.tbl_filter(function(place)
    return not changed[('%s %d %d'):format(place.path, place.line, place.byte)]
  end, places)
end

--- Returns the buffer of a file if it is served by the renaming client.
---@param rename mcp-tools.lsp.Renaming
---@param path string
---@return integer?
local function buffer_served(rename, path)
  local found = target.await(rename.ctx, { path = path }, { load = true })
  local list = found and lsp.clients(rename.ctx, found.bufnr, 'textDocument/definition')
  return list and vim.list_contains(list, rename.client) and found.bufnr or nil
end

--- Requests the definitions of a position. Those in files of the plan are returned.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param params table
---@param bufnr integer
---@return fun(): { file: mcp-tools.lsp.FileChange, at: lsp.Position }[] wait returns the answer
local function begin_definitions(rename, plan, params, bufnr)
  local answer = request.begin(rename.ctx, rename.client, 'textDocument/definition', params, bufnr)
  return function()
    local result, found = answer(), {}
    for _, item in ipairs(result and locations.items({ { result = result, client = rename.client } }) or {}) do
      local path = item.uri:find('^file:') and paths.resolve(vim.uri_to_fname(item.uri))
      for _, file in ipairs(plan.files) do
        if file.resolved == path then
          table.insert(found, { file = file, at = item.range.start })
        end
      end
    end
    return found
  end
end

--- Asks whether a place refers to the renamed symbol.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param place mcp-tools.lsp.Occurrence
---@param bufnr integer
---@return fun(): boolean wait returns the answer
local function begin_check(rename, plan, place, bufnr)
  local line = vim.api.nvim_buf_get_lines(bufnr, place.line - 1, place.line, false)[1] or ''
  local params = lsp.document_params(bufnr, {
    position = { line = place.line - 1, character = position.units(line, place.byte, rename.client.offset_encoding) },
  })
  local answer = begin_definitions(rename, plan, params, bufnr)
  return function()
    for _, found in ipairs(answer()) do
      for _, each in ipairs(found.file.edits) do
        if each.start_line == found.at.line then
          return true
        end
      end
    end
    return false
  end
end

--- Whether the servers of a buffer may also serve another file.
---@param bufnr integer
---@param path string
---@return boolean
local function is_same_language(bufnr, path)
  local own = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(bufnr), ':e')
  return vim.fn.fnamemodify(path, ':e') == own
    or vim.filetype.match({ filename = path }) == vim.bo[bufnr].filetype and vim.bo[bufnr].filetype ~= ''
end

--- Returns a place that refers to the renamed symbol and would keep the old name.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@param places mcp-tools.lsp.Occurrence[]
---@param more boolean there are more places
---@return string? missed
---@return boolean sure every place was checked
---@return mcp-tools.lsp.Occurrence? place the same, as data
local function missed_reference(rename, plan, places, more)
  local left, asked = unchanged(plan, places), {}
  local readable, loaded = access.files(rename.ctx.root), {}
  for i = 1, math.min(#left, MAX_ASKED) do
    local place = left[i]
    if loaded[place.path] == nil then
      local known = readable(place.path) and is_same_language(rename.spot.bufnr, place.path)
      loaded[place.path] = known and buffer_served(rename, place.path) or false
    end
  end
  for i = 1, math.min(#left, MAX_ASKED) do
    local bufnr = loaded[left[i].path]
    if bufnr then
      table.insert(asked, { place = left[i], refers_to_it = begin_check(rename, plan, left[i], bufnr) })
    end
  end
  for _, each in ipairs(asked) do -- in a second loop, so that the server works on all requests at once
    if each.refers_to_it() then
      local place = each.place
      return ('%s:%d'):format(access.shown(place.path, rename.ctx.root), place.line), true, place
    end
  end
  return nil, not more and #left <= MAX_ASKED
end

--- Returns the symbol that is defined at a position.
---@param tree mcp-tools.SymbolNode[]
---@param at lsp.Position
---@param name string
---@return mcp-tools.SymbolNode?
local function defined_at(tree, at, name)
  local function starts_before(node)
    return node.at[1] == at.line and node.at[2] <= at.character
  end
  local named
  return symbol_tree.each(tree, function(node)
    if starts_before(node) and symbol_tree.word(node.name) == name then
      named = node
    end
    return starts_before(node) and at.character <= node.at[2] + #node.name and node
  end) or named -- some servers include the keyword before the name in the range
end

--- Returns the symbol at a position, and the symbols of its scope.
---@param tree mcp-tools.SymbolNode[]
---@param at lsp.Position
---@param name string of the symbol
---@return mcp-tools.SymbolNode? own nil if the server does not list it, such as a local variable
---@return mcp-tools.SymbolNode[] siblings
---@return string? container
local function scope_of(tree, at, name)
  local own = defined_at(tree, at, name)
  local container = own and own.parent or not own and symbol_tree.around(tree, at.line + 1) or nil
  return own, container and container.children or tree, container and container.name
end

--- Returns the buffer and position of the definition of the renamed symbol.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return integer bufnr
---@return lsp.Position
local function definition(rename, plan)
  local params = lsp.position_params(rename.spot.bufnr, rename.spot.line, rename.spot.column)(rename.client)
  if clients.supports(rename.client, 'textDocument/definition', rename.spot.bufnr) then
    local found = begin_definitions(rename, plan, params, rename.spot.bufnr)()[1]
    if found then
      return found.file.bufnr, found.at
    end
  end
  return rename.spot.bufnr, params.position
end

--- Returns an error message if a definition in the same scope already has the new name.
---@param rename mcp-tools.lsp.Renaming
---@param plan mcp-tools.lsp.Plan
---@return string?
local function conflict(rename, plan)
  local places, more = find_name(rename, rename.new, 1)
  if #places == 0 and not more then
    return nil
  end
  local bufnr, at = definition(rename, plan)
  local method = 'textDocument/documentSymbol'
  if not clients.supports(rename.client, method, bufnr) then
    return nil
  end
  local result = request.ask(rename.ctx, rename.client, method, lsp.document_params(bufnr), bufnr)
  local tree = symbol_tree.of_server(result, rename.client.offset_encoding, time_slice.of(rename.ctx))
  local own, siblings, container = scope_of(tree, at, rename.old)
  for _, node in ipairs(siblings) do
    if node.name == rename.new and node ~= own then
      local where = container or access.shown(vim.api.nvim_buf_get_name(bufnr), rename.ctx.root)
      local text = 'conflict: %s already defines %s (line %d); nothing was changed'
      return text:format(where, rename.new, node.at[1] + 1)
    end
  end
end

--- Makes a server read a file again that it may have forgotten when the file was closed.
---@param rename mcp-tools.lsp.Renaming
---@param path string resolved
local function reread(rename, path)
  disk.notify_servers(path, 'Created')
  server_state.pause(rename.ctx, REREAD_MS)
end

--- Asks whether the symbol can be renamed, and for its name.
---@param rename mcp-tools.lsp.Renaming
---@return fun(): lsp.PrepareRenameResult?, mcp-tools.Error? wait returns the answer
local function begin_prepare(rename)
  local at = lsp.position_params(rename.spot.bufnr, rename.spot.line, rename.spot.column)(rename.client)
  return request.begin(rename.ctx, rename.client, 'textDocument/prepareRename', at, rename.spot.bufnr)
end

---@param rename mcp-tools.lsp.Renaming
---@return fun(): table?, mcp-tools.Error? wait returns the changes
local function begin_rename(rename)
  local spot = rename.spot
  local params = lsp.position_params(spot.bufnr, spot.line, spot.column, { newName = rename.new })(rename.client)
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
---@field change fun(): table?, mcp-tools.Error? waits for the WorkspaceEdit
---@field places mcp-tools.lsp.Occurrence[]
---@field more boolean there are more places

--- Sends all requests of a rename at once: whether it is possible, what changes, and which places have the old name.
---@param rename mcp-tools.lsp.Renaming its `old` is set here
---@return mcp-tools.lsp.RenameAsked?
---@return mcp-tools.Error? err it cannot be renamed
local function begin(rename)
  local word = args_of.word(rename.spot)
  local provider = rename.client.server_capabilities.renameProvider
  local prepare = type(provider) == 'table' and provider.prepareProvider and begin_prepare(rename)
  local asked = { change = begin_rename(rename) }
  rename.old = word
  if word ~= '' then
    asked.places, asked.more = find_name(rename, rename.old)
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
      return nil, errors.new('not_found', text:format(args_of.spot_text(rename.spot), why))
    end
    rename.old = name_in(rename, result, word)
  end
  if rename.old ~= word or word == '' then
    asked.places, asked.more = find_name(rename, rename.old)
  end
  return asked
end

--- Returns a plan that misses no reference.
---@param rename mcp-tools.lsp.Renaming
---@param asked mcp-tools.lsp.RenameAsked
---@return mcp-tools.lsp.Plan?
---@return boolean|mcp-tools.Error sure all places were checked
local function complete(rename, asked)
  local deadline = vim.uv.hrtime() + PATIENCE_MS * 1e6
  while true do
    local change, err = asked.change()
    if not change then
      local text = ('%s does not rename the symbol at %s'):format(rename.client.name, args_of.spot_text(rename.spot))
      return nil, err or errors.new('not_found', text)
    end
    local plan
    plan, err = workspace_edit.plan(rename.ctx, change, rename.client)
    if not plan then
      return nil, err --[[@as mcp-tools.Error]]
    elseif plan.count == 0 then
      return nil, errors.new('not_found', ('%s finds nothing to rename'):format(rename.client.name))
    end
    local place, sure, missing = missed_reference(rename, plan, asked.places, asked.more)
    if not place then
      return plan, sure
    elseif vim.uv.hrtime() > deadline then
      local text = '%s would miss the reference at %s, so nothing was changed.'
        .. ' It may still be indexing; editor_servers shows its state. Try again'
      return nil, errors.new('busy', text:format(rename.client.name, place))
    end
    reread(rename, missing.path)
    asked.change = begin_rename(rename)
    asked.places, asked.more = find_name(rename, rename.old)
  end
end

--- Renames the symbol at a place, or returns the diff of a preview.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { new_name: string, preview: boolean, timeout_ms: integer }
---@param spot mcp-tools.lsp.Spot
---@return table?
---@return mcp-tools.Error? err
function M.run(ctx, args, spot)
  local list, err = lsp.clients(ctx, spot.bufnr, METHOD)
  if not list then
    return nil, err
  end
  local rename = { ctx = ctx, client = list[1], spot = spot, new = args.new_name }
  watched_files.notify_servers(ctx)
  local function unready(incomplete)
    local text = '%s, so a rename would be incomplete; nothing was changed. editor_servers shows its state'
    return errors.new('busy', text:format(incomplete))
  end
  local deadline = vim.uv.hrtime() + args.timeout_ms * 1e6
  local plan, sure
  for _ = 1, TRIES do
    local left = math.max((deadline - vim.uv.hrtime()) / 1e6, 0)
    local incomplete = lsp.await_ready_for(ctx, rename.client, spot.bufnr, METHOD, left)
    if incomplete then
      return nil, unready(incomplete)
    end
    local asked
    asked, err = begin(rename)
    if not asked then
      return nil, err
    elseif rename.old == rename.new then
      local text = "new_name: the symbol is already called '%s'"
      return nil, errors.new('validation_error', text:format(rename.new))
    end
    plan, sure = complete(rename, asked)
    if not plan then
      return nil, sure --[[@as mcp-tools.Error]]
    end
    if not lsp.why_indexing(rename.client) then
      break
    end
    plan = nil -- it was indexing, so the plan may be incomplete
  end
  if not plan then
    return nil, unready(lsp.why_indexing(rename.client) or rename.client.name .. ' has begun to index again')
  end
  local taken = conflict(rename, plan)
  if taken then
    return nil, errors.new('validation_error', taken)
  end
  local answer = { old_name = rename.old, new_name = rename.new, files = {} }
  err = workspace_edit.apply_or_preview(ctx, plan, answer, args.preview)
  if err then
    return nil, err
  elseif args.preview then
    local ticks = {}
    for _, file in ipairs(plan.files) do
      ticks[file.bufnr] = file.changedtick
    end
    approval_diff.keep(METHOD, args, answer.diff, ticks)
    return workspace_edit.bounded(answer)
  elseif not answer.places then -- changed in a review
    answer.checked = ('no: the user %s a part of the rename'):format(answer.rejected and 'rejected' or 'changed')
    return workspace_edit.bounded(answer)
  end
  local text = sure and 'no reference to %s is left' or 'no: too many occurrences of %s to check'
  answer.checked = text:format(rename.old)
  return workspace_edit.bounded(answer)
end

--- Returns the text that is shown for approval of a rename.
---@param args table
---@param run fun(ctx: mcp-tools.Ctx, args: table): table?, mcp-tools.Error?
---@param again? fun(err: mcp-tools.Error?)
---@return string?
---@return mcp-tools.Error? err
function M.preview(args, run, again)
  local is_search = args.symbol and not args.line and not args.path and not args.bufnr
  local err = not is_search and approval_diff.refusal(args, METHOD) or nil
  if err then
    return nil, err
  end
  local what = args.symbol and ('"%s"'):format(args.symbol) or 'the symbol at the cursor'
  if args.line then
    what = ('%s in line %d of %s'):format(args.symbol and what or 'the symbol', args.line, args.path or 'the file')
  end
  local text = ('renames %s to %s in the whole project'):format(what, args.new_name)
  return approval_diff.preview(METHOD, args, text, run, again)
end

return M
