--- Redacts tokens, keys and passwords that have a recognizable format.

local M = {}

M.MARK = '[secret]'

--- Prefix, pattern and minimum length of known tokens. Each is searched by its prefix and read once, in linear time.
---@type { [1]: string, [2]: string, [3]: integer }[]
local FORMS = {}

---@param starts string separated by spaces
---@param tail string set of characters
---@param least integer
local function add(starts, tail, least)
  for start in starts:gmatch('%S+') do
    table.insert(FORMS, { start, '^' .. tail .. '*', least })
  end
end

local WORD, DOTTED, ALNUM, HEX, UPPER = '[%w_-]', '[%w_.-]', '%w', '%x', '[%u%d]'

add('ghp_ gho_ ghu_ ghs_ ghr_ github_pat_', WORD, 20) -- GitHub
add('glpat- gldt- glrt- glptt- glft- glcbt- glsoat- glagent-', DOTTED, 16) -- GitLab
add('ATATT3 ATBB', '[%w_=-]', 20) -- Atlassian, Bitbucket
add('xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-', '[%w%%/+-]', 14) -- Slack
add('hooks.slack.com/services/', '[%w/_-]', 40)
add('AKIA ASIA ABIA ACCA', UPPER, 16) -- AWS
add('AIza GOCSPX-', WORD, 20) -- Google
add('ya29.', DOTTED, 20)
add('sk- sess-', WORD, 20) -- OpenAI, Anthropic and others
add('sk_live_ sk_test_ rk_live_ rk_test_ whsec_', WORD, 20) -- Stripe
add('npm_ pypi- rubygems_ dckr_pat_ dckr_oat_', WORD, 20) -- registries
add('hf_ r8_ gsk_', ALNUM, 24) -- Hugging Face, Replicate, Groq
add('pplx- xai-', WORD, 30)
add('dop_v1_ doo_v1_ dor_v1_', HEX, 30) -- DigitalOcean
add('hvs. hvb. hvr.', DOTTED, 24) -- Vault
add('dapi key-', '[%x-]', 34) -- Databricks, Mailgun
add('SG.', DOTTED, 40) -- SendGrid
add('SK', HEX, 34) -- Twilio
add('shpat_ shpss_ shpca_ shppa_', HEX, 20) -- Shopify
add('sq0atp- sq0csp- EAAA', WORD, 24) -- Square
add('glsa_ glc_ lin_api_ figd_ ntn_ sbp_ sntrys_ sntryu_ pscale_tkn_ pscale_pw_', '[%w_=+/-]', 24)
add('NRAK- PMAK- LTAI', WORD, 20) -- New Relic, Postman, Alibaba
add('dp.pt. dp.st.', DOTTED, 30) -- Doppler
add('AGE-SECRET-KEY-1', UPPER, 30)

--- JSON Web Tokens: at least two parts are JSON.
table.insert(FORMS, { 'eyJ', '^[%w_.-]*', 20, '.eyJ' })

--- A plain text, and a pattern of what follows; it captures the secret.
local AFTER = {
  { '://', '^()[^%s/@:]*:[^%s/@]+()@' },
  { 'earer', '^%s+()[%w%-._~+/=]+()' },
  { 'uthorization', '^["\']?%s*[:=]%s*["\']?%a+%s+()[^%s"\',]+()' },
}

--- Replaces the secrets after or at each occurrence of a plain text.
---@param text string
---@param form table as in FORMS; the first item is the plain text
---@param mark string
---@param range_of fun(text: string, at: integer, form: table): integer?, integer? start and end of a secret
---@return string
local function replaced(text, form, mark, range_of)
  local start = form[1]
  local at = text:find(start, 1, true)
  if not at then
    return text
  end
  local out, done = {}, 1
  while at do
    local from, to = range_of(text, at, form)
    if from then
      out[#out + 1] = text:sub(done, from - 1) .. mark
      done = to
    end
    at = text:find(start, math.max(at + #start, to or 0), true)
  end
  return table.concat(out) .. text:sub(done)
end

---@param form { [1]: string, [2]: string, [3]: integer, [4]: string? } as in FORMS; the token also contains the fourth
local function token_range(text, at, form)
  if at > 1 and text:find('^%w', at - 1) then
    return nil
  end
  local _, last = text:find(form[2], at + #form[1])
  local is_token = last - at + 1 >= form[3] and (not form[4] or text:sub(at, last):find(form[4], 1, true))
  return is_token and at or nil, last + 1
end

---@param form { [1]: string, [2]: string } the anchored pattern captures start and end of the secret
local function range_after(text, at, form)
  return text:match(form[2], at + #form[1])
end

--- Redacts tokens, keys, and passwords in URLs.
---@param text string
---@param mark? string
---@return string
function M.tokens(text, mark)
  mark = mark or M.MARK
  for _, form in ipairs(AFTER) do
    text = replaced(text, form, mark, range_after)
  end
  for _, form in ipairs(FORMS) do
    text = replaced(text, form, mark, token_range)
  end
  return text
end

--- Redacts private keys, even if their beginning or end is missing.
---@param lines string[]
---@param mark? string
---@return string[]
function M.without_keys(lines, mark)
  mark = mark or M.MARK
  local out, inside = {}, false
  for _, line in ipairs(lines) do
    local key = line:find('PRIVATE KEY', 1, true)
    if key and line:find('-----BEGIN ', 1, true) then
      inside = not line:find('-----END ', 1, true)
      table.insert(out, mark)
    elseif key and line:find('-----END ', 1, true) then
      if not inside then
        out = { mark }
      end
      inside = false
    elseif not inside then
      table.insert(out, line)
    end
  end
  return out
end

--- Redacts all secrets with a recognizable format.
---@param text string
---@param mark? string
---@return string
function M.text(text, mark)
  if text:find('PRIVATE KEY', 1, true) then
    text = table.concat(M.without_keys(vim.split(text, '\n', { plain = true }), mark), '\n')
  end
  return M.tokens(text, mark)
end

return M
