--- Hover, signature help and inlay hints.

local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local locations = require('mcp-tools.editor.lsp.locations')
local lsp = require('mcp-tools.editor.lsp')
local args_of = require('mcp-tools.editor.lsp.args')
local navigation = require('mcp-tools.editor.lsp.navigation')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local request = require('mcp-tools.editor.lsp.request')
local result = require('mcp-tools.editor.result')
local server_text = require('mcp-tools.editor.lsp.server_text')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')

local M = {}

--- Hover text is cut after this many bytes.
local MAX_TEXT = 16000
--- Maximum wait for the definition, which is asked for together with the hover, ms.
local DEFINED_MS = 2000

---@param contents any MarkupContent, MarkedString or a list of the latter; some servers send null
---@return string text
---@return 'markdown'|'plaintext'
local function text_of(contents)
  if type(contents) == 'string' then
    return contents, 'markdown'
  elseif type(contents) ~= 'table' then
    return '', 'markdown'
  elseif contents.kind or contents.language then
    local value = type(contents.value) == 'string' and contents.value or ''
    if contents.kind then
      return value, contents.kind
    end
    return ('```%s\n%s\n```'):format(contents.language, value), 'markdown'
  end
  local parts = {}
  for _, each in ipairs(contents) do
    table.insert(parts, (text_of(each)))
  end
  return table.concat(parts, '\n\n'), 'markdown'
end

---@param ctx mcp-tools.Ctx
---@param text string
---@return string
local function quoted(ctx, text)
  if #text > MAX_TEXT then
    text = text:sub(1, MAX_TEXT) .. '\n…'
  end
  local pause = time_slice.of(ctx)
  redact.refresh(pause)
  return redact.quoted(text, pause)
end

--- Returns where the symbol under hover is defined.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param answer? fun(): any
---@return string?
local function defined(ctx, client, answer)
  local defined_at = answer and answer()
  local items = defined_at and locations.items({ { result = defined_at, client = client } }) or {}
  if not items[1] then
    return nil
  end
  local found = locations.find(ctx, { items[1] }, { without_text = true })[1]
  return ('%s:%d'):format(found.path, found.line)
end

--- Returns the hover text at a position.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
function M.at(ctx, args)
  local spot, err = args_of.spot(ctx, args)
  if not spot then
    return nil, err
  end
  local answers
  local params, definitions = lsp.place(spot.bufnr, spot.line, spot.column), {}
  answers, err = lsp.request_all(ctx, spot.bufnr, 'textDocument/hover', params, {
    every = true,
    on_sent = function(client)
      local method = 'textDocument/definition'
      if clients.supports(client, method, spot.bufnr) then
        definitions[client.id] = request.begin(ctx, client, method, params(client), spot.bufnr, DEFINED_MS)
      end
    end,
  })
  if not answers then
    return nil, err
  end
  local texts, kinds, first = {}, {}, nil
  for _, answer in ipairs(answers) do
    local text, kind = text_of(answer.result.contents)
    if trim(text) ~= '' then
      table.insert(texts, trim(text))
      table.insert(kinds, kind)
      first = first or answer.client
    end
  end
  if not first then
    local text = 'No hover information available at %s; line and column must be on a name'
    return nil, errors.new('not_found', text:format(args_of.spot_text(spot)))
  end
  return {
    hover = quoted(ctx, table.concat(texts, '\n\n---\n\n')),
    kind = vim.list_contains(kinds, 'markdown') and 'markdown' or 'plaintext',
    defined = defined(ctx, first, definitions[first.id]),
    incomplete = navigation.incomplete(answers),
  }
end

--- Returns the column after the parenthesis that follows a name.
---@param spot mcp-tools.lsp.Spot
---@param symbol string?
---@return integer
local function behind(spot, symbol)
  if not symbol then
    return spot.column
  end
  local from = position.byte(spot.text, spot.column - 1, 'utf-32') + #symbol
  local _, last = spot.text:find('^%s*[%(<]', from + 1)
  return position.units(spot.text, last or from, 'utf-32') + 1
end

---@param ctx mcp-tools.Ctx
---@param signature lsp.SignatureInformation
---@return table
local function signature_of(ctx, signature)
  local parameters = {}
  for i, each in ipairs(signature.parameters or {}) do
    local label = each.label
    if type(label) == 'table' then
      local first = position.byte(signature.label, label[1], 'utf-16')
      label = signature.label:sub(first + 1, position.byte(signature.label, label[2], 'utf-16'))
    end
    parameters[i] = server_text.text(label)
  end
  local about = signature.documentation and text_of(signature.documentation) or ''
  return {
    label = server_text.text(signature.label),
    documentation = about ~= '' and quoted(ctx, about) or nil,
    parameters = parameters,
  }
end

--- Returns the signatures of the call at a position.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
function M.signature(ctx, args)
  local spot, err = args_of.spot(ctx, args)
  if not spot then
    return nil, err
  end
  local params = lsp.place(spot.bufnr, spot.line, behind(spot, args.symbol))
  local help
  help, err = lsp.request(ctx, spot.bufnr, 'textDocument/signatureHelp', params)
  if err then
    return nil, err
  elseif not help or #(help.signatures or {}) == 0 then
    local text = 'there is no call at %s; the position must be between its parentheses'
    return nil, errors.new('not_found', text:format(args_of.spot_text(spot)))
  end
  local active = (tonumber(help.activeSignature) or 0) + 1
  local signature = help.signatures[active] or help.signatures[1]
  local parameter = tonumber(signature.activeParameter) or tonumber(help.activeParameter)
  local list = {}
  server_text.refresh(ctx)
  for i, each in ipairs(help.signatures) do
    list[i] = signature_of(ctx, each)
  end
  return { signatures = list, active_signature = active, active_parameter = parameter and parameter + 1 }
end

---@param label string|{ value: string }[]
---@return string
local function label_of(label)
  if type(label) == 'string' then
    return label
  end
  local parts = {}
  for i, part in ipairs(label) do
    parts[i] = part.value
  end
  return table.concat(parts)
end

--- Returns the inlay hints of a range of lines.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
function M.hints(ctx, args)
  local target, err = lsp.target(ctx, args)
  if not target then
    return nil, err
  end
  local count = vim.api.nvim_buf_line_count(target.bufnr)
  if args.start_line > count then
    local text = ('start_line: %d is beyond the end (%d lines)'):format(args.start_line, count)
    return nil, errors.new('validation_error', text)
  end
  local last = math.min(args.end_line or count, count)
  local end_text = vim.api.nvim_buf_get_lines(target.bufnr, last - 1, last, false)[1] or ''
  local answers
  answers, err = lsp.request_all(ctx, target.bufnr, 'textDocument/inlayHint', function(client)
    return lsp.document(target.bufnr, {
      range = {
        start = { line = args.start_line - 1, character = 0 },
        ['end'] = { line = last - 1, character = position.units(end_text, #end_text, client.offset_encoding) },
      },
    })
  end, { every = true })
  if not answers then
    return nil, err
  end
  local all = {}
  server_text.refresh(ctx)
  for _, answer in ipairs(answers) do
    for _, hint in ipairs(answer.result) do
      local at = hint.position
      local line = vim.api.nvim_buf_get_lines(target.bufnr, at.line, at.line + 1, false)[1]
      local column = position.to_client(line, at.character, answer.client.offset_encoding)
      table.insert(all, { at.line + 1, column, trim(server_text.text(label_of(hint.label))) })
    end
  end
  table.sort(all, function(a, b)
    return a[1] < b[1] or a[1] == b[1] and a[2] < b[2]
  end)
  local page, answer = result.page(all, args)
  answer.hints = vim.tbl_map(function(hint)
    return ('%d:%d %s'):format(unpack(hint))
  end, page)
  return answer
end

return M
