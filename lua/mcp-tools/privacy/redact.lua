--- Secrets in text that no path tells apart, such as messages: taken out before the text leaves the editor.

local guarded = require('mcp-tools.privacy.sensitive_lines')
local log = require('mcp-tools.log')
local secrets = require('mcp-tools.util.secrets')

local M = {}

local MARK = secrets.MARK

--- Words in the name of a thing that make its value one.
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

--- Does the name of a thing say that its value is a secret?
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
--- Whole in quotes, or what begins with one that is not closed, or a word.
local VALUES = { '^"()[^"]*()"', "^'()[^']*()'", '^["\']()%S*()', '^()[^%s,;"\']+()' }

---@param line string
---@return string
local function assignments(line)
  local out, done = nil, 1
  local _, _, name, at = line:find(NAMED)
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

--- A line without its secrets, by the lines of sensitive buffers that are known (`refresh`).
---@param line string
---@param pause? fun() called between pieces of work
---@return string
function M.line(line, pause)
  line = secrets.tokens(guarded.strip(line, MARK, pause))
  if pause then
    pause()
  end
  return assignments(line)
end

--- What is said of a file that may be read, without what it quotes of others: names with values are as in the file.
---@param text string
---@param pause? fun() called between pieces of a long one
---@return string
function M.quoted(text, pause)
  return secrets.tokens(guarded.strip(text, MARK, pause))
end

--- Learns the lines of sensitive buffers as they are now.
M.refresh = guarded.refresh

local function no_pause() end

--- The text without its secrets.
---@param text string
---@param pause? fun() called between pieces of work, so that the editor gets a turn
---@return string
function M.text(text, pause)
  pause = pause or no_pause
  text = log.strip(text, MARK)
  guarded.refresh(pause)
  local lines = secrets.without_keys(vim.split(text, '\n', { plain = true }))
  for i, line in ipairs(lines) do
    lines[i] = M.line(line, pause)
    pause()
  end
  return table.concat(lines, '\n')
end

--- From now on lines of sensitive buffers are known when their buffer is gone.
M.watch = guarded.watch

return M
