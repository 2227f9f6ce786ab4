--- Analyzes a Python file. Its text is read here, so that it includes unsaved changes; Python only parses it.

local arguments = require('mcp-tools.editor.arguments')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local mcp_tools = require('mcp-tools')
local read_file = require('mcp-tools.privacy.read')
local result = require('mcp-tools.editor.result')
local access = require('mcp-tools.privacy.access')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum size of a file, in bytes.
local MAX_BYTES = 2 * 1024 * 1024

local PLACE = { module = 'mcp_tools_nvim.python_tools.bundled.analyze_python', name = 'analyze_python' }

---@param ctx mcp-tools.Ctx inside a coroutine
---@param found mcp-tools.Target
---@return string
local function text_of(ctx, found)
  local bufnr = found.bufnr
  if not bufnr then
    return (errors.unwrap(read_file.await(ctx, found.path, MAX_BYTES)))
  end
  local bytes = buffers.size(bufnr)
  if bytes > MAX_BYTES then
    error(errors.new('too_large', ('it has %d bytes, the limit is %d'):format(bytes, MAX_BYTES)), 0)
  end
  return table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') .. '\n'
end

---@param value table
---@param args { offset: integer, limit: integer }
---@return string
local function render(value, args)
  local lines, whole = value.lines, value.summary
  local head = ('%s: %d lines (%d code, %d comments), %s, %s, complexity mean %s, maximum %d, docstrings %d%%'):format(
    value.path,
    lines.total,
    lines.code,
    lines.comments,
    result.count(whole.classes, 'class', 'classes'),
    result.count(whole.functions, 'function'),
    whole.complexity_mean,
    whole.complexity_max,
    whole.docstring_coverage * 100
  )
  local rows = { head }
  for _, each in ipairs(value.imports) do
    local names = each.names and (' (%s)'):format(table.concat(each.names, ', ')) or ''
    table.insert(rows, ('%d: import %s%s'):format(each.line, each.module, names))
  end
  for _, each in ipairs(value.classes) do
    local bases = table.concat(each.bases, ', ')
    table.insert(
      rows,
      ('%d-%d: class %s(%s), %d methods'):format(each.line, each.end_line, each.name, bases, each.methods)
    )
  end
  table.insert(
    rows,
    result.with_range(result.count(value.matching_functions, 'function'), args, value.matching_functions)
  )
  for _, each in ipairs(value.functions) do
    local row = ('%d-%d: %s(%s): complexity %d, nesting %d'):format(
      each.line,
      each.end_line,
      each.name,
      table.concat(each.arguments, ', '),
      each.complexity,
      each.nesting
    )
    row = each.annotated and row or row .. ', no type hints'
    table.insert(rows, each.docstring and row or row .. ', no docstring')
  end
  return table.concat(rows, '\n')
end

return {
  name = 'analyze_python',
  title = 'Measure a Python file',
  description = 'Measures a Python file, unsaved changes included: lines of code, imports, classes, and of each'
    .. ' function its arguments, cyclomatic complexity, nesting, type hints and docstring.',
  search_hint = 'code metrics, cyclomatic complexity, docstring coverage, missing type hints',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    min_complexity = {
      type = 'integer',
      description = 'Minimum complexity of listed functions',
      default = 1,
      minimum = 1,
    },
    offset = { type = 'integer', description = 'Functions to skip', default = 0, minimum = 0 },
    limit = arguments.limit('functions, classes and imports', 100, 1000),
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local found = errors.unwrap(target.await(ctx, args, {}))
    local path, text = found.path, text_of(ctx, found)
    ctx:await(function() -- the end of the call is also the end of the wait
      mcp_tools.run_python(ctx, PLACE, {
        source = utf8.repair(text),
        name = utf8.repair(path and path ~= '' and access.shown(path, ctx.root) or 'buffer'),
        min_complexity = args.min_complexity,
        offset = args.offset,
        limit = args.limit,
      })
    end)
  end,
  render = render,
}
