--- Makes untrusted text safe to display: invisible and misleading characters become visible.

local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- A Vim pattern for the replacements.
M.PATTERN = [[<U+\x\{4,6}>\|<\x\x>]]

--- Ranges of characters that have no width, set a direction, join, are blank, or select a variant.
local HIDDEN = {
  { 0x00, 0x1f }, -- controls
  { 0x7f, 0xa0 }, -- more controls, no-break space
  { 0xad, 0xad }, -- soft hyphen
  { 0x034f, 0x034f }, -- grapheme joiner
  { 0x0600, 0x0605 }, -- Arabic number signs
  { 0x061c, 0x061c }, -- Arabic letter mark
  { 0x06dd, 0x06dd },
  { 0x070f, 0x070f }, -- Syriac abbreviation
  { 0x0890, 0x0891 },
  { 0x08e2, 0x08e2 },
  { 0x115f, 0x1160 }, -- Hangul fillers
  { 0x1680, 0x1680 },
  { 0x17b4, 0x17b5 }, -- Khmer vowels without a form
  { 0x180b, 0x180f }, -- Mongolian selectors
  { 0x2000, 0x200f }, -- spaces, zero width, direction
  { 0x2028, 0x202f }, -- separators, embeddings and overrides
  { 0x205f, 0x206f }, -- joiners, isolates
  { 0x2800, 0x2800 }, -- blank Braille
  { 0x3000, 0x3000 },
  { 0x3164, 0x3164 },
  { 0xfe00, 0xfe0f }, -- variation selectors
  { 0xfeff, 0xfeff },
  { 0xffa0, 0xffa0 },
  { 0xfff0, 0xfffb }, -- annotations
  { 0xfffe, 0xffff },
  { 0x110bd, 0x110bd }, -- Kaithi number signs
  { 0x110cd, 0x110cd },
  { 0x13430, 0x1343f }, -- joiners of hieroglyphs
  { 0x1bca0, 0x1bca3 },
  { 0x1d159, 0x1d159 }, -- a note without a head
  { 0x1d173, 0x1d17a },
  { 0xe0000, 0xe0fff }, -- tags, more variation selectors
  { 0x100000, 0x10ffff }, -- private use
}

---@param code integer
---@return boolean
local function is_hidden(code)
  for _, range in ipairs(HIDDEN) do
    if code < range[1] then
      return false
    elseif code <= range[2] then
      return true
    end
  end
  return false
end

local function mark(code)
  return ('<U+%04X>'):format(code)
end

local CONTROLS = { ['\127'] = mark(127) }
for code = 0, 31 do
  CONTROLS[string.char(code)] = mark(code)
end

--- Multi-byte characters, except U+4000 to U+CFFF, which are common and all visible.
local MAY_BE_HIDDEN = '[\194-\227\237-\244][\128-\191]+'

--- Maximum number of cached characters.
local MAX_KNOWN = 4096
local known = 0

--- Replacement of each character.
---@type table<string, string>
local SHOWN = {}
setmetatable(SHOWN, {
  __index = function(_, char)
    local code = vim.fn.char2nr(char, true)
    local text = is_hidden(code) and mark(code) or char
    if known < MAX_KNOWN then
      known = known + 1
      SHOWN[char] = text
    end
    return text
  end,
})

--- Sanitizes one line.
---@param text string
---@return string
function M.line(text)
  if not text:find('[^\32-\126]') then
    return text
  end
  local out, from = {}, 1
  while from <= #text do
    local bad = utf8.invalid_at(text, from)
    local good = text:sub(from, bad and bad - 1):gsub('[%z\1-\31\127]', CONTROLS)
    out[#out + 1] = good:gsub(MAY_BE_HIDDEN, SHOWN)
    out[#out + 1] = bad and ('<%02X>'):format(text:byte(bad)) or nil
    from = bad and bad + 1 or #text + 1
  end
  return table.concat(out)
end

--- Sanitizes a text to lines; line breaks and tabs are kept.
---@param text string
---@return string[]
function M.lines(text)
  local lines = vim.split(text, '\n', { plain = true })
  for i, line in ipairs(lines) do
    lines[i] = M.line((line:gsub('\t', '    ')))
  end
  return lines
end

--- Sanitizes a text; line breaks and tabs are kept.
---@param text string
---@return string
function M.text(text)
  return table.concat(M.lines(text), '\n')
end

return M
