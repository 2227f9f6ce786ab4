-- every Neovim
local t = require('helpers')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

describe('the summary of an edit by a server', function()
  local plan =
    { files = { { path = 'a', edits = { 1, 2 } }, { path = 'b', edits = { 3 } }, { path = 'c', edits = { 4 } } } }

  it('has the places of each file', function()
    local files = { { written = true }, { written = false }, { written = true } }
    t.eq({
      { path = 'a', places = 2 },
      { path = 'b', places = 1, unsaved = true },
      { path = 'c', places = 1 },
    }, workspace_edit.summary(plan, files))
  end)

  it('claims no place that the person has rejected, and no change of a file that has none', function()
    local files =
      { { written = true, hunks = { 1 } }, { written = false, hunks = {} }, { written = false, hunks = { 1 } } }
    files.rejected = { { path = 'b', hunk = 1, line = 1 } }
    t.eq({
      { path = 'a', applied = 1 },
      { path = 'b', applied = 0 },
      { path = 'c', applied = 1, unsaved = true },
    }, workspace_edit.summary(plan, files))
  end)
end)
