--- Overviews: outlines of one file, several, or a folder, as one answer that stays within bounds.
---
--- Receives: paths, the ctx of a `run` tool.
--- Sends: text.
--- Does not know about: where symbols come from.

local access = require('mcp-tools.files.access')
local errors = require('mcp-tools.errors')
local fit = require('mcp-tools.editor.result.fit')
local nodes = require('mcp-tools.editor.symbol.nodes')
local outline = require('mcp-tools.editor.symbol.outline')
local search_files = require('mcp-tools.editor.search.files')
local source = require('mcp-tools.editor.symbol.source')
local symbol = require('mcp-tools.editor.symbol')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

---@class mcp-tools.Overview
---@field shown string
---@field by string?
---@field why string? there is none
---@field unknown string? the filetype, when nothing knows its symbols
---@field count integer
---@field rows fun(opts: { depth: integer?, small: boolean?, signatures: boolean? }): string[]

local KINDS = {
  full = {},
  plain = { small = false },
  bare = { small = false, signatures = false },
  top = { depth = 1, small = false, signatures = false },
}

---@param each mcp-tools.SymbolSource
---@param pause fun() called between pieces of work
---@return mcp-tools.Overview
local function overview_of(each, pause)
  local bufnr, count = each.bufnr, 0
  local filetype, tick = vim.bo[bufnr].filetype, vim.api.nvim_buf_get_changedtick(bufnr)
  nodes.each(each.file.tree, function()
    count = count + 1
  end)
  local made = {}
  -- As the text is now: what was loaded for this goes before the answer is put together.
  for key, opts in pairs(KINDS) do
    made[key] = outline.rows(each.file.tree, source.lines_of(bufnr), opts)
    pause()
    if not vim.api.nvim_buf_is_loaded(bufnr) or vim.api.nvim_buf_get_changedtick(bufnr) ~= tick then
      return { shown = each.shown, why = 'it changes while it is looked at', count = 0, rows = {} }
    end
  end
  return {
    shown = each.shown,
    by = symbol.by(each.file),
    unknown = each.file.by == 'nothing' and filetype or nil,
    count = count,
    rows = made,
  }
end

---@param ctx mcp-tools.Ctx
---@param path string resolved
---@param serverless mcp-tools.Serverless
---@return mcp-tools.Overview
local function of_path(ctx, path, serverless)
  local each, err = source.find(ctx, { path = path }, serverless)
  if not each then
    local why = err and err.message or 'it cannot be read'
    return { shown = access.shown(path, ctx.root), why = why, count = 0, rows = {} }
  end
  local made = overview_of(each, time_slice.of(ctx))
  source.drop(each)
  return made
end

--- How symbols were found, once where it is the same for all.
---@param list mcp-tools.Overview[]
---@return string? by
local function common_by(list)
  local by
  for _, each in ipairs(list) do
    if by and each.by and each.by ~= by then
      return nil
    end
    by = by or each.by
  end
  return by
end

---@param list mcp-tools.Overview[]
---@param kind 'full'|'plain'|'bare'|'top'|nil nil: counts alone
---@param by string? said above already
---@return string
local function text_of(list, kind, by)
  local out = {}
  for _, each in ipairs(list) do
    local tail = each.why and (': ' .. each.why) or ''
    if each.by and each.by ~= by then
      tail = tail .. (' (by %s)'):format(each.by)
    end
    if kind then
      table.insert(out, each.shown .. tail)
      for _, row in ipairs(each.rows[kind] or {}) do
        table.insert(out, '  ' .. row)
      end
    else
      table.insert(out, ('%s: %d symbols%s'):format(each.shown, each.count, tail))
    end
  end
  return table.concat(out, '\n')
end

---@param list mcp-tools.Overview[]
---@param head string
---@param narrow string
---@return string
function M.answer(list, head, narrow)
  local by = common_by(list)
  local total = 0
  for _, each in ipairs(list) do
    total = total + each.count
  end
  head = head .. (by and (' (by %s)'):format(by) or '')
  local function variant(kind, without)
    return {
      without = without,
      text = function()
        return head .. '\n' .. text_of(list, kind, by)
      end,
    }
  end
  return fit.longest({
    variant('full'),
    variant('plain', 'variables and fields'),
    variant('bare', 'variables, fields and source lines'),
    variant('top', 'more than the top level'),
    variant(nil, 'names, so counts per file'),
    {
      without = 'files to be named',
      text = function()
        return ('%s\n%d symbols'):format(head, total)
      end,
    },
  }, narrow)
end

--- The overview of one buffer or file.
---@param ctx mcp-tools.Ctx in a coroutine
---@param args { path: string?, bufnr: integer? }
---@return string?
---@return mcp-tools.Error? err
function M.of_one(ctx, args)
  local each, err = source.find(ctx, args)
  if not each then
    return nil, err
  end
  local one = overview_of(each, time_slice.of(ctx))
  if one.why then
    return nil, errors.new('busy', ('%s: %s; try again'):format(each.shown, one.why))
  end
  local head = ('%s, %d lines'):format(each.shown, vim.api.nvim_buf_line_count(each.bufnr))
  head = head .. (one.by and (' (by %s)'):format(one.by) or '')
  local function variant(kind, without)
    return {
      without = without,
      text = function()
        local rows = one.rows[kind]
        return head .. '\n' .. (#rows > 0 and table.concat(rows, '\n') or 'no symbols')
      end,
    }
  end
  local text = fit.longest({
    variant('full'),
    variant('plain', 'variables and fields'),
    variant('bare', 'variables, fields and source lines'),
    variant('top', 'more than the top level'),
    {
      without = 'names',
      text = function()
        return ('%s\n%d symbols'):format(head, one.count)
      end,
    },
  }, 'find single ones with symbol_find')
  return each.file.why and ('%s\n(%s)'):format(text, each.file.why) or text
end

--- The overview of a folder or of several files.
---@param ctx mcp-tools.Ctx in a coroutine
---@param list string[] as given
---@param opts { globs: string[]?, limit: integer, offset: integer }
---@return string?
---@return mcp-tools.Error? err
function M.of_many(ctx, list, opts)
  local files, seen, withheld = {}, {}, {}
  for _, path in ipairs(list) do
    local place, err = search_files.place(ctx, path)
    if not place then
      return nil, err
    end
    local found, second = search_files.list(ctx, place, opts.globs)
    if not found then
      return nil, second --[[@as mcp-tools.Error]]
    end
    local judge, kept_back = search_files.judge(ctx, place)
    local pause = time_slice.of(ctx)
    for _, each in ipairs(found) do
      local resolved = judge(each)
      if resolved and not seen[resolved] then
        seen[resolved] = true
        table.insert(files, resolved)
      end
      pause()
    end
    vim.list_extend(withheld, kept_back)
  end
  if #files == 0 then
    local told = search_files.told(withheld)
    return nil, errors.new('not_found', 'no file to look at' .. (told and '; ' .. told or ''))
  end
  local made, last, serverless = {}, math.min(#files, opts.offset + opts.limit), {}
  local unknown, filetypes = 0, {}
  for i = opts.offset + 1, last do
    local one = of_path(ctx, files[i], serverless)
    if one.count > 0 or one.why then
      table.insert(made, one)
    elseif one.unknown then
      unknown = unknown + 1
      filetypes[one.unknown == '' and 'no filetype' or one.unknown] = true
    end
    ctx:progress(i - opts.offset, last - opts.offset)
  end
  local head = ('%d files'):format(#files)
  if opts.offset > 0 or last < #files then
    head = ('files %d-%d of %d'):format(opts.offset + 1, last, #files)
    head = head .. (last < #files and ('; offset=%d goes on'):format(last) or '')
  end
  if unknown > 0 then
    local names = vim.tbl_keys(filetypes)
    table.sort(names)
    local rest = '%s; %d of them have neither a language server nor a treesitter parser (%s)'
    head = rest:format(head, unknown, table.concat(names, ', '))
  end
  local told = search_files.told(withheld)
  return M.answer(made, head .. (told and '; ' .. told or ''), 'narrow it with path, globs or limit')
end

return M
