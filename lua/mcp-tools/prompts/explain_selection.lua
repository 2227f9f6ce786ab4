--- Prompt: explain the selection.

local focus = require('mcp-tools.editor.user.focus')
local excerpt = require('mcp-tools.editor.result.excerpt')
local utf8 = require('mcp-tools.util.utf8')

--- Lines of context around the selection.
local AROUND = 10
local MAX_TEXT = 64 * 1024

return {
  name = 'explain_selection',
  title = 'Explain the selection',
  description = 'Explains the text that is selected in the editor, or was selected last, with the lines around it.',
  args = { { name = 'question', description = 'What you want to know about it' } },
  get = function(ctx, args)
    local found = focus.selection(ctx.root)
    if not found then
      return ctx:fail('not_found', 'nothing is selected in the current file; select something and try again')
    elseif not found.text then
      local what = found.withheld == 'too large' and 'it' or 'its file'
      return ctx:fail('not_found', ('the selection is withheld: %s is %s'):format(what, found.withheld))
    end
    local cut = #found.text > MAX_TEXT
    local around = not cut and excerpt.numbered_of(found.bufnr, found.start_line - AROUND, found.end_line + AROUND)
    local text = table.concat({
      args.question or 'Explain what this does, why it may be written this way, and what is surprising about it.',
      ('Selected in %s, lines %d to %d:'):format(
        found.path or 'a buffer without a file',
        found.start_line,
        found.end_line
      ),
      excerpt.fenced(cut and found.text:sub(1, MAX_TEXT) or found.text, found.filetype),
      not cut and 'With the lines around it:' or 'The selection is longer; this is its beginning.',
      around and excerpt.fenced(around, found.filetype) or nil,
    }, '\n\n')
    ctx((utf8.repair(text)))
  end,
}
