--- Prompt: write tests for a symbol.

local buffers = require('mcp-tools.editor.buffer')
local content = require('mcp-tools.content')
local path_completion = require('mcp-tools.editor.file.completion')
local access = require('mcp-tools.files.access')
local excerpt = require('mcp-tools.editor.answer.excerpt')
local symbols = require('mcp-tools.editor.symbols')
local turns = require('mcp-tools.util.turns')
local utf8 = require('mcp-tools.util.utf8')

--- Lines of the symbol that are shown when nothing tells where it ends.
local LINES = 60
--- And when something does; the resource has more.
local MAX_LINES = 400

---@param list mcp-tools.Symbol[]
---@param wanted string
---@return mcp-tools.Symbol?
local function pick(list, wanted)
  local ending
  for _, symbol in ipairs(list) do
    if symbol.name == wanted then
      return symbol
    elseif not ending and symbol.name:match('[%w_$]+$') == wanted then
      ending = symbol -- `M.run` for `run`
    end
  end
  return ending
end

---@param ctx mcp-tools.Ctx
---@param source mcp-tools.TextSource
---@return mcp-tools.Symbol[]
local function symbols_of(ctx, source)
  if not source.bufnr then
    return symbols.of_lines(source.lines, turns.of(ctx))
  end
  return ctx:await(function(done)
    symbols.of_buffer(source.bufnr, done)
  end)
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
  symbols.of_buffer(bufnr, function(list)
    local values = {}
    for _, symbol in ipairs(list) do
      if vim.startswith(symbol.name, prefix) and not vim.list_contains(values, symbol.name) then
        table.insert(values, symbol.name)
      end
    end
    ctx(values)
  end)
end

return {
  name = 'write_tests',
  title = 'Write tests for a symbol',
  description = 'Writes tests for a function, class or other symbol of a file, in the way of the project.',
  args = {
    { name = 'symbol', description = 'Its name', required = true, complete = complete_symbol },
    { name = 'path', description = 'The file; the current one when left out', complete = path_completion.project },
  },
  run = function(ctx, args)
    local source, fault = excerpt.find(ctx, args.path)
    if not source then
      return ctx:fail('not_found', fault)
    end
    local where = source.path or 'the current buffer'
    local symbol = pick(symbols_of(ctx, source), args.symbol)
    local at = symbol and symbol.line
    if not at then
      for number, line in ipairs(source.lines) do
        if line:find(args.symbol, 1, true) then
          at = number
          break
        end
      end
    end
    if not at then
      local seen = source.cut and (' in its first %d lines'):format(#source.lines) or ''
      return ctx:fail('not_found', ('%s has no %s%s'):format(where, args.symbol, seen))
    end
    local last = math.min(symbol and symbol.end_line or at + LINES, at + MAX_LINES - 1)
    local text = 'Write tests for `%s` in %s (line %d). First look how tests of this project are named, laid out and'
      .. ' run, and do it in the same way. Cover what it promises, its edges and its errors, not how it is'
      .. ' done. Run them at the end.\n\n%s'
    local code = source.bufnr and excerpt.numbered_of(source.bufnr, at, last) or excerpt.numbered(source, at, last)
    local quoted = excerpt.fenced(code, source.filetype)
    text = utf8.repair(text:format(args.symbol, where, at, quoted))
    return { content.text(text), (excerpt.resource(source)) }
  end,
}
