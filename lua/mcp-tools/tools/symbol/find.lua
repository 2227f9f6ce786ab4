--- Symbols of the project, a folder or a file by name.

local in_file = require('mcp-tools.editor.symbol.in_file')
local kinds = require('mcp-tools.editor.lsp.kinds')
local listing = require('mcp-tools.editor.symbol.listing')
local name_path = require('mcp-tools.editor.symbol.name_path')
local nodes = require('mcp-tools.editor.symbol.nodes')
local project = require('mcp-tools.editor.symbol.project')
local search_files = require('mcp-tools.editor.search.files')

return {
  name = 'symbol_find',
  title = 'Find symbols by name',
  description = 'Finds symbols by name path: `method`, `Class/method`, `/Class` (top level), `name[2]` (the second of'
    .. ' that name). Returns `path [kind] first-last: source` per file. Lines count from 1.',
  args = {
    symbol = { type = 'string', description = 'Name path', required = true, minLength = 1 },
    path = { type = 'string', description = 'File or folder to look in; default: the project' },
    bufnr = { type = 'integer', description = 'Buffer to look in; 0 = the current file', minimum = 0 },
    substring = { type = 'boolean', description = 'The last name need only hold it, in any case', default = false },
    kinds = {
      type = 'array',
      items = { type = 'string' },
      description = 'Only these kinds: class, function, method, variable, constant, interface, enum, struct, field, …',
    },
    body = { type = 'boolean', description = 'With the text of each', default = false },
    limit = { type = 'integer', description = 'At most so many', default = 50, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Symbols to pass over', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, args)
    local path, err = name_path.parse(args.symbol, 'symbol')
    if not path then
      return ctx(nil, err)
    end
    args.kinds, err = kinds.read(args.kinds or {}, nodes.MORE_KINDS)
    if not args.kinds then
      return ctx(nil, err)
    elseif #args.kinds == 0 then
      args.kinds = nil
    end
    local place, found
    if not args.bufnr then
      place, err = search_files.place(ctx, args.path)
      if not place then
        return ctx(nil, err)
      end
    end
    if place and place.folder then
      found, err = project.find(ctx, path, place, args)
    else
      found, err = in_file.find(ctx, path, args)
    end
    if not found then
      return ctx(nil, err)
    end
    local notes = {}
    if found.incomplete then
      table.insert(notes, found.incomplete .. ', so there may be more')
    end
    if found.passed > 0 then
      table.insert(notes, ('%d more files with that word were not looked at'):format(found.passed))
    end
    if found.total == 0 and found.files then
      table.insert(notes, project.looked(found))
    end
    if found.near then
      table.insert(notes, 'there is ' .. found.near)
    end
    local list = listing.of(found.hits, args)
    project.drop(found)
    return listing.text(list, found.total, args, notes)
  end,
}
