--- Text of a question for approval: tool, client, reason, files, arguments, and the change the call would make.

local Rows = require('mcp-tools.ui.window.rows')
local arguments = require('mcp-tools.ui.approval.arguments')
local diff = require('mcp-tools.ui.window.diff')
local paths = require('mcp-tools.files.paths')
local preview_of = require('mcp-tools.ui.approval.question').preview_of
local sanitize = require('mcp-tools.util.sanitize')
local source = require('mcp-tools.registry.source')

local M = {}

--- Width of a question in a client's form.
local FORM_WIDTH = 100
--- Width of labels.
local MARGIN = 8
local MAX_NAME, MAX_CLIENT, MAX_VERSION = 40, 40, 16
local REASON_ROWS = 2
--- Maximum number of files at the beginning and at the end of the text.
local HEAD_FILES, END_FILES = 2, 200
--- Maximum bytes of a part that is repeated at the end because it was cut.
local MAX_PART = 4096

---@param text any
---@param cells integer
---@return string
local function quoted(text, cells)
  return '"' .. (Rows.clip(sanitize.line(tostring(text)), cells):gsub('["\\]', '\\%0')) .. '"'
end

--- Describes the client of a call. Its name is a claim of the client, so it is quoted.
---@param call mcp-tools.Call
---@param short? boolean without the version
---@return string
function M.client(call, short)
  local name = call.client and call.client.name
  if not name then
    return call.host == 'command' and 'you, by :McpTools call'
      or 'the caller ' .. Rows.clip(sanitize.line(call.host), MAX_CLIENT)
  end
  local text = 'calls itself ' .. quoted(name, MAX_CLIENT)
  if call.client.version and not short then
    text = ('%s, version %s'):format(text, quoted(call.client.version, MAX_VERSION))
  end
  return text
end

local OUTSIDE, NO_FILE = '  OUTSIDE the project', '  NOT a regular FILE'

---@class mcp-tools.ApprovalFile
---@field path string
---@field mark string a warning, or empty

--- Returns the files of a question, those with a warning first, then the one that the argument `path` names.
---@param question mcp-tools.Question
---@return mcp-tools.ApprovalFile[]
local function files_of(question)
  local plain, marked, seen = {}, {}, {}
  for _, target in ipairs(question.targets) do
    if target.path and not seen[target.path] then
      seen[target.path] = true
      local mark = target.other and NO_FILE or paths.inside(target.path, question.root) and '' or OUTSIDE
      local list = mark == '' and plain or marked
      local at = target.given == question.args.path and 1 or #list + 1
      table.insert(list, at, { path = sanitize.line(target.path), mark = mark })
    end
  end
  return vim.list_extend(marked, plain)
end

---@param page mcp-tools.Rows
---@param label string
---@param text string
---@param cells? integer maximum; default: one row
---@return boolean cut
local function add_part(page, label, text, cells)
  local clipped, cut = Rows.clip(text, cells or page.width - MARGIN)
  page:line(('%-' .. MARGIN .. 's%s'):format(label, clipped), { { 1, #label, 'Label' } })
  return cut
end

---@param page mcp-tools.Rows
---@param files mcp-tools.ApprovalFile[]
---@return boolean cut
local function add_files(page, files)
  local cut = #files > HEAD_FILES
  for _, file in ipairs(vim.list_slice(files, 1, HEAD_FILES)) do
    local path, clipped = Rows.clip_middle(file.path, page.width - MARGIN - #file.mark)
    local line = ('%-' .. MARGIN .. 's%s%s'):format('file', path, file.mark)
    page:line(line, { { 1, 4, 'Label' }, { #line - #file.mark + 1, #line, 'Warn' } })
    cut = cut or clipped
  end
  if #files > HEAD_FILES then
    local outside = vim.iter(files):fold(0, function(count, file)
      return count + (file.mark == OUTSIDE and 1 or 0)
    end)
    local more = #files - HEAD_FILES
    local text = ('… and %d more file%s'):format(more, more == 1 and '' or 's')
    text = text .. (outside > 0 and ('; %d in all OUTSIDE the project'):format(outside) or '')
    page:line((' '):rep(MARGIN) .. text, outside > 0 and { { MARGIN + 1, MARGIN + #text, 'Warn' } } or nil)
  end
  return cut
end

--- Counts the files of a diff. A line of a file cannot imitate the three lines that begin its diff.
---@param text string
---@return integer
local function count_files(text)
  local _, count = ('\n' .. text):gsub('\n%-%-%- [^\n]*\n%+%+%+ [^\n]*\n@@ ', '')
  return count
end

---@class mcp-tools.ApprovalCuts parts of the head that were cut
---@field reason boolean
---@field files boolean
---@field source boolean

---@param page mcp-tools.Rows
---@param question mcp-tools.Question
---@param files mcp-tools.ApprovalFile[]
---@param text string? the change
---@return mcp-tools.ApprovalCuts
local function add_head(page, question, files, text)
  local call = question.call
  local definition = call.definition
  local title = vim.split(definition.title or definition.description or '', '\n', { plain = true })[1]
  -- A name with a space is quoted, so no other tool can appear as bundled.
  local bundled = (definition.source or {}).origin == 'bundled'
  local name = Rows.clip(arguments.label(call.name), MAX_NAME) .. (bundled and ' (bundled)' or '')
  add_part(page, 'tool', name .. '  ' .. sanitize.line(title))
  local room, source_cut = page.width - MARGIN, false
  if not bundled then
    local short
    short, source_cut = Rows.clip_middle(sanitize.line(source.describe(definition, question.root)), room)
    add_part(page, 'source', short)
  end
  add_part(page, 'client', M.client(call))
  local reason_cut = add_part(page, 'reason', sanitize.line(question.reason), REASON_ROWS * room)
  local cuts = { source = source_cut, reason = reason_cut, files = add_files(page, files) }
  local count = count_files(text or '')
  if count > math.max(#files, 1) then
    add_part(page, '', ('the diff below changes %d files'):format(count))
  end
  return cuts
end

---@param page mcp-tools.Rows
---@param list mcp-tools.ApprovalArgument[]
local function add_arguments(page, list)
  for _, argument in ipairs(list) do
    for n, line in ipairs(argument.lines) do
      local cut = line == arguments.CUT and { { 1, #line, 'Warn' } }
      page:line(line, n == 1 and { { 1, argument.label_bytes, 'Label' } } or cut or nil)
    end
  end
end

--- Adds a heading, in which "CUT" and the text after it are highlighted as a warning.
---@param page mcp-tools.Rows
---@param text string
local function add_heading(page, text)
  local cut = text:find('CUT', 1, true) or #text + 1
  page:line(text, { { 1, cut - 1, 'Heading' }, { cut, #text, 'Warn' } })
end

--- Bytes of the bar before each line of a block.
local BAR = #'  │ '

--- Returns whether a text is a diff and nothing else, and is shown completely.
---@param text string?
---@return boolean
local function is_whole(text)
  if not text or not text:find('^%-%-%- [^\n]*\n%+%+%+ [^\n]*\n@@ ') or text:find('\n[^ +%-@\\\n]') then
    return false
  end
  local _, cut = arguments.block(text, arguments.MAX_BYTES)
  return not cut
end

---@param page mcp-tools.Rows
---@param text string? the change
---@param fault string? why it is unknown
local function add_diff(page, text, fault)
  if fault then
    return page:line(fault, { { 1, #fault, 'Warn' } })
  end
  text = (text or ''):gsub('\n$', '')
  local lines, cut = arguments.block(text, arguments.MAX_BYTES)
  local is_command = text:find('%f[^\n%z]%$ ') and not text:find('^%-%-%- ')
  add_heading(page, (is_command and 'command' or 'changes') .. (cut and ', CUT' or ''))
  local texts = vim.tbl_map(function(line)
    return line:sub(BAR + 1)
  end, lines)
  local spans = diff.spans(texts, BAR)
  for i, line in ipairs(lines) do
    page:line(line, spans[i])
  end
end

---@param page mcp-tools.Rows
---@param heading string
---@param text string
local function add_whole(page, heading, text)
  local lines, cut = arguments.block(text, MAX_PART)
  add_heading(page, heading .. (cut and ', CUT' or ''))
  for _, line in ipairs(lines) do
    page:line(line)
  end
end

--- Adds the complete text of parts that were cut in the head.
---@param page mcp-tools.Rows
---@param question mcp-tools.Question
---@param files mcp-tools.ApprovalFile[]
---@param cuts mcp-tools.ApprovalCuts
local function add_end(page, question, files, cuts)
  if cuts.reason then
    add_whole(page, 'reason', sanitize.line(question.reason))
  end
  if cuts.source then
    add_whole(page, 'source', sanitize.line(source.describe(question.call.definition, question.root)))
  end
  if cuts.files then
    add_heading(page, ('files (%d)%s'):format(#files, #files > END_FILES and ', CUT' or ''))
    for _, file in ipairs(vim.list_slice(files, 1, END_FILES)) do
      local line = ('  │ %s%s'):format(file.path, file.mark)
      page:line(line, { { #line - #file.mark + 1, #line, 'Warn' } })
    end
  end
end

---@param question mcp-tools.Question
---@return table<string, any> known arguments that the tool declares
local function known_of(question)
  local schema = question.call.definition.input_schema
  return type(schema) == 'table' and type(schema.properties) == 'table' and schema.properties or {}
end

--- Returns the arguments that differ from their default. Defaults declared by untrusted tools are ignored.
---@param question mcp-tools.Question
---@param known table<string, any>
---@return table
local function without_defaults(question, known)
  if not source.is_trusted(question.call.definition, question.root) then
    return question.args
  end
  local given = {}
  for key, value in pairs(question.args) do
    local argument = known[key]
    if type(argument) ~= 'table' or argument.default == nil or not vim.deep_equal(value, argument.default) then
      given[key] = value
    end
  end
  return given
end

--- Returns the arguments to show: those that a complete diff already shows are left out.
---@param question mcp-tools.Question
---@param known table<string, any>
---@param text string? the change
---@return table
local function beside_changes(question, known, text)
  local given = without_defaults(question, known)
  local definition = question.call.definition
  if definition.previewed and (definition.source or {}).origin == 'bundled' and is_whole(text) then
    given = vim.tbl_extend('force', {}, given)
    for _, key in ipairs(definition.previewed) do
      given[key] = nil
    end
  end
  return given
end

---@param question mcp-tools.Question
---@param width integer
---@param with_changes boolean
---@return mcp-tools.Rows
local function page_of(question, width, with_changes)
  local page, files = Rows.new(width, with_changes), files_of(question)
  local text, fault
  if with_changes then
    text, fault = preview_of(question)
  end
  local cuts = add_head(page, question, files, text)
  local known = known_of(question)
  local list, heading, left = arguments.format(beside_changes(question, known, text), known)
  if text or fault then
    add_diff(page, text, fault)
  end
  if #list > 0 then
    add_heading(page, heading)
    add_arguments(page, list)
  elseif not text then
    page:line(next(question.args) == nil and 'without arguments' or 'with the default arguments')
  end
  if left > 0 then
    page:line(('  … CUT: %d more'):format(left))
  end
  add_end(page, question, files, cuts)
  return page
end

--- Returns the text for a client's form. It omits the change, which may show text that the client cannot read.
---@param question mcp-tools.Question
---@return string[] lines
function M.facts(question)
  return vim.tbl_map(function(row)
    return row.text
  end, page_of(question, FORM_WIDTH, false).list)
end

--- Returns the complete text of a question.
---@param question mcp-tools.Question
---@param width integer cells of a row
---@return mcp-tools.Rows
function M.page(question, width)
  return page_of(question, width, true)
end

return M
