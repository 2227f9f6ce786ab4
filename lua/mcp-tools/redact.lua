--- Secrets in text that no path tells apart, such as messages: taken out before the text leaves the editor.
---
--- Receives: text that may quote anything.
--- Sends: the text with "[secret]" in place of what is one by its form, or stands in a sensitive buffer.
--- Does not know about: who gets the text. It is a net with holes: what has no form of its own passes.

local paths = require('mcp-tools.paths')

local M = {}

local MARK = '[secret]'

--- Forms that issuers have given to their keys.
local TOKENS = {
  'gh[pousr]_%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w*',
  'github_pat_[%w_]+',
  'glpat%-[%w_-]+',
  'sk%-[%w_-]%w%w%w%w%w%w%w%w%w%w%w%w%w%w[%w_-]*',
  'AKIA%u%u%u%u[%u%d]+',
  'ASIA%u%u%u%u[%u%d]+',
  'AIza[%w_-]+',
  'xox[abeoprs]%-[%w-]+',
  'npm_%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w+',
  'pypi%-[%w_-]+',
  'eyJ[%w_-]+%.eyJ[%w_-]+%.?[%w_-]*',
}

--- Words in the name of a thing that make its value one.
local NAMES =
  { 'password', 'passwd', 'passphrase', 'secret', 'token', 'apikey', 'accesskey', 'privatekey', 'credential' }

--- Lines of a sensitive buffer shorter than this are words that stand anywhere.
local MIN_LINE = 6
--- Lines of each sensitive buffer that are looked for.
local MAX_LINES = 2000

---@param name string
local function is_secret_name(name)
  local plain = name:lower():gsub('[_%-%.]', '')
  for _, word in ipairs(NAMES) do
    if plain:find(word, 1, true) then
      return true
    end
  end
  return false
end

--- `name = value`, `name: value`, with or without quotes.
---@param line string
---@return string
local function assignments(line)
  return (
    line:gsub('([%w_%-%.]+)(["\']?%s*[:=]+%s*)([^%s,;]+)', function(name, sign, value)
      if is_secret_name(name) then
        local quote = value:match('^["\']') or ''
        return name .. sign .. quote .. MARK .. quote
      end
    end)
  )
end

---@return table<string, true> lines that stand in sensitive buffers, or their values
local function guarded_lines()
  local lines = {}
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) then
      local name = vim.api.nvim_buf_get_name(bufnr)
      if
        vim.b[bufnr].sensitive == true
        or (name ~= '' and (paths.sensitive(name) or paths.sensitive(paths.resolve(name))))
      then
        for _, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, 0, MAX_LINES, false)) do
          line = vim.trim(line)
          if #line >= MIN_LINE then
            lines[line] = true
          end
          local value = vim.trim(line:match('[:=]%s*["\']?([^"\']+)') or '')
          if #value >= MIN_LINE then
            lines[value] = true
          end
        end
      end
    end
  end
  return lines
end

---@param text string
---@param plain string
---@return string
local function without(text, plain)
  return (text:gsub(vim.pesc(plain), (MARK:gsub('%%', '%%%%'))))
end

--- The text without its secrets.
---@param text string
---@return string
function M.text(text)
  local token = require('mcp-tools.bridge').get_auth_token()
  if token and token ~= '' then
    text = without(text, token)
  end
  local guarded = vim.tbl_keys(guarded_lines())
  table.sort(guarded, function(a, b)
    return #a > #b -- whole lines before their parts
  end)
  for _, line in ipairs(guarded) do
    text = without(text, line)
  end
  text = text:gsub('%-%-%-%-%-BEGIN [%u ]*PRIVATE KEY%-%-%-%-%-.-%-%-%-%-%-END [%u ]*PRIVATE KEY%-%-%-%-%-', MARK)
  text = text:gsub('%-%-%-%-%-BEGIN [%u ]*PRIVATE KEY%-%-%-%-%-.*', MARK) -- cut off before its end
  text = text:gsub('(%a[%w+.-]*://)[^%s/@:]*:[^%s/@]+@', '%1' .. MARK .. '@')
  text = text:gsub('([Bb]earer%s+)[%w%-._~+/=]+', '%1' .. MARK)
  for _, pattern in ipairs(TOKENS) do
    text = text:gsub('%f[%w]' .. pattern, MARK)
  end
  return (text:gsub('[^\n]+', assignments))
end

return M
