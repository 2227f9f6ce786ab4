--- The editor's help, read without opening it.

local errors = require('mcp-tools.errors')
local paginate = require('mcp-tools.editor.result.paginate')
local tags = require('mcp-tools.editor.help.tags')
local time_slice = require('mcp-tools.util.time_slice')
local topic = require('mcp-tools.editor.help.topic')
local trim = require('mcp-tools.util.trim')
local valid_utf8 = require('mcp-tools.editor.result.valid_utf8')

--- Topics that are named beside the text of one.
local SEE = 8

---@param found table[]
---@return string[]
local function names(found)
  return vim.tbl_map(function(each)
    return each.tag
  end, found)
end

--- The text of a topic.
---@param ctx mcp-tools.Ctx
---@param args table
---@param found table[] topics that fit, at least one
local function read(ctx, args, found)
  local best = found[1]
  local text, err = topic.text(ctx, best.file)
  if not text then
    return ctx(nil, err)
  end
  local part = topic.read(text, best.tag, args.offset, args.limit)
  if not part then
    local message = 'the tag %s is not in its file any more; :helptags makes its index anew'
    return ctx(nil, errors.new('not_found', message:format(best.tag)))
  end
  local others = names(vim.list_slice(found, 2, SEE + 1))
  return valid_utf8({
    tag = best.tag,
    file = vim.fs.basename(best.file),
    line = part.line,
    text = table.concat(part.lines, '\n'),
    next_offset = part.more and args.offset + #part.lines or nil,
    ends_here = part.ended or nil,
    see_also = #others > 0 and others or nil,
  })
end

return {
  name = 'editor_help',
  title = 'Help',
  description = "Reads the editor's help, plugins' included. topic: the text of a tag (nvim_buf_get_lines(),"
    .. " 'tabstop', :substitute, lsp-config), or of the nearest one; next_offset goes on reading. search: tags and"
    .. ' lines that hold all of these words.',
  args = {
    topic = {
      type = 'string',
      description = 'A help tag; what marks it may be left out',
      minLength = 1,
      maxLength = 200,
    },
    search = { type = 'string', description = 'Words, in any case', minLength = 2, maxLength = 200 },
    limit = {
      type = 'integer',
      description = 'At most so many lines or matches',
      default = 60,
      minimum = 1,
      maximum = 1000,
    },
    offset = { type = 'integer', description = 'Lines or matches to pass over', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    if (args.topic == nil) == (args.search == nil) then
      return ctx(nil, errors.new('validation_error', 'give exactly one of topic and search'))
    end
    local pause = time_slice.of(ctx)
    local found = tags.find(tags.all(ctx, pause), args.topic or args.search, pause)
    if args.topic then
      if #found == 0 then
        local text = 'topic: the help has no tag like %s; search looks into its text'
        return ctx(nil, errors.new('not_found', text:format(args.topic)))
      end
      return read(ctx, args, found)
    end
    local items, about = paginate(found, args)
    local answer = { tags = {}, tags_total = about.total, next_offset = about.next_offset }
    for _, each in ipairs(items) do
      table.insert(answer.tags, { tag = each.tag, file = vim.fs.basename(each.file) })
    end
    local words = vim.split(trim(args.search:lower()), '%s+')
    local lines = topic.search(ctx, words, args.offset + args.limit + 1, pause)
    answer.lines = vim.list_slice(lines, args.offset + 1, math.min(#lines, args.offset + args.limit))
    if #lines > args.offset + args.limit then
      answer.next_offset = args.offset + args.limit
    end
    for _, each in ipairs(answer.lines) do
      each.file = vim.fs.basename(each.file)
    end
    return valid_utf8(answer)
  end,
}
