--- Returns type, signature, documentation and definition of a symbol.

local args_of = require('mcp-tools.editor.lsp.args')
local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local navigation = require('mcp-tools.editor.lsp.navigation')
local redact = require('mcp-tools.privacy.redact')
local request = require('mcp-tools.editor.lsp.request')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')

--- Maximum size of the text, in bytes.
local MAX_TEXT = 16000
--- Maximum wait for the definition, which is asked for together with the hover text, ms.
local DEFINED_MS = 2000

local DEFINITION = 'textDocument/definition'
local ENTITIES = { nbsp = ' ', lt = '<', gt = '>', amp = '&', quot = '"' }

--- Converts Markdown to plain text: without fences, escapes and entities.
---@param text string
---@return string
local function plain(text)
  local lines, fenced = {}, false
  for line in vim.gsplit(text, '\n', { plain = true }) do
    if line:find('^%s*```') then
      fenced = not fenced
    elseif fenced then
      table.insert(lines, line)
    elseif not line:find('^%s*%-%-%-+%s*$') then
      line = line:gsub('\\(%p)', '%1'):gsub('&(%a+);', ENTITIES)
      table.insert(lines, line)
    end
  end
  return table.concat(lines, '\n')
end

---@param contents any MarkupContent, MarkedString or a list of the latter; some servers send null
---@return string
local function text_of(contents)
  if type(contents) == 'string' then
    return plain(contents)
  elseif type(contents) ~= 'table' then
    return ''
  elseif contents.kind or contents.language then
    local value = type(contents.value) == 'string' and contents.value or ''
    return contents.kind == 'markdown' and plain(value) or value
  end
  local parts = {}
  for _, each in ipairs(contents) do
    table.insert(parts, text_of(each))
  end
  return table.concat(parts, '\n\n')
end

--- Returns the first place of a definition.
---@param ctx mcp-tools.Ctx
---@param definitions { client: vim.lsp.Client, answer: fun(): any }[]
---@return mcp-tools.lsp.Found?
local function defined(ctx, definitions)
  for _, each in ipairs(definitions) do
    local at = each.answer()
    local items = at and locations.items({ { result = at, client = each.client } }) or {}
    if items[1] then
      return locations.find(ctx, { items[1] })[1]
    end
  end
end

return {
  name = 'symbol_info',
  title = 'Describe a symbol',
  description = 'Returns type, signature, documentation and definition of a name, of installed libraries as well.'
    .. ' Use it for inferred types and for the parameters of a call.',
  search_hint = 'hover, inferred type, signature, go to definition, docstring, parameters',
  args = args_of.symbol({
    col = { type = 'integer', description = 'Column', minimum = 1, hidden = true },
  }),
  aliases = { lsp_hover = {} },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  run = function(ctx, args)
    args.column = args.column or args.col -- compatible with guill/mcp-tools.nvim
    local spot = errors.unwrap(find.spot(ctx, args))
    local params, definitions = lsp.position_params(spot.bufnr, spot.line, spot.column), {}
    local answers = errors.unwrap(lsp.request_all(ctx, spot.bufnr, 'textDocument/hover', params, {
      every = true,
      on_sent = function(client)
        if clients.supports(client, DEFINITION, spot.bufnr) then
          local answer = request.begin(ctx, client, DEFINITION, params(client), spot.bufnr, DEFINED_MS)
          table.insert(definitions, { client = client, answer = answer })
        end
      end,
    }))
    local texts = {}
    for _, answer in ipairs(answers) do
      local text = trim(text_of(answer.result.contents))
      if text ~= '' then
        table.insert(texts, text)
      end
    end
    local text, pause = table.concat(texts, '\n\n'), time_slice.of(ctx)
    if #text > MAX_TEXT then
      text = text:sub(1, MAX_TEXT) .. '\n…'
    end
    redact.refresh(pause)
    local definition = defined(ctx, definitions)
    if definition and args.line and definition.path == spot.path and definition.line == spot.line then
      definition = nil -- the client knows the place
    end
    return {
      of = args_of.word(spot),
      at = args_of.spot_text(spot),
      info = redact.quoted(text, pause),
      defined = definition and ('%s:%d'):format(definition.path, definition.line),
      source = definition and definition.text,
      incomplete = navigation.incomplete(answers),
    }
  end,
  render = function(value)
    local rows = {}
    if value.defined then
      table.insert(rows, ('defined in %s%s'):format(value.defined, value.source and ': ' .. value.source or ''))
    end
    if value.info ~= '' then
      table.insert(rows, value.info)
    elseif not value.defined then
      table.insert(rows, ('nothing is known of %s; line and column must be on a name'):format(value.at))
    end
    table.insert(rows, value.incomplete)
    return table.concat(rows, '\n')
  end,
}
