--- Shows the changes that a call would make, for the question to the user.
---
--- It never waits: a file that is not open is read asynchronously, and the diff follows when it has been read.

local access = require('mcp-tools.privacy.access')
local read = require('mcp-tools.privacy.read')
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

--- Text shown until the file has been read.
M.READING = 'Reading the file; the diff appears here.'

--- Lines of context around each change. With more, fewer changes fit on the first screen.
M.CONTEXT = 1
local CONTEXT = M.CONTEXT

--- Converts a read error. Only ENOENT fails; other errors may be gone when the call runs.
---@param path string
---@param fault string?
---@param code string?
---@return string? text
---@return mcp-tools.Error? err
local function unreadable(path, fault, code)
  if code == read.READING then
    return M.READING
  elseif code == 'ENOENT' then
    return nil, errors.new('not_found', ('there is no file %s'):format(path))
  end
  return ('The diff cannot be shown: %s'):format(fault)
end

--- Returns a diff, or an error if it is empty.
---@param text string
---@return string?
---@return mcp-tools.Error? err
function M.shown(text)
  if text == '' then
    return nil, errors.new('tool_error', 'nothing would change: the text is already like that')
  end
  return text
end

--- Returns the diff that edits would make.
---@param args { path: string?, bufnr: integer?, changedtick: integer? }
---@param edits_of fun(lines: string[]): mcp-tools.Edit[]?, mcp-tools.Error?, string? why the diff cannot be shown
---@param again? fun() called when the file has been read
---@param ends_of? fun(ends: mcp-tools.TextEnds): mcp-tools.TextEnds line endings to set; a CR is then part of the text
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
    return ('The diff cannot be shown: %s'):format(why)
  end
  if not edits then
    return nil, err
  end
  local name = found.bufnr and buffers.shown(found.bufnr, root) or access.shown(found.path, root)
  local names = { old = 'a/' .. name, new = 'b/' .. name, context = CONTEXT }
  local text, invalid = text_edits.unified(lines, edits, names, ends_of ~= nil)
  if not text then
    return nil, invalid
  end
  local change = ends_of and ends and file_text.ends_change(ends, ends_of(ends))
  return M.shown(change and ('%s%s.\n'):format(text, change:gsub('^%l', string.upper)) or text)
end

--- Returns previews of several files as one. All files that have to be read are read at once.
---@generic T
---@param list T[]
---@param preview_of fun(one: T): string?, mcp-tools.Error?
---@return string?
---@return mcp-tools.Error? err
function M.of_all(list, preview_of)
  local parts, is_reading = {}, false
  for i, one in ipairs(list) do
    local text, err = preview_of(one)
    if not text then
      return nil, err
    end
    parts[i], is_reading = text, is_reading or text == M.READING
  end
  return is_reading and M.READING or table.concat(parts)
end

--- Returns the diff that creating a file would make.
---@param path string
---@param text string
---@return string
function M.of_new(path, text)
  local found = buffers.find({ path = path })
  local lines = text == '' and {} or file_text.lines_of((file_text.with_lf(text)))
  local name = access.shown(found and found.path or path, project.root())
  local diff = text_diff.unified({}, lines, { old = '/dev/null', new = 'b/' .. name })
  return diff ~= '' and diff or 'An empty file would be created.\n'
end

--- Returns the diff that writing a buffer would make on disk.
---@param args { path: string?, bufnr: integer? }
---@param again? fun() called when the file has been read
---@return string?
---@return mcp-tools.Error? err
function M.of_write(args, again)
  local found, err = buffers.find(args)
  if not found then
    return nil, err
  elseif not found.bufnr then
    return nil, errors.new('not_found', ('%s is not open, so there is nothing to write'):format(args.path))
  end
  local now = api.nvim_buf_get_lines(found.bufnr, 0, -1, false)
  local before, fault, code = contents.lines_on_disk(found.path, found.bufnr, again)
  if code == read.READING then
    return M.READING
  elseif not before and code ~= 'ENOENT' then
    return ('The diff cannot be shown: %s'):format(fault)
  end
  local name = access.shown(found.path, project.root())
  local old = before and 'a/' .. name or '/dev/null'
  local text = text_diff.unified(before or {}, now, { old = old, new = 'b/' .. name, context = CONTEXT })
  return text ~= '' and text or 'Nothing would change.'
end

return M
