--- Secrets in text that no path tells apart, such as messages: taken out before the text leaves the editor.
---
--- Receives: text that may quote anything.
--- Sends: the text with "[secret]" in place of what is one by its form, or stands in a sensitive buffer.
--- Does not know about: who gets the text. It is a net with holes: what has no form of its own passes.

local buffer = require('mcp-tools.files.buffer')

local M = {}

local MARK = '[secret]'

--- Forms that issuers have given to their keys, and how long such a key is at least. Each pattern begins where a word
--- does and never looks at a byte twice, so that no text takes long.
local TOKENS = {
  { '%f[%w]gh[pousr]_%w+', 20 },
  { '%f[%w]github_pat_[%w_]+', 20 },
  { '%f[%w]glpat%-[%w_-]+', 16 },
  { '%f[%w]sk%-[%w_-]+', 20 },
  { '%f[%w]A[KS]IA[%u%d]+', 16 },
  { '%f[%w]AIza[%w_-]+', 20 },
  { '%f[%w]xox[abeoprs]%-[%w-]+', 14 },
  { '%f[%w]npm_%w+', 20 },
  { '%f[%w]pypi%-[%w_-]+', 20 },
  { '%f[%w]eyJ[%w_-]+%.eyJ[%w_-]+%.?[%w_-]*', 20 },
}

--- Words in the name of a thing that make its value one.
local NAMES =
  { 'password', 'passwd', 'passphrase', 'secret', 'token', 'apikey', 'accesskey', 'privatekey', 'credential' }

--- Lines of a sensitive buffer shorter than this are words that stand anywhere.
local MIN_LINE = 6
--- Lines of each sensitive buffer that are looked for.
local MAX_LINES = 500

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
local NAMED = '%f[%w_.-]([%w_.-]+)(["\']?%s*[:=]+%s*)'
local VALUES = { { '"[^"]*"', '"' .. MARK .. '"' }, { "'[^']*'", "'" .. MARK .. "'" }, { '[^%s,;"\']+', MARK } }

---@param line string
---@return string
local function assignments(line)
  for _, value in ipairs(VALUES) do
    line = line:gsub(NAMED .. value[1], function(name, sign)
      if is_secret_name(name) then
        return name .. sign .. value[2]
      end
    end)
  end
  return line
end

---@return table<string, true> lines that stand in sensitive buffers, or their values
local function guarded_lines()
  local lines = {}
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) then
      local kind, name = buffer.kind(bufnr)
      if buffer.is_marked(bufnr) or buffer.is_sensitive_name(name, kind) then
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
  if not text:find(plain, 1, true) then
    return text
  end
  return (text:gsub(vim.pesc(plain), MARK))
end

--- Private keys in lines of their own, also when the beginning or the end is cut off.
---@param lines string[]
---@return string[]
local function without_keys(lines)
  local out, inside = {}, false
  for _, line in ipairs(lines) do
    local key = line:find('PRIVATE KEY-----', 1, true)
    if key and line:find('-----BEGIN ', 1, true) then
      inside = true
      table.insert(out, MARK)
    elseif key and line:find('-----END ', 1, true) then
      if not inside then
        out = { MARK }
      end
      inside = false
    elseif not inside then
      table.insert(out, line)
    end
  end
  return out
end

---@param line string
---@return string
local function without_tokens(line)
  line = line:gsub('%f[%w+.-](%a[%w+.-]*://)[^%s/@:]*:[^%s/@]+@', '%1' .. MARK .. '@')
  line = line:gsub('%f[%w]([Bb]earer%s+)[%w%-._~+/=]+', '%1' .. MARK)
  for _, token in ipairs(TOKENS) do
    line = line:gsub(token[1], function(found)
      return #found >= token[2] and MARK or found
    end)
  end
  return assignments(line)
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
  return table.concat(vim.tbl_map(without_tokens, without_keys(vim.split(text, '\n', { plain = true }))), '\n')
end

return M
