--- Looks up mappings, options, messages, plugins and help.

local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local help = require('mcp-tools.editor.lookup.help')
local messages = require('mcp-tools.editor.user.messages')
local plugins = require('mcp-tools.editor.plugins')
local result = require('mcp-tools.editor.result')
local settings = require('mcp-tools.editor.lookup.settings')
local time_slice = require('mcp-tools.util.time_slice')

---@param rows string[]
---@param query string? lower case
---@return string[]
local function with(rows, query)
  return vim.tbl_filter(function(row)
    return not query or row:lower():find(query, 1, true) ~= nil
  end, rows)
end

--- What can be looked up: functions that return rows.
---@type table<string, fun(query: string?, pause: fun()): string[]>
local LOOKUPS = {
  mappings = settings.mappings,
  options = settings.options,
  messages = function(query, pause)
    local lines = vim.split(messages.text(pause), '\n', { plain = true, trimempty = true })
    return with(vim.iter(lines):rev():totable(), query)
  end,
  plugins = function(query)
    return with(
      vim.tbl_map(function(plugin)
        local version = plugin.version and ' ' .. plugin.version or ''
        return ('%s%s (%s, %s)'):format(
          plugin.name,
          version,
          plugin.manager,
          plugin.loaded and 'loaded' or 'not loaded'
        )
      end, plugins.all()),
      query
    )
  end,
}

return {
  name = 'editor_lookup',
  title = 'Look up the editor',
  description = "Looks up the user's editor: key mappings, options, messages, plugins, or a help topic.",
  search_hint = 'keymap, shortcut, :set, :messages, error message, :help, documentation of vim, installed plugins',
  args = {
    what = {
      type = 'string',
      enum = { 'mappings', 'options', 'messages', 'plugins', 'help' },
      description = 'What to look up',
      required = true,
    },
    query = {
      type = 'string',
      description = 'Help topic, or text that the rows contain',
      minLength = 1,
      maxLength = 200,
    },
    limit = arguments.hidden(arguments.limit('rows', 100, 1000)),
    offset = { type = 'integer', description = 'Number of rows to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  recommended = true,
  run = function(ctx, args)
    local pause, words = time_slice.of(ctx), vim.split(args.query or '', '%s+', { trimempty = true })
    local rows, head
    if args.what ~= 'help' then
      rows = LOOKUPS[args.what](args.query and args.query:lower(), pause)
    elseif #words > 0 then
      rows, head = help(ctx, words, pause)
    else
      return nil, errors.new('validation_error', 'query: required to look up help')
    end
    local items, about = result.page(rows, args)
    return result.utf8({ what = args.what, rows = items, total = about.total, head = head })
  end,
  render = function(value, args)
    if value.total == 0 then
      return args.query and ("Nothing found for '%s' in %s."):format(args.query, args.what) or 'There are none.'
    end
    local head = value.head or ('%d %s'):format(value.total, args.what == 'help' and 'lines' or args.what)
    return result.longest({
      { text = vim.list_extend({ result.with_range(head, args, value.total) }, value.rows) },
    }, 'narrow it with query')
  end,
}
