--- Prompt: write tests for a symbol.

local buffers = require('mcp-tools.editor.buffer')
local content = require('mcp-tools.content')
local path_completion = require('mcp-tools.privacy.completion')
local access = require('mcp-tools.privacy.access')
local background = require('mcp-tools.editor.background')
local excerpt = require('mcp-tools.editor.result.excerpt')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local symbol = require('mcp-tools.editor.symbol')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of lines of a symbol whose end is unknown.
local LINES = 60
--- Maximum number of lines of other symbols.
local MAX_LINES = 400
--- Maximum number of symbols that completion reads.
local MAX_NAMES = 500

--- Returns the first line that contains a word, for names that are not symbols.
---@param lines string[]
---@param word string
---@return integer?
local function line_with(lines, word)
  for number, line in ipairs(lines) do
    if line:find(word, 1, true) then
      return number
    end
  end
end

---@param ctx mcp-tools.Ctx
---@param prefix string
---@param arguments table<string, string>
local function complete_symbol(ctx, prefix, arguments)
  local place = arguments.path and access.path(arguments.path, ctx.root)
  local bufnr
  if arguments.path then
    bufnr = place and buffers.of_path(place)
  else
    bufnr = buffers.current()
  end
  if not bufnr or not access.buffer(bufnr, ctx.root) then
    return ctx({})
  end
  background.run(function(task)
    return (symbol.await(task, bufnr, { within = symbol.INTERACTIVE_MS }))
  end, function(file)
    local values, looked_at = {}, 0
    symbol_tree.each(file and file.tree or {}, function(node)
      local path = symbol_tree.of(node, file.tree)
      if vim.startswith(node.name, prefix) or vim.startswith(path, prefix) then
        table.insert(values, path)
      end
      looked_at = looked_at + 1
      return looked_at == MAX_NAMES
    end)
    ctx(values)
  end)
end

return {
  name = 'write_tests',
  title = 'Write tests for a symbol',
  description = 'Writes tests for a function, class or other symbol of a file, in the style of the project.',
  args = {
    { name = 'symbol', description = 'Symbol name, or `Class/method`', required = true, complete = complete_symbol },
    { name = 'path', description = 'File path (default: the current file)', complete = path_completion.project },
  },
  run = function(ctx, args)
    local source, fault = excerpt.find(ctx, args.path)
    if not source then
      return ctx:fail('not_found', fault)
    end
    local where = source.path or 'the current buffer'
    local file, node
    local wanted, err = symbol_tree.parse(args.symbol, 'symbol')
    if wanted then
      file, err = symbol.of_source(ctx, source)
    end
    if wanted and file then
      local looked_at = source.cut and ('the first %d lines of %s'):format(#source.lines, where) or where
      node, err = symbol.one(file, wanted, 'symbol', looked_at)
    end
    local at = node and node.line or err.code == 'not_found' and line_with(source.lines, args.symbol)
    if not at then
      return nil, err
    end
    local last = math.min(node and node.end_line or at + LINES, at + MAX_LINES - 1)
    local text = 'Write tests for `%s` in %s (line %d). First check how tests of this project are named, organized'
      .. ' and run, and do the same. Cover its contract, edge cases and errors, not its implementation. Run'
      .. ' the tests at the end.\n\n%s'
    local code = source.bufnr and excerpt.numbered_of(source.bufnr, at, last) or excerpt.numbered(source, at, last)
    local quoted = excerpt.fenced(code, source.filetype)
    text = utf8.repair(text:format(args.symbol, where, at, quoted))
    return { content.text(text), (excerpt.resource(source)) }
  end,
}
