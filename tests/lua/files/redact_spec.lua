local redact = require('mcp-tools.files.redact')
local t = require('helpers')

describe('secrets in text', function()
  after_each(function()
    vim.cmd('silent! %bwipeout!')
  end)

  it('are known by their form', function()
    local cases = {
      { 'ghp_abcdefghijklmnopqrstuvwxyz0123456789', '[secret]' },
      { 'x sk-proj-abcdefghijklmnopqrstuvwxyz y', 'x [secret] y' },
      { 'AKIAIOSFODNN7EXAMPLE', '[secret]' },
      { 'glpat-abcdefghij_klmno', '[secret]' },
      { 'eyJhbGciOi.eyJzdWIiOiIx.c2ln', '[secret]' },
      { 'Authorization: Bearer abc.def-ghi', 'Authorization: Bearer [secret]' },
      { 'https://me:pass@host/x', 'https://[secret]@host/x' },
      { 'password = "hunter2", user = "me"', 'password = "[secret]", user = "me"' },
      { "token = 'two words', x", "token = '[secret]', x" },
      { 'API_KEY=abc', 'API_KEY=[secret]' },
      { 'db.passwd: abc', 'db.passwd: [secret]' },
      { '{"client_secret": "abc"}', '{"client_secret": "[secret]"}' },
      { 'abc\n-----END PRIVATE KEY-----\nb', '[secret]\nb' },
      { 'a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb', 'a\n[secret]\nb' },
      { '-----BEGIN PRIVATE KEY-----\nabc', '[secret]' },
    }
    for _, case in ipairs(cases) do
      t.eq(case[2], redact.text(case[1]))
    end
  end)

  it('are not seen where there are none', function()
    for _, text in ipairs({
      'E492: Not an editor command: foo',
      '"a.lua" 3L, 45B written',
      'the keyboard = good',
      'tokens are counted in the next line',
      'https://host/path?a=b:c@d',
      'risk-free, task-list, disk-usage-of-a-long-name',
      'é – ü',
      '',
    }) do
      t.eq(text, redact.text(text))
    end
  end)

  it('stand in sensitive buffers', function()
    vim.cmd.enew()
    vim.b.sensitive = true
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { '  the launch code 1234  ', 'PIN: 9876543', 'short', '%d+.*' })
    t.eq('said [secret] and [secret]', redact.text('said the launch code 1234 and 9876543'))
    t.eq('short %d+', redact.text('short %d+'))
  end)

  it('come to an end in long text that begins like one again and again', function()
    for _, text in ipairs({
      ('a-b_c.d=e:f '):rep(2000),
      ('x'):rep(20000),
      (' '):rep(20000),
      ('a.'):rep(10000),
      ('a: '):rep(20000),
      ('a://b:'):rep(10000),
      ('-----BEGIN '):rep(2000),
      ('-----BEGIN PRIVATE KEY-----\n'):rep(2000),
      ('eyJ'):rep(20000),
      ('eyJa.'):rep(4000),
      ('ghp_sk-'):rep(3000),
      ('bearer '):rep(3000),
    }) do
      t.eq('string', type((redact.text(text))))
    end
  end)
end)
