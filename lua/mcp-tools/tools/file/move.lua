--- A file or folder, moved.

local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local move = require('mcp-tools.editor.file.move')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local target = require('mcp-tools.editor.buffer.target')

--- Where a path is.
---@param root string
---@param name string of the argument
---@param given string
---@return string? path
---@return mcp-tools.Error? err
local function resolved(root, name, given)
  local path, err = buffers.resolve(given, name)
  if path and path == paths.real_root(root) then
    return nil, errors.new('validation_error', ('%s: it is the project itself'):format(name))
  end
  return path, err
end

--- Where a path is, when the call may touch it.
---@param ctx mcp-tools.Ctx
---@param name string of the argument
---@param given string
---@return string? path
---@return mcp-tools.Error? err
local function place(ctx, name, given)
  local path, err = resolved(ctx.root, name, given)
  err = err or target.path_refusal(ctx, path --[[@as string]])
  if err then
    return nil, err
  end
  return path
end

return {
  name = 'file_move',
  title = 'Move a file',
  description = 'Moves or renames a file or directory. Language servers change what refers to it, such as imports, and'
    .. ' the answer names imports that do not resolve afterwards; open buffers follow. Missing directories are created.'
    .. ' Nothing is overwritten; files with unsaved changes are not moved.',
  args = {
    path = { type = 'string', description = 'File or folder', required = true, minLength = 1 },
    new_path = { type = 'string', description = 'Where it goes, with its name', required = true, minLength = 1 },
  },
  annotations = { read_only = false, destructive = true, idempotent = false },
  needs_approval = 'it moves files',
  timeout = move.TIMEOUT_MS,
  preview = function(args)
    local root = project.root()
    local from, err = resolved(root, 'path', args.path)
    local to
    if from then
      to, err = resolved(root, 'new_path', args.new_path)
    end
    err = err or move.refusal(from --[[@as string]], to --[[@as string]])
    if err then
      return nil, err
    end
    return ('%s → %s\nLanguage servers may change what refers to it in other files.'):format(args.path, args.new_path)
  end,
  run = function(ctx, args)
    local from, err = place(ctx, 'path', args.path)
    local to
    if from then
      to, err = place(ctx, 'new_path', args.new_path)
    end
    local moved
    local exposed = from and to and move.exposed(ctx, from, to)
    err = exposed and target.path_refusal(ctx, exposed) or err
    if from and to and not exposed then
      moved, err = move.run(ctx, from, to)
    end
    if not from or not to or not moved then
      return nil, err
    end
    return move.result(ctx, from, to, moved)
  end,
}
