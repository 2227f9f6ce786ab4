--- Shows the changes that a call would make, for the question to the user.
---
--- It never waits: a file that is not open is read asynchronously, and the diff follows when it has been read.

local access = require('mcp-tools.privacy.access')
local approved = require('mcp-tools.editor.edit.approved')
local read = require('mcp-tools.privacy.read')
local buffers = require('mcp-tools.editor.buffer')
local contents = require('mcp-tools.editor.buffer.contents')
local disk = require('mcp-tools.editor.buffer.disk')
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
--- Maximum number of lines of an edited text, and of bytes of a new one: the diff is computed on the main thread.
local MAX_LINES, MAX_NEW = 8000, 200000

--- Returns the text of a question about a file that cannot be read. Only a missing file is an error; other problems may
--- be gone when the call runs.
---@param name string
---@param fault string?
---@param code string?
---@return string? text nil: there is no such file
local function unreadable(name, fault, code)
  return code ~= 'ENOENT' and approved.not_shown(name, fault or 'it cannot be read') or nil
end

--- Returns the name of a file in a diff. Absolute paths have no prefix.
---@param prefix 'a/'|'b/'
---@param name string
---@return string
local function side(prefix, name)
  return vim.startswith(name, '/') and name or prefix .. name
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

---@class mcp-tools.PreviewOpts
---@field again fun()? called when the file has been read
---@field changedtick integer?
---@field ends_of? fun(ends: mcp-tools.TextEnds): mcp-tools.TextEnds line endings to set; a CR is then part of the text
---@field is_written boolean? the file is written, with unsaved changes of the user
---@field is_replaced boolean? unsaved changes of the user are replaced; the diff says so

--- Returns the text of a target that would be edited, and that of its file if the buffer has unsaved changes. An
--- unmodified buffer whose file has changed is read again before the edit, so its text is that of the file.
---@param found { bufnr: integer?, path: string? }
---@param opts mcp-tools.PreviewOpts
---@return string[]? lines
---@return string? note nil: there is no such file
---@return mcp-tools.TextEnds? ends
---@return string[]? on_disk lines of the file
local function texts_of(found, opts)
  local bufnr = found.bufnr
  local path = bufnr and access.buffer_path(bufnr) or found.path
  local is_modified = bufnr ~= nil and vim.bo[bufnr].modified
  local on_disk, fault, code, ends
  if path and (not is_modified or opts.is_written) then
    on_disk, fault, code, ends = contents.lines_on_disk(path, bufnr, opts.again)
  end
  if code == read.READING then
    return nil, M.READING
  elseif not bufnr then
    return on_disk, on_disk == nil and unreadable(access.shown(path or '', project.root()), fault, code) or nil, ends
  end
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  -- A text that was read in another encoding differs from that of its file, although it is up to date.
  if on_disk and not is_modified and not disk.is_current(bufnr, path) then
    lines = on_disk
  end
  return lines, nil, file_text.kept_ends_of(bufnr), is_modified and on_disk or nil
end

--- Returns the diff that edits would make.
---@param args { path: string?, bufnr: integer? }
---@param edits_of fun(lines: string[]): mcp-tools.Edit[]?, mcp-tools.Error?, string? why the diff cannot be shown
---@param opts? mcp-tools.PreviewOpts
---@return string?
---@return mcp-tools.Error? err
function M.of(args, edits_of, opts)
  opts = opts or {}
  local found, err = buffers.find(args)
  err = err or found.bufnr and edit.refusal(found.bufnr, opts.changedtick) or nil
  if not found or err then
    return nil, err
  end
  local root = project.root()
  local name = found.bufnr and buffers.shown(found.bufnr, root) or access.shown(found.path, root)
  local lines, note, ends, on_disk = texts_of(found, opts)
  if not lines then
    return note, not note and errors.new('not_found', ('there is no file %s'):format(name)) or nil
  elseif #lines > MAX_LINES then
    return approved.not_shown(name, ('it has %d lines.'):format(#lines))
  end
  local edits, why
  edits, err, why = edits_of(lines)
  if why then
    return approved.not_shown(name, why .. '.')
  elseif not edits then
    return nil, err
  end
  local is_unsaved = opts.is_replaced and found.bufnr and vim.bo[found.bufnr].modified
  local old = side('a/', name) .. (is_unsaved and '  (with your unsaved changes)' or '')
  local names = { old = old, new = side('b/', name), context = CONTEXT }
  local list
  list, err = text_edits.ordered(edits, #lines, function(row)
    return lines[row + 1]
  end, opts.ends_of ~= nil)
  if not list then
    return nil, err
  end
  local text = text_diff.unified(opts.is_written and on_disk or lines, text_edits.applied(lines, list), names)
  local change = opts.ends_of and ends and file_text.ends_change(ends, opts.ends_of(ends))
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
    parts[i], is_reading = text:gsub('([^\n])$', '%1\n'), is_reading or text == M.READING
  end
  return is_reading and M.READING or table.concat(parts)
end

--- Returns the diff that creating a file would make.
---@param path string
---@param text string
---@return string
function M.of_new(path, text)
  local found = buffers.find({ path = path })
  local name = access.shown(found and found.path or path, project.root())
  if #text > MAX_NEW then
    return ('%s would be created with %d bytes, too many to show.\n'):format(name, #text)
  end
  local lines = text == '' and {} or file_text.lines_of((file_text.with_lf(text)))
  local diff = text_diff.unified({}, lines, { old = '/dev/null', new = side('b/', name) })
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
  local name, count = access.shown(found.path, project.root()), api.nvim_buf_line_count(found.bufnr)
  if count > MAX_LINES then
    return approved.not_shown(name, ('it has %d lines.'):format(count))
  end
  local before, fault, code = contents.lines_on_disk(found.path, found.bufnr, again)
  if code == read.READING then
    return M.READING
  elseif not before and code ~= 'ENOENT' then
    return ('The diff cannot be shown: %s'):format(fault)
  end
  local now = api.nvim_buf_get_lines(found.bufnr, 0, -1, false)
  local old = before and side('a/', name) or '/dev/null'
  local text = text_diff.unified(before or {}, now, { old = old, new = side('b/', name), context = CONTEXT })
  return text ~= '' and text or 'Nothing would change.'
end

return M
