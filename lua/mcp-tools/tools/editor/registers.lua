--- Returns the contents of registers.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local redact = require('mcp-tools.privacy.redact')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')
local result = require('mcp-tools.editor.result')

--- Registers that belong to this editor only.
local OWN = [["-.:/0123456789abcdefghijklmnopqrstuvwxyz]]
--- The clipboard and the selection, which are shared with other programs.
local SHARED = '+*'
--- Registers with file names.
local FILES = '%#'

local KINDS = { v = 'characters', V = 'lines' }

--- Returns whether one of the names is the clipboard.
---@param names string
---@return boolean
local function is_shared(names)
  return names:find('[+*]') ~= nil
end

--- Throws an error value if the registers cannot be read.
---@param names string
local function check(names)
  for name in names:gmatch('.') do
    if not (OWN .. SHARED .. FILES):find(name:lower(), 1, true) then
      local text = 'names: there is no register %s; registers are %s'
      error(errors.new('validation_error', text:format(utf8.repair(name), OWN .. FILES .. SHARED)), 0)
    end
  end
  if is_shared(names) and vim.fn.has('clipboard') == 0 then
    error(errors.new('not_found', 'names: this editor has no clipboard; leave out + and *'), 0)
  end
end

--- Returns the beginning of a register and its size. Passing a large one to Lua as a whole would copy it again.
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
  -- More than is returned, so that a secret at the cut is recognized.
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

--- Returns the registers that are not empty.
---@param names string
---@param max_bytes integer of each
---@param pause fun()
---@return table[]
local function read_all(names, max_bytes, pause)
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

return {
  name = 'editor_registers',
  title = 'Registers',
  description = 'Returns what is in the registers: yanks, macros, last search (/) and command (:). The clipboard (+ and'
    .. ' *) is read only if `names` contains it, after asking the user.',
  args = {
    names = {
      type = 'string',
      description = 'Register names in one string, such as `0a+`; default: all but the clipboard',
      minLength = 1,
      maxLength = 60,
    },
    max_bytes = {
      type = 'integer',
      description = 'Maximum size of each register',
      default = 2000,
      minimum = 1,
      maximum = 100000,
      hidden = true,
    },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  needs_approval = function(args)
    return is_shared(args.names or OWN) and 'it reads the clipboard, which may contain anything'
  end,
  preview = function(args)
    check(args.names or OWN)
    return 'Registers ' .. (args.names or OWN)
  end,
  run = function(ctx, args)
    check(args.names or OWN)
    return result.utf8({ registers = read_all(args.names or OWN, args.max_bytes, time_slice.of(ctx)) })
  end,
  render = function(value)
    local rows = { #value.registers == 0 and 'They are empty.' or nil }
    for _, each in ipairs(value.registers) do
      local size = each.truncated and (', the beginning of %d bytes'):format(each.bytes) or ''
      table.insert(rows, ('"%s (%s%s): %s'):format(each.register, each.kind, size, each.text))
    end
    return result.longest({ { text = rows } }, 'fewer names')
  end,
}
