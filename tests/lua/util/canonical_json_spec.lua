-- every Neovim
local canonical_json = require('mcp-tools.util.canonical_json')

describe('canonical JSON', function()
  it('quotes a long text as it quotes a short one, whatever character is in it', function()
    local plain = ('x'):rep(1000)
    for byte = 0, 255 do
      local char = string.char(byte)
      local quoted = canonical_json.text(char)
      local long = canonical_json.text(plain .. char .. plain)
      assert(long == '"' .. plain .. quoted:sub(2, -2) .. plain .. '"', ('byte %d: %s'):format(byte, quoted))
    end
    assert(canonical_json.text(plain) == '"' .. plain .. '"')
    assert(canonical_json.text('/\127ü') == '"/\127ü"')
  end)

  it('of a long text is made in pieces, which come to the same', function()
    local text = ('"/\127é\n'):rep(60000)
    local pauses = 0
    local made = canonical_json.text_of(canonical_json.snapshot({ text }), function()
      pauses = pauses + 1
    end)
    assert(pauses >= 3, pauses)
    assert(made == '["' .. text:gsub('["\n]', { ['"'] = '\\"', ['\n'] = '\\n' }) .. '"]')
  end)

  it('can be compared without being made, and begun', function()
    local value = { a = ('long '):rep(200), b = { 1, 2.5, true }, c = 'x' }
    local one = canonical_json.snapshot(value)
    assert(canonical_json.same(one, canonical_json.snapshot(vim.deepcopy(value))))
    for _, other in ipairs({ { b = { 1, 2.6, true } }, { c = 'y' }, { a = 'long ' }, { d = 1 }, { c = { 'x' } } }) do
      local snapshot = canonical_json.snapshot(vim.tbl_extend('force', value, other))
      assert(not canonical_json.same(one, snapshot))
    end
    local text = ('x'):rep(1000)
    assert(not canonical_json.same(canonical_json.snapshot({ text }), canonical_json.snapshot({ '"' .. text .. '"' })))
    for _, bytes in ipairs({ 1, 10, 50, 1000 }) do
      assert(canonical_json.head(one, bytes) == canonical_json.text_of(one):sub(1, bytes), bytes)
    end
  end)
end)
