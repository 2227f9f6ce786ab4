-- slow, every Neovim
local project = require('editor_project')
local t = require('helpers')

local function call(args) return project.text('treesitter_query', args) end

project.each({ 'treesitter' }, function()
  vim.cmd('filetype on')
  project.write('a.lua', "local s = 'ä𝄞'\nlocal function f(a)\n  return a\nend\n")
  project.write('b.py', 'x = 1\n')
  project.write('.env.lua', 'local x = 1\n')
end)

describe('treesitter_query without a query', function()
  it('returns the nodes around a position', function()
    t.eq(
      table.concat({
        'a.lua',
        'identifier 3:10-3:10 a',
        'expression_list 3:10-3:10 a',
        'return_statement 3:3-3:10 return a',
        'block 3:3-3:10 return a',
        'function_declaration f 2:1-4:3 local function f(a) …',
        "chunk 1:1-4:3 local s = 'ä𝄞' …",
      }, '\n'),
      (call({ path = 'a.lua', start_line = 3, column = 10 }))
    )
    t.matches('\nstring_content 1:12%-1:13 ä𝄞\n', (call({ path = 'a.lua', start_line = 1, column = 13 })))
    t.eq('a.lua\nreturn_statement 3:3-3:10 return a', (call({ path = 'a.lua', start_line = 3, limit = 1 })))
  end)

  it('uses columns in characters, also in long lines', function()
    local depth, width = 20, 5000
    local line = ('return %s"%s"%s'):format(('{ä,'):rep(depth), ('ö'):rep(width), ('}'):rep(depth))
    project.write('wide.lua', line .. '\n')
    local column = 7 + 3 * depth + 2
    local text = call({ path = 'wide.lua', start_line = 1, column = column, limit = 200 })
    t.matches(('\nstring_content 1:%d%%-1:%d ö'):format(column, column + width - 1), text)
    for i = 1, depth do
      local first, last = column - 1 - 3 * i, column + width + i
      t.matches(('\ntable_constructor 1:%d%%-1:%d {ä'):format(first, last), text)
    end
  end)

  it('counts a combining mark as a character, as other tools do', function()
    project.write('marks.lua', "local s, t = 'e\204\129', b\n")
    t.matches('\nidentifier 1:20%-1:20 b', '\n' .. call({ path = 'marks.lua', start_line = 1, column = 20 }))
  end)

  it('works in a tree that a syntax error makes wide, where a query is refused', function()
    project.write('wide.lua', ('('):rep(20000))
    t.matches('ERROR 1:1', (t.fast(call, { path = 'wide.lua', start_line = 1, column = 100 })))
    t.fails(nil, 'too wide', t.fast(call, { path = 'wide.lua', query = '(identifier) @x' }))
  end)

  it('treats NUL as an ordinary character', function()
    project.write('nul.lua', "local s = 'ä\0b'\n")
    t.matches('identifier 1:14%-1:14 b', (call({ path = 'nul.lua', start_line = 1, column = 14 })))
    t.eq('validation_error', select(2, call({ path = 'nul.lua', start_line = 1, column = 99 })).code)
  end)

  it('refuses invalid positions, and languages without a parser', function()
    t.eq('validation_error', select(2, call({ path = 'a.lua', start_line = 9 })).code)
    t.eq('validation_error', select(2, call({ path = 'a.lua', start_line = 1, column = 99 })).code)
    local _, err = call({ path = 'b.py', start_line = 1 })
    t.eq({ 'not_found', 'b.py: no treesitter parser for python is installed' }, { err.code, err.message })
    t.eq('not_found', select(2, call({ path = 'none.lua', start_line = 1 })).code)
    t.eq('access_denied', select(2, call({ path = '.env.lua', start_line = 1 })).code)
  end)
end)

describe('treesitter_query', function()
  local query = '(identifier) @name (string content: (_) @_left_out)'

  it('returns captures', function()
    local actual = (call({ path = 'a.lua', query = query }))
    t.eq('a.lua: 4 captures\n@name 1:7-1:7 s\n@name 2:16-2:16 f\n@name 2:18-2:18 a\n@name 3:10-3:10 a', actual)
    actual = (call({ path = 'a.lua', query = query, limit = 1, offset = 2 }))
    t.eq('a.lua: 4 captures; 3-3 shown, offset=3 continues\n@name 2:18-2:18 a', actual)
    t.matches('^a.lua: 2 captures', (call({ path = 'a.lua', query = query, start_line = 2, end_line = 2 })))
  end)

  it('refuses a query that does not match the grammar', function()
    local value, err = call({ path = 'a.lua', query = '(none) @x' })
    t.fails('validation_error', '^query: invalid for the grammar of lua: .*none', value, err)
    t.eq('validation_error', select(2, call({ path = 'a.lua', query = '(' })).code)
  end)

  it('does not search a tree that is too deep, where one step takes seconds', function()
    local function nested(count) return ('local t = %s%s\n'):format(('{'):rep(count), ('}'):rep(count)) end
    project.write('deep.lua', nested(3000))
    project.write('less_deep.lua', nested(300))
    local value, err = call({ path = 'deep.lua', query = '(_ (_ (_ (_) @a)))' })
    t.fails('tool_error', '^deep.lua: its tree has more than 1000 levels', value, err)
    t.matches('^less_deep.lua: %d+ captures', (call({ path = 'less_deep.lua', query = '(_ (_ (_) @a))' })))
    local any = { '[' .. ('_ '):rep(31) .. '] @a', '[' .. ('"(" '):rep(31) .. '] @a' }
    for _, many in ipairs({ any[1], any[2], ('(_ (_) @a)'):rep(16), ('(_ '):rep(8) .. '(_) @a' .. (')'):rep(8) }) do
      value, err = call({ path = 'a.lua', query = many })
      t.fails(nil, '^query: more than 30 nodes, or 8 nested ones, take too long; split', value, err)
    end
  end)

  it('runs no pattern of the client', function()
    project.write('long.lua', "local s = '" .. ('a'):rep(2000) .. "'\n")
    for _, asked in ipairs({
      '((identifier) @x (#match? @x "^.-.-.-b$"))',
      '((identifier) @x (#lua-match? @x "^.-.-.-b$"))',
      '((identifier) @x (#not-lua-match? @x "^.-.-.-b$"))',
      '((identifier) @x (#any-vim-match? @x "^.-.-.-b$"))',
      '((string) @x (#gsub! @x "a-a-a-a-a-b" ""))',
      '((string) @x (#set! "a" "b"))',
      '((string) @x (#of-a-plugin? @x))',
    }) do
      local _, err = call({ path = 'long.lua', query = asked })
      t.eq('validation_error', err and err.code, asked)
      t.matches('^query: #.* is not allowed', err.message)
    end
  end)

  it('allows predicates that compare', function()
    for asked, count in pairs({
      ['((identifier) @x (#eq? @x "s"))'] = 1,
      ['((identifier) @x (#not-eq? @x "s"))'] = 3,
      ['((identifier) @x (#any-eq? @x "s"))'] = 1,
      ['((identifier) @x (#any-of? @x "s" "f"))'] = 2,
      ['((string) @x (#contains? @x "ä"))'] = 1,
      ['((identifier) @x (#has-parent? @x expression_list))'] = 1,
      ['((identifier) @x (#not-has-ancestor? @x function_declaration))'] = 1,
    }) do
      t.matches(('^a.lua: %d captures'):format(count), (call({ path = 'a.lua', query = asked })))
    end
  end)

  it('refuses a query that would take too long', function()
    local many = '((_) @a . (_)* @b . (_)* @c . (number))'
    t.matches('more than one %*, %+ or %?', select(2, call({ path = 'a.lua', query = many })).message)
    for _, asked in ipairs({
      '(chunk ((_)? @a)+)',
      '["\\"" (_)+ (_)+ @x ["\\""]]',
      '(chunk' .. (' (_)? @x'):rep(11) .. ')',
    }) do
      t.fails(nil, '^query: more than .* long on long lists of nodes', call({ path = 'a.lua', query = asked }))
    end
    t.matches('^a.lua: ', (call({ path = 'a.lua', query = '((number)+ @n (#any-of? @n "?" "*"))' })))
    t.matches('^a.lua: ', (call({ path = 'a.lua', query = '(chunk (comment)* @c) ; * +' })))
  end)

  it('is interrupted for the main loop even if nothing matches', function()
    project.write('long.lua', 'local t = {\n' .. ('  1,\n'):rep(5000) .. '}\n')
    local unequal = '((field) @a (field) @b (#eq? @a @b) (#eq? @a "2"))'
    local running = project.start('treesitter_query', { path = 'long.lua', query = unequal })
    local check_turns = t.watch_turns()
    t.ended(running, 20000)
    check_turns()
    t.matches('^long.lua: 0 captures', running.outcome.payload.text)
  end)

  it('of a long text is interrupted, and is cancelled with its call', function()
    local redrawtime = vim.o.redrawtime
    vim.o.redrawtime = 1 -- after which Neovim interrupts a parser
    project.write('long.lua', ('local x = 1\n'):rep(50000))
    local running = project.start('treesitter_query', { path = 'long.lua', query = '(identifier) @name', limit = 1 })
    t.eq(false, running:ended())
    running:cancel('client')
    t.eq('cancelled', running.outcome.error.code)
    local actual = (call({ path = 'long.lua', query = '(identifier) @name', limit = 1 }))
    t.matches('^long.lua: 50000 captures; 1%-1 shown', actual)
    vim.o.redrawtime = redrawtime
  end)
end)
