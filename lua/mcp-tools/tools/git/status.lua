--- What has changed in the working tree.

local revision = require('mcp-tools.editor.git.revision')
local status = require('mcp-tools.editor.git.status')
local buffers = require('mcp-tools.editor.buffer')

return {
  name = 'git_status',
  description = 'Branch, commits ahead and behind, a merge or rebase that is half done, and changed files by kind'
    .. ' ("M path"; letters as in git status). Files with unsaved changes in the editor are named apart: git does not'
    .. ' see those changes.',
  args = {
    path = { type = 'string', description = 'Only this file or folder' },
    untracked = {
      type = 'string',
      enum = { 'no', 'normal', 'all' },
      description = 'Untracked files; normal names a new folder once',
      default = 'normal',
    },
    limit = { type = 'integer', description = 'At most so many files', default = 200, minimum = 1, maximum = 5000 },
    offset = { type = 'integer', description = 'Files to pass over', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place, err = revision.place(ctx, args)
    if err then
      return ctx(nil, err)
    end
    local found, fault = status.of(ctx, args.untracked, place.path)
    if not found then
      return ctx(nil, revision.failed(fault --[[@as string]]))
    end
    local files, answer = found.files, found
    answer.files = nil
    for i = args.offset + 1, math.min(#files, args.offset + args.limit) do
      local kind = files[i].kind
      answer[kind] = answer[kind] or {}
      table.insert(answer[kind], files[i].text)
    end
    local last = args.offset + args.limit
    answer.total = #files
    answer.next_offset = last < #files and last or nil
    answer.cut = found.cut or nil
    answer.unsaved = buffers.unsaved(ctx.root, place.path)
    return answer
  end,
}
