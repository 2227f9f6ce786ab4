--- Values and output of a debugged program without secrets, shortened.

local log = require('mcp-tools.log')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local secrets = require('mcp-tools.util.secrets')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

M.SECRET = secrets.MARK

--- Number of characters after the cut that are searched as well, so that a token across it is recognized.
local BEYOND = 300
--- Values that show a secret is unset, so they need no redaction.
local NOTHING =
  { [''] = true, None = true, ['nil'] = true, null = true, undefined = true, ["''"] = true, ['""'] = true }

---@param text string
---@param max integer characters
---@return string
local function cut(text, max)
  return position.cut(utf8.repair(text), max)
end

--- Removes lists and maps with secret names: what is inside has no such name.
---@param text string
---@return string
local function without_nested(text)
  local out, done, at = {}, 1, 1
  while true do
    local from, _, name, open = text:find('%f[%w_]([%w_]+)["\']?%s*[:=]%s*()[%[{(]', at)
    if not from then
      break
    end
    at = open
    if redact.is_secret_name(name) then
      local char = text:sub(open, open)
      local _, last = text:find(({ ['['] = '^%b[]', ['{'] = '^%b{}', ['('] = '^%b()' })[char], open)
      last = last or #text -- its end is missing
      table.insert(out, text:sub(done, open - 1) .. M.SECRET)
      done, at = last + 1, last + 1
    end
  end
  return table.concat(out) .. text:sub(done)
end

--- Returns text without secrets.
---@param text string
---@param max integer characters
---@param pause? fun()
---@return string
function M.text(text, max, pause)
  text = without_nested(log.strip(text:sub(1, 4 * max + BEYOND), M.SECRET))
  local lines = secrets.without_keys(vim.split(text, '\n', { plain = true }))
  for i, line in ipairs(lines) do
    lines[i] = redact.line(line, pause)
  end
  return cut(table.concat(lines, '\n'), max)
end

--- Whether a value is withheld because of its name.
---@param name string
---@param value any
---@return boolean
function M.is_withheld(name, value)
  return redact.is_secret_name(name) and not NOTHING[value]
end

--- Returns the redacted value of a variable. Call `refresh` before the first one of an answer.
---@param name string
---@param value any
---@param max integer characters
---@param pause? fun()
---@return string text
---@return boolean withheld
function M.value(name, value, max, pause)
  local text = type(value) == 'string' and value or vim.inspect(value)
  if redact.is_secret_name(name) then
    local withheld = M.is_withheld(name, text)
    return withheld and M.SECRET or text, withheld
  end
  return M.text(text, max, pause), false
end

--- Reads the lines of sensitive buffers again.
---@param ctx mcp-tools.Ctx inside a coroutine
function M.refresh(ctx)
  redact.refresh(time_slice.of(ctx))
end

return M
