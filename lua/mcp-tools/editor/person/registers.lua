--- Registers: what the person has yanked, recorded, searched for and typed; without what looks like a secret.
---
--- Receives: names of registers.
--- Sends: text and kind of each that holds something.
--- Does not know about: who may read the clipboard (it is a register here as any other).

local access = require('mcp-tools.files.access')
local errors = require('mcp-tools.errors')
local redact = require('mcp-tools.files.redact')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- All that hold text of this editor alone.
M.OWN = [["-.:/0123456789abcdefghijklmnopqrstuvwxyz]]
--- The clipboard and what else other programs see.
M.SHARED = '+*'
--- Names of files.
local FILES = '%#'

local KINDS = { v = 'characters', V = 'lines' }

--- Is one of these the clipboard?
---@param names string
---@return boolean
function M.is_shared(names)
  return names:find('[+*]') ~= nil
end

--- Why these names cannot be read.
---@param names string
---@return mcp-tools.Error?
function M.refusal(names)
  for name in names:gmatch('.') do
    if not (M.OWN .. M.SHARED .. FILES):find(name:lower(), 1, true) then
      local text = 'names: there is no register %s; give some of %s'
      return errors.new('validation_error', text:format(utf8.repair(name), M.OWN .. FILES .. M.SHARED))
    end
  end
  if M.is_shared(names) and vim.fn.has('clipboard') == 0 then
    return errors.new('not_found', 'names: this editor has no clipboard; leave + and * out')
  end
end

--- The beginning of a register and how much it holds. A large one is never handed to Lua, which would copy it again.
---@param name string
---@param max integer bytes
---@param pause fun()
---@return string text
---@return integer bytes
local function beginning(name, max, pause)
  local text = vim.fn.eval(('strpart(@%s, 0, %d)'):format(name, max))
  if #text < max then
    return text, #text
  end
  pause()
  return text, vim.fn.eval(('strlen(@%s)'):format(name))
end

---@param name string
---@param max_bytes integer
---@param pause fun()
---@return table?
local function read(name, max_bytes, pause)
  -- Some more than is given, so that a secret at the cut is known for one.
  local text, bytes = beginning(name, 2 * max_bytes + 4096, pause)
  local kind = vim.fn.getregtype(name)
  if text == '' then
    return nil
  elseif FILES:find(name, 1, true) then
    text = access.name(text)
    bytes = #text
  end
  local given = redact.text(text, pause)
  return {
    register = name,
    kind = KINDS[kind] or 'block',
    bytes = bytes,
    text = #given > max_bytes and utf8.cut(given, max_bytes) or given,
    truncated = (#given > max_bytes or bytes > #text) or nil,
  }
end

--- Those that hold something.
---@param names string
---@param max_bytes integer of each
---@param pause fun()
---@return table[]
function M.get(names, max_bytes, pause)
  local list, seen = {}, {}
  for name in names:lower():gmatch('.') do
    if not seen[name] then
      seen[name] = true
      table.insert(list, read(name, max_bytes, pause))
      pause()
    end
  end
  return list
end

return M
