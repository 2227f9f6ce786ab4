-- slow, every Neovim
-- Requests of LSP clients to scripted servers: units, unsaved lines, several servers, other files.

local core = require('mcp-tools.core')
local double = require('lsp_double')
local double_project = require('double_project')
local project = require('lsp_project')
local scope = require('mcp-tools.scope')
local t = require('helpers')

local path, bufnr
local range = double.range

--- A server that is ready; it uses UTF-8 unless a test sets another encoding.
local function server(capabilities, answers)
  local s
  s, bufnr = double_project.ready(capabilities, answers)
  return s
end

local function edit(lines) vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines) end

--- A call of the tool, as a client makes it.
---@return any result, mcp-tools.Error? err
local function ask(method, params, client)
  require('mcp-tools.agents.lsp').load()
  local done
  local listener = { done = function(_, call) done = call end }
  local opts = {
    host = 'mcp',
    client = { name = client or 'one' },
    view = scope.view({ agent = 'lsp' }),
    timeout = 5000,
    listener = listener,
  }
  local call = core.parts().executor:execute('lsp_request', { method = method, params = params }, opts)
  t.wait(function() return done or call:ended() end, 10000, method)
  local outcome = call.outcome
  return outcome.payload and vim.json.decode(outcome.payload.text), outcome.error
end

local function at(line, character, more)
  local params = { textDocument = { uri = vim.uri_from_fname(path) } }
  params.position = { line = line, character = character }
  return vim.tbl_extend('force', params, more or {})
end

local function location(line, from, to, file)
  return { uri = vim.uri_from_fname(file or path), range = range(line, from, to) }
end

before_each(function()
  path = double_project.open()
  project.write('text.txt', 'ä𝄞 one\ntwo\nthree\n')
end)
after_each(project.close)

describe('a request', function()
  it('is converted to the units of the server, and its result back', function()
    local asked
    server({ definitionProvider = true }, {
      ['textDocument/definition'] = function(params)
        asked = params.position
        return location(0, 7, 10)
      end,
    })
    local result = t.ok(ask('textDocument/definition', at(0, 4)))
    t.eq({ line = 0, character = 7 }, asked)
    t.eq({ location(0, 4, 7) }, result)
  end)

  it('has only the fields that are checked', function()
    local asked
    server({ referencesProvider = true }, {
      ['textDocument/references'] = function(params)
        t.ok(params.workDoneToken ~= 'w') -- the editor sends its own
        params = vim.tbl_extend('force', {}, params)
        params.workDoneToken = nil
        asked = vim.tbl_keys(params)
        return { location(1, 0, 3) }
      end,
    })
    local more = { context = { includeDeclaration = true }, partialResultToken = 'p', workDoneToken = 'w', other = 1 }
    t.eq({ location(1, 0, 3) }, t.ok(ask('textDocument/references', at(0, 4, more))))
    table.sort(asked)
    t.eq({ 'context', 'position', 'textDocument' }, asked)
  end)

  it('refers to the lines on disk while the buffer has others', function()
    local asked
    server({ definitionProvider = true, positionEncoding = 'utf-16' }, {
      ['textDocument/definition'] = function(params)
        asked = params.position
        return { location(4, 0, 5), location(1, 0, 4), location(3, 0, 4) }
      end,
    })
    edit({ '-- new', 'also new', 'ä𝄞 one', 'say two', 'three' })
    local result = t.ok(ask('textDocument/definition', at(1, 1)))
    t.eq({ line = 3, character = 5 }, asked) -- after the common start of the line
    t.eq({ location(2, 0, 5), location(0, 0, 0), location(1, 0, 0) }, result)
    edit({ 'ä𝄞 one', 'three' })
    t.fails('stale', 'line 2 of text.txt was deleted in the editor', ask('textDocument/definition', at(1, 1)))
  end)

  it('is sent to all servers, whose lists are merged without duplicates', function()
    server({ referencesProvider = true }, { ['textDocument/references'] = { location(0, 0, 1), location(1, 0, 3) } })
    server({ referencesProvider = true, positionEncoding = 'utf-16' }, {
      ['textDocument/references'] = { location(1, 0, 3), location(2, 0, 5) },
    })
    local result = t.ok(ask('textDocument/references', at(1, 0)))
    t.eq({ 0, 1, 2 }, vim.tbl_map(function(each) return each.range.start.line end, result))
  end)

  it('for a hover merges the texts of all servers', function()
    server({ hoverProvider = true }, { ['textDocument/hover'] = { contents = 'first' } })
    server({ hoverProvider = true }, {
      ['textDocument/hover'] = { contents = { kind = 'markdown', value = 'second' } },
    })
    local result = t.ok(ask('textDocument/hover', at(1, 0)))
    t.eq({ kind = 'markdown', value = 'first\n\n---\n\nsecond' }, result.contents)
  end)

  it('returns what the server wrote, with null for nothing', function()
    local contents = { language = 'lua', value = 'x' }
    local s = server({ hoverProvider = true }, { ['textDocument/hover'] = { contents = contents, more = { 1, {} } } })
    t.eq({ contents = contents, more = { 1, {} } }, (ask('textDocument/hover', at(1, 0))))
    s.answers['textDocument/hover'] = vim.NIL
    local result, err = ask('textDocument/hover', at(1, 0))
    t.eq({ vim.NIL, nil }, { result, err })
  end)

  it('that fails has the reason of the server', function()
    server({ hoverProvider = true }, { ['textDocument/hover'] = double.fault('no idea') })
    t.fails(nil, 'no idea', ask('textDocument/hover', at(1, 0)))
  end)
end)

describe('positions', function()
  it('in a long line with unsaved changes are converted before the call times out', function()
    local disk = ('füü bar,+'):rep(20000)
    project.write('text.txt', disk .. '\n')
    local places = t.list(10000, function(i) return location(0, i * 9 + 1, i * 9 + 4) end)
    local capabilities = { referencesProvider = true, positionEncoding = 'utf-16' }
    server(capabilities, { ['textDocument/references'] = places })
    edit({ 'x' .. disk })
    local found = t.ok(ask('textDocument/references', at(0, 1, { context = { includeDeclaration = true } })))
    t.eq({ 10000, range(0, 9, 12) }, { #found, found[1].range })
  end)

  it('in unchanged lines are converted in both directions, whatever else was changed', function()
    local documents = require('mcp-tools.editor.language_server.documents')
    local text_diff = require('mcp-tools.editor.text.diff')
    math.randomseed(7)
    for _ = 1, 300 do
      local disk, lines = {}, {}
      for i = 1, math.random(1, 12) do
        disk[i] = ('%s𝄞ä%d'):format(('x'):rep(math.random(0, 3)), math.random(1, 9))
      end
      for _, line in ipairs(disk) do
        local change = math.random(1, 6)
        if change == 1 then
          table.insert(lines, 'new')
        end
        if change ~= 2 then
          table.insert(lines, change == 3 and line .. '!' or line)
        end
      end
      local document = { disk = disk, lines = lines, spans = text_diff.spans(disk, lines) }
      local changed = {}
      for _, span in ipairs(document.spans) do
        for row = span[1], span[1] + span[2] - 1 do
          changed[row] = true
        end
      end
      for row, line in ipairs(disk) do
        local place = { line = row - 1, character = math.random(0, vim.fn.strchars(line)) }
        local there, gone = documents.to_server(document, place, 'utf-8')
        if not changed[row] then
          t.eq({ line, false }, { lines[there.line + 1], gone })
          local back = documents.to_client(document, there, 'utf-8')
          t.eq({ row - 1, there }, { back.line, (documents.to_server(document, back, 'utf-8')) })
        elseif not gone then
          t.ok(lines[there.line + 1] and there.character <= #lines[there.line + 1])
        end
      end
    end
  end)
end)

describe('a result', function()
  it('contains no file outside of the project and no sensitive one', function()
    local secret = project.write('.env', 'TOKEN=abcdef\n')
    local other = project.write('other.txt', 'four\n')
    local found = { location(0, 0, 1, '/etc/hosts'), location(0, 0, 1, other), location(0, 0, 1, secret) }
    local s = server({ referencesProvider = true, workspaceSymbolProvider = true }, {
      ['textDocument/references'] = found,
      ['workspace/symbol'] = {
        { name = 'a', kind = 1, location = found[1] },
        { name = 'b', kind = 1, location = { uri = found[2].uri }, data = { 1 } },
      },
    })
    t.eq({ found[2] }, (ask('textDocument/references', at(1, 0))))
    local symbol = { name = 'b', kind = 1, location = { uri = found[2].uri } }
    t.eq({ symbol }, (ask('workspace/symbol', { query = '' })))
    s.answers['textDocument/references'] = { found[1], found[3] }
    t.fails('access_denied', nil, ask('textDocument/references', at(1, 0)))
    t.eq(false, vim.api.nvim_buf_get_name(0) == other)
  end)

  it('is checked by all its URIs', function()
    local secret, other = vim.uri_from_fname(project.write('.env', 'A=b\n')), location(0, 0, 1)
    local link = { targetUri = other.uri, targetRange = other.range, targetSelectionRange = other.range }
    server({ definitionProvider = true }, {
      ['textDocument/definition'] = {
        vim.tbl_extend('error', link, { uri = secret }),
        vim.tbl_extend('force', link, { uri = other.uri, targetUri = secret }),
        vim.tbl_extend('error', link, { originUri = secret }),
        link,
      },
    })
    t.eq({ link }, (ask('textDocument/definition', at(1, 0))))
  end)

  it('contains only what the protocol defines for ranges, and no data', function()
    local line = 'PLAIN_SETTING=hunter2'
    vim.cmd.split(project.write('.env', line .. '\n'))
    local odd = { start = { line = 0, character = 0, data = line }, ['end'] = { line = 0, character = 1 }, text = line }
    local symbol = { name = 'f', kind = 12, range = odd, selectionRange = odd, data = line, detail = line }
    server({ documentSymbolProvider = true }, { ['textDocument/documentSymbol'] = { symbol } })
    local result = t.ok(ask('textDocument/documentSymbol', at(0, 0)))
    local plain = range(0, 0, 1)
    t.eq({ { name = 'f', kind = 12, range = plain, selectionRange = plain, detail = '[secret]' } }, result)
  end)

  it('in many closed files is converted with their texts', function()
    local found = {}
    for i = 1, 400 do
      local other = project.write(('many/%d.txt'):format(i), 'ä one\n')
      for _ = 1, 5 do
        table.insert(found, location(0, 3, 6, other))
      end
    end
    server({ referencesProvider = true }, { ['textDocument/references'] = found })
    local result = t.ok(ask('textDocument/references', at(1, 0)))
    t.eq({ 2000, location(0, 2, 5).range }, { #result, result[2000].range })
  end)

  it('of a call hierarchy has the ranges of the caller', function()
    local other = project.write('other.txt', '𝄞𝄞 four\n')
    local function item(file)
      local at_start = range(0, 0, 6)
      local uri = vim.uri_from_fname(file)
      return { name = 'f', kind = 12, uri = uri, range = at_start, selectionRange = at_start, data = { 7 } }
    end
    local asked
    server({ callHierarchyProvider = true }, {
      ['textDocument/prepareCallHierarchy'] = { item(path) },
      ['callHierarchy/incomingCalls'] = function(params)
        asked = params.item
        return { { from = item(other), fromRanges = { range(0, 9, 13) } } }
      end,
      ['callHierarchy/outgoingCalls'] = { { to = item(other), fromRanges = { range(0, 7, 10) } } },
    })
    local items = t.ok(ask('textDocument/prepareCallHierarchy', at(0, 0)))
    t.eq({ server = 'double', id = t.ok(items[1].data.id) }, items[1].data)
    t.eq(range(0, 0, 3), items[1].range)
    local calls = t.ok(ask('callHierarchy/incomingCalls', { item = items[1] }))
    t.eq({ { 7 }, range(0, 0, 6) }, { asked.data, asked.range })
    local strange = vim.tbl_deep_extend('force', items[1], { data = { id = 'unknown' } })
    t.fails('stale', nil, ask('callHierarchy/incomingCalls', { item = strange }))
    t.fails('stale', nil, ask('callHierarchy/incomingCalls', { item = items[1] }, 'another client'))
    t.eq({ range(0, 5, 9) }, calls[1].fromRanges)
    calls = t.ok(ask('callHierarchy/outgoingCalls', { item = items[1] }))
    t.eq({ range(0, 4, 7) }, calls[1].fromRanges)
  end)
end)

it('diagnostics are those of the editor, at lines on disk', function()
  local s = server({})
  edit({ 'new', 'ä𝄞 one', 'two', 'three' })
  s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
  local bad = { lnum = 1, col = 7, end_lnum = 1, end_col = 10, message = 'bad', severity = 2, source = 'linter' }
  vim.diagnostic.set(vim.api.nvim_create_namespace('linter'), bufnr, { bad })
  local params = at(0, 0)
  params.position = nil
  local result = t.ok(ask('textDocument/diagnostic', params))
  t.eq('full', result.kind)
  t.eq({ { message = 'bad', severity = 2, source = 'linter', range = range(0, 4, 7) } }, result.items)
end)

describe('the extensions of files with a server', function()
  it('are those of configured filetypes and of running servers', function()
    t.eq({}, (ask('$/mcp-tools/extensions', vim.empty_dict())))
    package.loaded['lspconfig.configs'] = {
      used = { manager = {}, filetypes = { 'typescript' } },
      unused = { filetypes = { 'lua' } },
    }
    server({})
    vim.bo[bufnr].filetype = 'python'
    local found = t.ok(ask('$/mcp-tools/extensions', vim.empty_dict()))
    package.loaded['lspconfig.configs'] = nil
    t.eq({ 'python', 'typescript', nil }, { found['.py'], found['.mts'], found['.lua'] })
    t.eq('typescript', found['.ts'])
  end)

  it('are those of enabled configurations', function()
    if vim.fn.has('nvim-0.11') == 0 then
      return
    end
    vim.lsp.config('mine', { cmd = { 'true' }, filetypes = { 'lua' } })
    vim.lsp.enable('mine')
    local found = t.ok(ask('$/mcp-tools/extensions', vim.empty_dict()))
    vim.lsp.enable('mine', false)
    t.eq('lua', found['.lua'])
  end)
end)
