--- Lists code actions of a file or lines, and applies one.

local approval_diff = require('mcp-tools.editor.lsp.approval_diff')
local arguments = require('mcp-tools.editor.arguments')
local code_actions = require('mcp-tools.editor.lsp.code_actions')
local errors = require('mcp-tools.errors')
local result = require('mcp-tools.editor.result')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local METHOD = 'textDocument/codeAction'

--- Plain words for the kinds of LSP.
local KINDS = {
  fix = 'quickfix',
  extract = 'refactor.extract',
  inline = 'refactor.inline',
  rewrite = 'refactor.rewrite',
  refactoring = 'refactor',
  ['quick fix'] = 'quickfix',
  ['fix all'] = 'source.fixAll',
  ['organize imports'] = 'source.organizeImports',
  ['sort imports'] = 'source.organizeImports',
  ['remove unused imports'] = 'source.organizeImports',
}

---@param word string
---@return string
local function kind_of(word)
  return KINDS[word:lower():gsub('[_-]', ' ')] or word
end

--- Returns the listed actions that `apply` means: by title, otherwise by a part of it or by kind.
---@param list table[]
---@param apply string
---@return table[] matches
local function matching(list, apply)
  local wanted, kind = apply:lower(), kind_of(apply)
  local exact, others = {}, {}
  for _, action in ipairs(list) do
    local title = action.title:lower()
    if not action.disabled and title == wanted then
      table.insert(exact, action)
    elseif
      not action.disabled and (title:find(wanted, 1, true) or vim.startswith((action.kind or '') .. '.', kind .. '.'))
    then
      table.insert(others, action)
    end
  end
  return #exact > 0 and exact or others
end

--- Returns titles of actions for an error.
---@param list table[]
---@return string
local function titles(list)
  local shown = vim.tbl_map(function(action)
    return action.title
  end, vim.list_slice(list, 1, 10))
  return #shown > 0 and table.concat(shown, '; ') or 'none'
end

---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
local function run(ctx, args)
  local id = args.apply
  if not id then
    return code_actions.list(ctx, args)
  elseif not code_actions.is_listed(id) and (args.path or args.bufnr) then
    local kind = kind_of(id)
    local is_kind = kind ~= id or kind:find('^%l+%.%a') ~= nil
    -- Servers return some kinds only to a client that asks for them.
    local of_kind = is_kind and not args.kinds and vim.tbl_extend('force', args, { kinds = { kind } }) or args
    local listed, err = code_actions.list(ctx, of_kind)
    local found = listed and matching(listed.actions, id) or {}
    if listed and #found == 0 and of_kind ~= args then
      listed, err = code_actions.list(ctx, args)
      found = listed and matching(listed.actions, id) or {}
    end
    listed = errors.unwrap(listed, err)
    if #found ~= 1 then
      local offered = #found == 0 and listed.actions or found
      local text = #found == 0 and 'no action matches %q; these are offered'
        or 'several actions match %q; apply one by its id'
      text = text:format(id)
      if args.preview then
        return nil, errors.new('not_found', ('apply: %s: %s'):format(text, titles(offered)))
      end
      return { actions = offered, note = text }
    end
    id = found[1].id
  end
  local answer, err, text, ticks = code_actions.apply(ctx, id, args.preview)
  if answer and args.preview then
    approval_diff.keep(METHOD, args, text --[[@as string]], ticks --[[@as table]])
  end
  return answer, err
end

return {
  name = 'code_actions',
  title = 'Quick fixes and refactorings',
  description = "Lists the language server's quick fixes and refactorings of a line or file (remove unused imports,"
    .. ' organize imports, extract, inline), or applies one. Open files stay unsaved.',
  search_hint = 'quick fix, auto import, fix all, extract function, inline variable',
  args = {
    path = { type = 'string', description = 'File' },
    line = { type = 'integer', description = 'Line; default: the whole file', minimum = 1 },
    end_line = { type = 'integer', description = 'Last line of a range', minimum = 1 },
    kinds = {
      type = 'array',
      items = { type = 'string' },
      description = 'Such as quickfix, refactor.extract, source.organizeImports',
    },
    apply = {
      type = 'string',
      description = 'Id, title or kind of the action to apply',
      minLength = 1,
    },
    preview = { type = 'boolean', description = 'Only return the diff', default = false, hidden = true },
    limit = arguments.hidden(arguments.limit('actions', 100, code_actions.MAX_LISTED)),
    symbol = { type = 'string', description = 'Name on `line`', hidden = true },
    column = { type = 'integer', description = '1-based column, in characters', minimum = 1, hidden = true },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
  },
  prepare = function(args)
    if type(args.kinds) == 'table' then
      args.kinds = vim.tbl_map(function(kind)
        return type(kind) == 'string' and kind_of(kind) or kind
      end, args.kinds)
    end
    return args
  end,
  annotations = { read_only = false, destructive = true },
  recommended = true,
  needs_approval = function(args)
    return args.apply ~= nil and not args.preview and 'it changes files of the project'
  end,
  preview = function(args, again)
    if not args.apply then
      return nil
    elseif code_actions.is_listed(args.apply) or not (args.path or args.bufnr) then
      return approval_diff.preview(METHOD, args, errors.unwrap(code_actions.title(args.apply)), run, again)
    end
    errors.check(approval_diff.refusal(args, METHOD))
    local where = args.line and ('line %d of %s'):format(args.line, args.path or 'the buffer') or args.path
    return approval_diff.preview(METHOD, args, ('applies %q in %s'):format(args.apply, where), run, again)
  end,
  run = function(ctx, args)
    if not args.path and not args.bufnr and not args.apply then
      return nil, errors.new('validation_error', 'path: is required to list actions')
    end
    return run(ctx, args)
  end,
  render = function(value)
    if not value.actions then
      return workspace_edit.text(value, value.title)
    end
    local rows = { value.note or ('%s; apply one by its id'):format(result.count(#value.actions, 'action')) }
    for _, action in ipairs(value.actions) do
      local kind = action.kind and (' [%s]'):format(action.kind) or ''
      local why = action.disabled and (' (disabled: %s)'):format(action.disabled) or ''
      local where = action.line and ('line %d: '):format(action.line) or ''
      table.insert(rows, ('%s%s: %s%s%s'):format(action.id, kind, where, action.title, why))
    end
    return table.concat(rows, '\n')
  end,
}
