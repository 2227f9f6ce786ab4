--- Redacts secrets in text without a path, such as messages, before it leaves the editor.

local sensitive_lines = require('mcp-tools.privacy.sensitive_lines')
local log = require('mcp-tools.log')
local secrets = require('mcp-tools.util.secrets')

local M = {}

local MARK = secrets.MARK

--- Parts of names whose values are secrets.
local NAMES = {
  'password',
  'passwd',
  'passphrase',
  'passcode',
  'secret',
  'token',
  'apikey',
  'accesskey',
  'accountkey',
  'authkey',
  'privatekey',
  'credential',
}

--- Returns whether a name suggests that its value is a secret.
---@param name string
---@return boolean
function M.is_secret_name(name)
  local plain = name:lower():gsub('[_%-%.]', '')
  for _, word in ipairs(NAMES) do
    if plain:find(word, 1, true) then
      return true
    end
  end
  return false
end

--- `name = value`, `name: value`, with or without quotes.
local NAMED = '%f[%w_.-]([%w_.-]+)["\']?%s*[:=]+%s*()'
--- A quoted value, an unclosed one, or a word.
local VALUES = { '^"()[^"]*()"', "^'()[^']*()'", '^["\']()%S*()', '^()[^%s,;"\']+()' }

---@param line string
---@return string
local function assignments(line)
  local out, done = nil, 1
  local _, _, name, at = line:find(NAMED) ---@type any, any, string, integer?
  while at do
    for _, value in ipairs(M.is_secret_name(name) and VALUES or {}) do
      local from, to = line:match(value, at)
      if from then
        if to > from then
          out = out or {}
          out[#out + 1] = line:sub(done, from - 1)
          out[#out + 1] = MARK
          done, at = to, to
        end
        break
      end
    end
    _, _, name, at = line:find(NAMED, at)
  end
  if not out then
    return line
  end
  out[#out + 1] = line:sub(done)
  return table.concat(out)
end

--- Redacts a line, also lines of sensitive buffers as of the last `refresh`.
---@param line string
---@param pause? fun() called between pieces of work
---@return string
function M.line(line, pause)
  line = secrets.tokens(sensitive_lines.strip(line, MARK, pause))
  if pause then
    pause()
  end
  return assignments(line)
end

--- Redacts text about a readable file; assignments are kept, as in the file.
---@param text string
---@param pause? fun() called between pieces of work
---@return string
function M.quoted(text, pause)
  return secrets.tokens(sensitive_lines.strip(text, MARK, pause))
end

--- Learns the current lines of sensitive buffers.
M.refresh = sensitive_lines.refresh

local function no_pause() end

--- Redacts a text.
---@param text string
---@param pause? fun() called between pieces of work
---@return string
function M.text(text, pause)
  pause = pause or no_pause
  text = log.strip(text, MARK)
  sensitive_lines.refresh(pause)
  local lines = secrets.without_keys(vim.split(text, '\n', { plain = true }))
  for i, line in ipairs(lines) do
    lines[i] = M.line(line, pause)
    pause()
  end
  return table.concat(lines, '\n')
end

--- Starts to learn the lines of sensitive buffers before they are deleted.
M.watch = sensitive_lines.watch

return M
