--- Colours of plain lines of ours, by a few rules: headings, what stands before a value, states, times.
---
--- Receives: lines as a person reads and copies them.
--- Sends: spans of them; the lines stay as they are.
--- Does not know about: which window shows them.

local M = {}

--- More lines are not looked at: nobody reads them, and the person waits.
local MAX_LINES, MAX_BYTES = 3000, 400

--- Words that tell how something is, wherever they stand by themselves.
local STATES = {
  running = 'Good',
  ready = 'Good',
  connected = 'Good',
  completed = 'Good',
  allow = 'Good',
  starting = 'Busy',
  stopped = 'Dim',
  off = 'Dim',
  DEBUG = 'Dim',
  INFO = 'Busy',
  WARN = 'Warn',
  WARNING = 'Warn',
  ERROR = 'Bad',
  denied = 'Bad',
  deny = 'Bad',
  failed = 'Bad',
  Error = 'Bad',
}

--- What a line begins with → the name of its colour; the part in `()` `()` is coloured. The first that fits counts.
local BEGINNINGS = {
  { '^()failed:()', 'Bad' },
  { '^()%d%d%d%d%-%d%d%-%d%d[ T]%d%d:%d%d:%d%d%S*()', 'Dim' },
  { '^()%d%d:%d%d:%d%d%S*()', 'Dim' },
  { '^ +()%d+()  %d%d:%d%d:%d%d', 'Number' },
  { '^()[%a][%w ]*:() ', 'Label' },
  { '^  ()[%l][%l ]-()  +%S', 'Label' },
  { '^  ()[%w_%-/.:{}]+()%s+%S', 'Name' },
}

---@param line string
---@param next_line string?
---@return mcp-tools.Span[]
local function spans_of(line, next_line)
  local spans = {}
  local is_head = line:find('^%S') and not line:find('^%d') and next_line and next_line:find('^  %S')
  if is_head and not line:find('^[^:]+: ') then
    return { { 1, #line, 'Heading' } }
  end
  for _, rule in ipairs(BEGINNINGS) do
    local from, to = line:match(rule[1])
    if from then
      table.insert(spans, { from, to - 1, rule[2] })
      break
    end
  end
  for from, word, to in line:gmatch('%f[%w]()(%a+)()%f[%W]') do
    local before, after = line:sub(from - 1, from - 1), line:sub(to, to)
    if STATES[word] and not before:find('[%w_/.%-]') and not after:find('[%w_/.%-]') then
      table.insert(spans, { from, to - 1, STATES[word] })
    end
  end
  return spans
end

--- The colours of lines.
---@param lines string[]
---@return mcp-tools.Span[][]
function M.spans(lines)
  local spans = {}
  for i = 1, math.min(#lines, MAX_LINES) do
    spans[i] = spans_of(lines[i]:sub(1, MAX_BYTES), lines[i + 1])
  end
  return spans
end

return M
