local substring = require('mcp-tools.util.substring')
local t = require('helpers')

describe('text in text', function()
  it('is found where string.find finds it', function()
    math.randomseed(7)
    for _ = 1, 2000 do
      local text = {}
      for i = 1, math.random(0, 400) do
        text[i] = math.random() < 0.97 and 'a' or 'b'
      end
      text = table.concat(text)
      local at = math.random(1, math.max(#text, 1))
      local needle = math.random() < 0.5 and text:sub(at, at + math.random(60, 200)) or ('a'):rep(80) .. 'b'
      if needle ~= '' then
        local from = math.random(1, #text + 1)
        t.eq({ text:find(needle, from, true) }, { substring.finder(needle)(text, from) })
      end
    end
  end)

  it('is found in a moment when the text is nearly the same all along', function()
    local needle, text = ('a'):rep(400000) .. 'b', ('a'):rep(3000000)
    local began = vim.uv.hrtime()
    t.eq({}, { substring.finder(needle)(text, 1) })
    t.ok((vim.uv.hrtime() - began) / 1e6 < 2000)
  end)

  it('is no burden to an edit and to a search', function()
    local needle, text = ('a'):rep(400000) .. 'b', ('a'):rep(3000000)
    local began = vim.uv.hrtime()
    local _, err = require('mcp-tools.editor.text.search_replace').edits(
      { text },
      { { search = needle, replace = '' } },
      { brief = true }
    )
    t.eq('not_found', err.code)
    local matcher = require('mcp-tools.editor.search.matcher').new({ query = needle })
    matcher:each(text, error, error)
    matcher = require('mcp-tools.editor.search.matcher').new({ query = ('a'):rep(400000) .. '\nb' })
    for _ = 1, 100 do
      matcher:each('a short text\n', error, error)
    end
    t.ok((vim.uv.hrtime() - began) / 1e6 < 4000)
  end)
end)
