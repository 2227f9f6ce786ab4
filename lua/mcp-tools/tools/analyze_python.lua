--- Analyzes a Python file. Its text is read here, so that it includes unsaved changes; Python only parses it.

local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local mcp_tools = require('mcp-tools')
local read_file = require('mcp-tools.privacy.read')
local access = require('mcp-tools.privacy.access')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum size of a file, in bytes.
local MAX_BYTES = 2 * 1024 * 1024

local PLACE = { module = 'mcp_tools_nvim.python_tools.bundled.analyze_python', name = 'analyze_python' }

---@param ctx mcp-tools.Ctx
---@param args table
---@param text string
---@param path string? absolute
local function analyze(ctx, args, text, path)
  mcp_tools.run_python(ctx, PLACE, {
    source = utf8.repair(text),
    name = utf8.repair(path and path ~= '' and access.shown(path, ctx.root) or 'buffer'),
    min_complexity = args.min_complexity,
    offset = args.offset,
    limit = args.limit,
  })
end

local function analyze_buffer(ctx, args, bufnr)
  local bytes = buffers.size(bufnr)
  if bytes > MAX_BYTES then
    return ctx(nil, errors.new('too_large', ('it has %d bytes, the limit is %d'):format(bytes, MAX_BYTES)))
  end
  local text = table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') .. '\n'
  analyze(ctx, args, text, vim.api.nvim_buf_get_name(bufnr))
end

local function analyze_file(ctx, args, path)
  read_file.read(path, MAX_BYTES, function(text, err)
    if ctx:cancelled() then
      return
    elseif not text then
      return ctx(nil, err)
    end
    analyze(ctx, args, text, path)
  end)
end

return {
  name = 'analyze_python',
  title = 'Structure of a Python file',
  description = 'Analyses the structure of a Python file, with its unsaved changes: imports, classes, functions with'
    .. ' lines, arguments, cyclomatic complexity, nesting, type hints and docstrings, and figures of the whole. Give'
    .. ' path or bufnr. The code is not run. With next_offset there are more functions.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    min_complexity = {
      type = 'integer',
      description = 'Only functions that are as complex or more',
      default = 1,
      minimum = 1,
    },
    offset = { type = 'integer', description = 'Functions to leave out', default = 0, minimum = 0 },
    limit = {
      type = 'integer',
      description = 'Maximum number of functions, of classes and of imports',
      default = 100,
      minimum = 1,
      maximum = 1000,
    },
  },
  annotations = { read_only = true, idempotent = true },
  execute = function(ctx, args)
    target.find(ctx, args, {}, function(found, err)
      if ctx:cancelled() then
        return
      elseif not found then
        ctx(nil, err)
      elseif found.bufnr then
        analyze_buffer(ctx, args, found.bufnr)
      else
        analyze_file(ctx, args, found.path)
      end
    end)
  end,
}
