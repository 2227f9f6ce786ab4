--- Prompt: analyze a module.

local content = require('mcp-tools.content')
local path_completion = require('mcp-tools.privacy.completion')
local excerpt = require('mcp-tools.editor.result.excerpt')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local symbol = require('mcp-tools.editor.symbol')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of names in the outline.
local MAX = 100

return {
  name = 'analyze_module',
  title = 'Analyze a module',
  description = 'Explains what a file of the project is for, how it works and what should be improved.',
  args = {
    { name = 'path', description = 'File path (default: the current file)', complete = path_completion.project },
  },
  run = function(ctx, args)
    local source, fault = excerpt.find(ctx, args.path)
    if not source then
      return ctx:fail('not_found', fault)
    end
    local file, err = symbol.of_source(ctx, source)
    if not file then
      return nil, err
    end
    local outline = {}
    symbol_tree.each(file.tree, function(node)
      table.insert(outline, ('- %s (line %d)'):format(symbol_tree.of(node, file.tree), node.line))
      return #outline == MAX
    end)
    local resource, cut = excerpt.resource(source)
    local text = table.concat({
      ('Analyze %s: its purpose, its inputs and outputs, its dependencies, and how its parts work.'):format(
        source.path or 'the current buffer'
      ),
      'Say what you would change first and why. Check its callers before you judge it.',
      #outline > 0 and 'It defines:\n' .. table.concat(outline, '\n') or 'It has no known definitions.',
      cut and 'Its text below is cut; read the rest through the editor.'
        or 'Its text follows, including unsaved changes.',
    }, '\n\n')
    return { content.text((utf8.repair(text))), resource }
  end,
}
