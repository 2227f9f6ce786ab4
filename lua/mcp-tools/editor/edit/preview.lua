--- What a call would change, for the person who is asked about it.
---
--- It is made at once, while the question is shown: a file that is not open is not loaded, and read beside the main
--- loop. Until that is done the difference is not known.

local access = require('mcp-tools.privacy.access')
local ahead = require('mcp-tools.privacy.read_cache')
local buffers = require('mcp-tools.editor.buffer')
local contents = require('mcp-tools.editor.buffer.contents')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local project = require('mcp-tools.instances.project')
local text_edits = require('mcp-tools.editor.text.edits')
local text_diff = require('mcp-tools.editor.text.diff')

local api = vim.api

local M = {}

--- Where the difference is not known yet.
M.READING = 'The difference is shown here once the file has been read.'

--- Lines around each change. One tells where it is; with more, less of what changes is on the first screen.
M.CONTEXT = 1
local CONTEXT = M.CONTEXT

--- ENOENT is certain; other reasons may be gone by the time that the call runs.
---@param path string
---@param fault string?
---@param code string?
---@return string? text
---@return mcp-tools.Error? err
local function unreadable(path, fault, code)
  if code == ahead.READING then
    return M.READING
  elseif code == 'ENOENT' then
    return nil, errors.new('not_found', ('there is no file %s'):format(path))
  end
  return ('The difference cannot be shown: %s'):format(fault)
end

--- A difference, or that there is none.
---@param text string
---@return string?
---@return mcp-tools.Error? err
function M.shown(text)
  if text == '' then
    return nil, errors.new('tool_error', 'nothing would change: the text is like that already')
  end
  return text
end

--- The difference that edits would make.
---@param args { path: string?, bufnr: integer?, changedtick: integer? }
---@param edits_of fun(lines: string[]): mcp-tools.Edit[]?, mcp-tools.Error?, string? the last one: why not shown
---@param again? fun() called when a file has been read that was not known
---@param ends_of? fun(ends: mcp-tools.TextEnds): mcp-tools.TextEnds how lines will end; then a CR is part of a text
---@return string?
---@return mcp-tools.Error? err
function M.of(args, edits_of, again, ends_of)
  local found, err = buffers.find(args)
  if not found then
    return nil, err
  end
  local root = project.root()
  local lines, fault, code, ends
  if found.bufnr then
    err = edit.refusal(found.bufnr, args.changedtick)
    if err then
      return nil, err
    end
    lines, ends = api.nvim_buf_get_lines(found.bufnr, 0, -1, false), file_text.kept_ends_of(found.bufnr)
  else
    lines, fault, code, ends = contents.lines_on_disk(found.path or '', nil, again)
    if not lines then
      return unreadable(access.shown(found.path or '', root), fault, code)
    end
  end
  local edits, why
  edits, err, why = edits_of(lines)
  if why then
    return ('The difference cannot be shown: %s'):format(why)
  end
  if not edits then
    return nil, err
  end
  local list
  list, err = text_edits.ordered(edits, #lines, function(row)
    return lines[row + 1]
  end, ends_of ~= nil)
  if not list then
    return nil, err
  end
  local name = found.bufnr and buffers.shown(found.bufnr, root) or access.shown(found.path, root)
  local names = { old = 'a/' .. name, new = 'b/' .. name, context = CONTEXT }
  local text = text_diff.unified(lines, text_edits.applied(lines, list), names)
  local change = ends_of and ends and file_text.ends_change(ends, ends_of(ends))
  return M.shown(change and ('%s%s.\n'):format(text, change:gsub('^%l', string.upper)) or text)
end

--- What writing a buffer would change on the disk.
---@param args { path: string?, bufnr: integer? }
---@param again? fun() called when a file has been read that was not known
---@return string?
---@return mcp-tools.Error? err
function M.of_write(args, again)
  local found, err = buffers.find(args)
  if not found then
    return nil, err
  elseif not found.bufnr then
    return nil, errors.new('not_found', ('%s is not open, so it has nothing to write'):format(args.path))
  end
  local now = api.nvim_buf_get_lines(found.bufnr, 0, -1, false)
  local before, fault, code = contents.lines_on_disk(found.path, found.bufnr, again)
  if code == ahead.READING then
    return M.READING
  elseif not before and code ~= 'ENOENT' then
    return ('The difference cannot be shown: %s'):format(fault)
  end
  local name = access.shown(found.path, project.root())
  local old = before and 'a/' .. name or '/dev/null'
  local text = text_diff.unified(before or {}, now, { old = old, new = 'b/' .. name, context = CONTEXT })
  return text ~= '' and text or 'Nothing would change.'
end

--- What writing a whole file would change.
---@param args { path: string, changedtick: integer? }
---@param new string[] its lines when it is a new one
---@param edits_of fun(lines: string[]): mcp-tools.Edit[]?, mcp-tools.Error?
---@param again? fun() called when a file has been read that was not known
---@param ends_of fun(ends: mcp-tools.TextEnds): mcp-tools.TextEnds
---@return string?
---@return mcp-tools.Error? err
function M.of_file(args, new, edits_of, again, ends_of)
  local found = buffers.find({ path = args.path })
  if not found or found.bufnr or vim.uv.fs_lstat(found.path) then
    return M.of({ path = args.path, changedtick = args.changedtick }, edits_of, again, ends_of)
  end
  local name = access.shown(found.path, project.root())
  local text = text_diff.unified({}, new, { old = '/dev/null', new = 'b/' .. name })
  return text ~= '' and text or 'An empty file would be made.'
end

return M
