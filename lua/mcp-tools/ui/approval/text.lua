--- A question for approval as text: who wants to run what, and why; what it is called with; what would change.

local Rows = require('mcp-tools.ui.window.rows')
local access = require('mcp-tools.privacy.access')
local arguments = require('mcp-tools.ui.approval.arguments')
local changes = require('mcp-tools.ui.approval.changes')
local diff = require('mcp-tools.ui.approval.diff')
local paths = require('mcp-tools.files.paths')
local sanitize = require('mcp-tools.util.sanitize')
local source = require('mcp-tools.registry.source')

local M = {}

--- Of a question that no window shows, but a client's form.
local FORM_WIDTH = 100
--- Cells of a row that a label takes.
local MARGIN = 8
local MAX_NAME, MAX_CLIENT, MAX_VERSION = 40, 40, 16
local REASON_ROWS = 2
--- Files in the head; those outside the project come first. And at the end, where all should be.
local HEAD_FILES, END_FILES = 2, 200
--- Rows of arguments that stand before the changes.
local FIRST_ROWS = 2
--- Of a part that was cut, at the end.
local MAX_PART = 4096

---@param text any
---@param cells integer
---@return string
local function quoted(text, cells)
  return '"' .. (Rows.clip(sanitize.line(tostring(text)), cells):gsub('["\\]', '\\%0')) .. '"'
end

--- Who asks, as they call themselves.
---@param call mcp-tools.Call
---@param short? boolean without the version
---@return string
function M.client(call, short)
  local name = call.client and call.client.name
  if not name then
    return call.host == 'command' and 'you, by :McpTools call'
      or 'the host ' .. Rows.clip(sanitize.line(call.host), MAX_CLIENT)
  end
  local text = 'calls itself ' .. quoted(name, MAX_CLIENT)
  if call.client.version and not short then
    text = ('%s, version %s'):format(text, quoted(call.client.version, MAX_VERSION))
  end
  return text
end

local OUTSIDE, NO_FILE = '  OUTSIDE the project', '  NO plain FILE'

---@class mcp-tools.ApprovalFile
---@field path string
---@field mark string what speaks against it, or nothing

--- The files, those outside the project first.
---@param question mcp-tools.Question
---@return mcp-tools.ApprovalFile[]
local function files_of(question)
  local inside, outside, seen = {}, {}, {}
  for _, target in ipairs(question.targets) do
    if target.path and not seen[target.path] then
      seen[target.path] = true
      local mark = target.other and NO_FILE or paths.inside(target.path, question.root) and '' or OUTSIDE
      table.insert(mark == '' and inside or outside, { path = sanitize.line(target.path), mark = mark })
    end
  end
  return vim.list_extend(outside, inside)
end

---@param page mcp-tools.Rows
---@param label string
---@param text string
---@param cells? integer that it may have; one row when left out
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
    local text = ('… and %d more files, %d of all OUTSIDE the project'):format(#files - HEAD_FILES, outside)
    page:line((' '):rep(MARGIN) .. text, outside > 0 and { { MARGIN + 1, MARGIN + #text, 'Warn' } } or nil)
  end
  return cut
end

---@class mcp-tools.ApprovalCuts what of the head was cut
---@field reason boolean
---@field files boolean
---@field source boolean

---@param page mcp-tools.Rows
---@param question mcp-tools.Question
---@param files mcp-tools.ApprovalFile[]
---@return mcp-tools.ApprovalCuts
local function add_head(page, question, files)
  local call = question.call
  local definition = call.definition
  local title = vim.split(definition.title or definition.description or '', '\n', { plain = true })[1]
  -- A name with a space is quoted, so no other tool can call itself bundled.
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
  local reason_cells = room + (REASON_ROWS - 1) * (page.width - MARGIN)
  local reason_cut = add_part(page, 'reason', sanitize.line(question.reason), reason_cells)
  return { source = source_cut, reason = reason_cut, files = add_files(page, files) }
end

---@param page mcp-tools.Rows
---@param list mcp-tools.ApprovalArgument[]
---@param from integer
local function add_arguments(page, list, from)
  for i = from, #list do
    for n, line in ipairs(list[i].lines) do
      local cut = line == arguments.CUT and { { 1, #line, 'Warn' } }
      page:line(line, n == 1 and { { 1, list[i].label_bytes, 'Label' } } or cut or nil)
    end
  end
end

local BELOW = ' … (below)'

--- The first arguments, as many in a row as there is room for; what is longer than a row stands below the changes.
---@param page mcp-tools.Rows
---@param list mcp-tools.ApprovalArgument[]
---@return integer first that is yet to be shown whole
local function add_first(page, list)
  local first, row, spans
  local rows = 0
  local function flush()
    page:line(row, spans)
    rows = rows + 1
  end
  for i, argument in ipairs(list) do
    local text, label = argument.lines[1]:sub(3), argument.label_bytes - 2
    if not argument.is_row then
      first = first or i
      text = Rows.clip(text:sub(1, label):gsub(' $', ''), page.width - MARGIN - #BELOW) .. BELOW
    end
    local lead = row and row .. ', ' or nil
    if not lead or vim.api.nvim_strwidth(lead .. text) > page.width then
      if row then
        flush()
      end
      if rows == FIRST_ROWS then
        return math.min(first or i, i)
      end
      lead, spans = ('%-' .. MARGIN .. 's'):format(rows == 0 and 'args' or ''), {}
      if rows == 0 then
        table.insert(spans, { 1, 4, 'Label' })
      end
    end
    table.insert(spans, { #lead + 1, #lead + math.min(label, #text), 'Label' })
    row = lead .. text
  end
  if row then
    flush()
  end
  return first or #list + 1
end

--- The only file of a question, as a diff calls it; none where the head does not show it whole.
---@param question mcp-tools.Question
---@param files mcp-tools.ApprovalFile[]
---@param cuts mcp-tools.ApprovalCuts
---@return string?
local function only_file(question, files, cuts)
  if #files ~= 1 or cuts.files then
    return nil
  end
  local target = vim.iter(question.targets):find(function(each)
    return each.path ~= nil
  end)
  return access.shown(target.path, question.root)
end

---@param page mcp-tools.Rows
---@param heading string
---@param text string
local function add_whole(page, heading, text)
  local lines, cut = arguments.block(text, MAX_PART)
  diff.heading(page, heading .. (cut and ', CUT' or ''))
  for _, line in ipairs(lines) do
    page:line(line)
  end
end

--- What was cut of the head, whole.
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
    diff.heading(page, ('files (%d)%s'):format(#files, #files > END_FILES and ', CUT' or ''))
    for _, file in ipairs(vim.list_slice(files, 1, END_FILES)) do
      local line = ('  │ %s%s'):format(file.path, file.mark)
      page:line(line, { { #line - #file.mark + 1, #line, 'Warn' } })
    end
  end
end

---@param question mcp-tools.Question
---@return table<string, any> known arguments that the tool has
local function known_of(question)
  local schema = question.call.definition.input_schema
  return type(schema) == 'table' and type(schema.properties) == 'table' and schema.properties or {}
end

--- The arguments that are not what they would be without having been given. What a stranger calls a default counts not.
---@param question mcp-tools.Question
---@param known table<string, any>
---@return table
local function without_defaults(question, known)
  if not source.is_believed(question.call.definition, question.root) then
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

--- The arguments that are shown beside what would change: what a whole difference says is not said again.
---@param question mcp-tools.Question
---@param known table<string, any>
---@param text string? what would change
---@return table
local function beside_changes(question, known, text)
  local given = without_defaults(question, known)
  local definition = question.call.definition
  if definition.previewed and (definition.source or {}).origin == 'bundled' and diff.is_whole(text) then
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
  local cuts = add_head(page, question, files)
  local text, fault
  if with_changes then
    text, fault = changes.of(question)
  end
  local known = known_of(question)
  local list, heading, left = arguments.read(beside_changes(question, known, text), known, width)
  local changed = text ~= nil or fault ~= nil
  if #list == 0 then
    page:line(next(question.args) == nil and 'without arguments' or 'with the default arguments')
  elseif not changed or heading ~= arguments.HEADING then
    diff.heading(page, heading)
  end
  if changed then
    local first = add_first(page, list)
    diff.add(page, text, fault, only_file(question, files, cuts))
    if first <= #list then
      diff.heading(page, 'arguments, continued')
      add_arguments(page, list, first)
    end
  else
    add_arguments(page, list, 1)
  end
  if left > 0 then
    page:line(('  … CUT: %d more'):format(left))
  end
  add_end(page, question, files, cuts)
  return page
end

--- What is asked, for a client's form. What would change is for the editor only: it may show what the client cannot
--- read.
---@param question mcp-tools.Question
---@return string[] lines
function M.facts(question)
  return vim.tbl_map(function(row)
    return row.text
  end, page_of(question, FORM_WIDTH, false).list)
end

--- The whole of a question.
---@param question mcp-tools.Question
---@param width integer cells of a row
---@return mcp-tools.Rows
function M.page(question, width)
  return page_of(question, width, true)
end

return M
