local redact = require('mcp-tools.privacy.redact')
local t = require('helpers')

describe('secrets in text', function()
  after_each(function() vim.cmd('silent! %bwipeout!') end)

  it('are recognized by their form', function()
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
      { 'sh: x: PASSWORD=abc d', 'sh: x: PASSWORD=[secret] d' },
      { 'password = "abc', 'password = "[secret]' },
      { "password = '', token: x", "password = '', token: [secret]" },
      { '{"client_secret": "abc"}', '{"client_secret": "[secret]"}' },
      { 'abc\n-----END PRIVATE KEY-----\nb', '[secret]\nb' },
      { 'a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb', 'a\n[secret]\nb' },
      { '-----BEGIN PRIVATE KEY-----\nabc', '[secret]' },
    }
    for _, case in ipairs(cases) do
      t.eq(case[2], redact.text(case[1]))
    end
  end)

  it('are not found in ordinary text', function()
    for _, text in ipairs({
      'E492: Not an editor command: foo',
      '"a.lua" 3L, 45B written',
      'the keyboard = good',
      'tokens are counted in the next line',
      'https://host/path?a=b:c@d',
      'risk-free, task-list, disk-usage-of-a-long-name',
      'SKIP the KEY-word, hf_short, key-value, SG.x, sess-ion, desk-of-somebody-with-a-long-name',
      'authorization is needed; the Authorization header',
      'lua/x.lua:12: attempt to index a nil value (field eyJ)',
      'commit 0123456789abcdef0123456789abcdef01234567',
      'é – ü',
      '',
    }) do
      t.eq(text, redact.text(text))
    end
  end)

  it('are the values in sensitive buffers', function()
    vim.cmd.enew()
    vim.b.sensitive = true
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { '  the launch code 1234  ', 'PIN: 9876543', 'short', '%d+.*' })
    t.eq('said [secret] and [secret]', redact.text('said the launch code 1234 and 9876543'))
    t.eq('short %d+', redact.text('short %d+'))
    local long = ('long secret '):rep(50)
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { long, 'same start 1', 'same start 12' })
    t.eq('a [secret]', redact.text('a ' .. long .. 'b'))
    t.eq('[secret]3 [secret]', redact.text('same start 123 same start 1'))
  end)

  it('are the values in sensitive buffers that were deleted', function()
    redact.watch()
    local path = vim.fn.tempname() .. '.key'
    vim.fn.writefile({ 'vanished line 1', 'x = "vanished 2"' }, path)
    vim.cmd.edit(path)
    vim.cmd('bwipeout!')
    vim.cmd.enew()
    vim.b.sensitive = true
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'vanished line 3' })
    vim.cmd('bwipeout!')
    t.eq('a [secret] b [secret] c [secret]', redact.text('a vanished line 1 b vanished 2 c vanished line 3'))
    vim.fn.delete(path)
  end)

  it('are recognized for two dozen issuers', function()
    local word = 'Abcdefghij0123456789Abcdefghij0123456789'
    local hex = '0123456789abcdef0123456789abcdef'
    local parts = { word, word:upper(), hex, 'EXAMPLE', 'XXXX', 'c2lnb', 'dXNlc', '123456789012', 'A0-123' }
    local forms = [[
      ghp_WORD gho_WORD github_pat_11AB_WORD glpat-WORD gldt-WORD glrt-WORD xoxb-123456789012-123456789012-abc
      xapp-1-A0-123-abc https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX
      AKIAIOSFODNN7EXAMPLE ASIAIOSFODNN7EXAMPLE AIzaWORD GOCSPX-WORD ya29.WORD sk-WORD sk-proj-WORD sk-ant-api03-WORD
      sk_live_WORD rk_test_WORD whsec_WORD npm_WORD pypi-AgEIcHlwaS5vcmcWORD rubygems_WORD dckr_pat_WORD hf_WORD r8_WORD
      gsk_WORD pplx-WORD xai-WORD dop_v1_HEX hvs.WORD dapiHEX key-HEX SG.WORD.WORD SKHEX shpat_HEX sq0atp-WORD
      glsa_WORD lin_api_WORD figd_WORD sntrys_WORD NRAK-WORD PMAK-WORD dp.pt.WORD AGE-SECRET-KEY-1UPPER ATATT3WORD
      eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl AccountKey=WORD==; postgres://user:WORD@host/db
      redis://:WORD@host
    ]]
    local tokens = vim.split(vim.trim(forms), '%s+')
    table.insert(tokens, 'aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY')
    vim.list_extend(tokens, { 'Authorization: Basic dXNlcjpwYXNzd29yZA==', '"authorization": "Token WORD"' })
    for _, form in ipairs(tokens) do
      local token = form:gsub('WORD', word):gsub('UPPER', word:upper()):gsub('HEX', hex)
      local twice = token .. '\n' .. token
      for _, text in ipairs({ token, 'a ' .. token .. ' b', '"' .. token .. '"', 'x=' .. token, twice }) do
        local got = redact.text(text)
        t.matches('%[secret%]', got)
        for _, secret in ipairs(parts) do
          t.ok(not got:find(secret, 1, true), ('%s became %s'):format(text, got))
        end
      end
    end
  end)

  it('are found in linear time', function()
    local texts = { 'earer ', 'authorization: x ', 'ghp_ ', ' ', '-----BEGIN PRIVATE KEY' }
    local words =
      'eyJ- eyJ. eyJa.eyJ xsk- sk- SK a:// a://b: ://: bearer uthorization: uthorization a= a=" a:= password='
    for _, text in ipairs(vim.list_extend(texts, vim.split(words, ' '))) do
      for _, whole in ipairs({ text:rep(64 * 1024 / #text), 'password' .. text:rep(64 * 1024 / #text) }) do
        t.fast(redact.text, whole)
      end
    end
  end)

  it('are redacted in a long line without a long block', function()
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_name(bufnr, vim.fn.tempname() .. '/.env')
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'long_line_of_dotenv', 'another=abcdefghijkl' })
    local parts = t.list(1024 * 128, function(i) return ('%08x'):format((i * 2654435761) % 2 ^ 32) end)
    parts[#parts] = 'long_line_of_dotenv.'
    local pauses = 0
    local text = redact.text(table.concat(parts), function() pauses = pauses + 1 end)
    t.eq({ '[secret].', 1024 * 1024 - 8 + 9 }, { text:sub(-9), #text })
    t.ok(pauses > 10, ('%d pauses'):format(pauses))
    vim.api.nvim_buf_delete(bufnr, { force = true })
  end)

  it('are searched with pauses in text that begins like pieces of many lengths', function()
    local pieces = {}
    for length = 6, 199 do
      pieces[#pieces + 1] = ('A'):rep(length) .. 'B'
    end
    redact.learn(pieces)
    local pauses, text = 0, ('A'):rep(64 * 1024)
    t.eq(text, redact.line(text, function() pauses = pauses + 1 end))
    t.ok(pauses > 32, ('%d pauses'):format(pauses))
  end)

  it('are found in text that contains many beginnings of one', function()
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
