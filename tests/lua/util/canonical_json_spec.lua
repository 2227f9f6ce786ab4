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
end)
