--- Why git failed, without the lines of files that it quotes.
---
--- Receives: what came of a program.
--- Sends: one line.
--- Does not know about: what git was asked.

local utf8 = require('mcp-tools.util.utf8')

--- Behind a colon git quotes the line that it cannot read, of whatever file a link or the configuration has it take for
--- one of its own. Only this is said of the repository by no file.
local REASONS = { ['No such file or directory'] = true, ['Permission denied'] = true, ['Not a directory'] = true }

--- Why git failed, without what it quotes.
---@param done mcp-tools.process.Result
---@return string?
return function(done)
  if not done.fault or not done.code or done.ended_by or done.signal ~= 0 then
    return done.fault
  end
  local said = ('\n' .. done.stderr):match('\nfatal: [^\n]*') or ('\n' .. done.stderr):match('\nerror: [^\n]*')
  local kind, text = (said or ''):match('^\n(%l+): (.*)$')
  if not text then
    return ('git ended with %d'):format(done.code)
  end
  local head, tail = text:match('^(.-): (.*)$')
  local is_kept = not head or REASONS[tail] or vim.startswith(head, 'command line,') -- that one is about a pattern
  return (utf8.repair(('%s: %s'):format(kind, is_kept and text or head)))
end
