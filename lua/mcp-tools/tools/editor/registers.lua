--- What the person has yanked, recorded, searched for and typed.

local registers = require('mcp-tools.editor.person.registers')
local time_slice = require('mcp-tools.util.time_slice')
local valid_utf8 = require('mcp-tools.editor.result.valid_utf8')

return {
  name = 'editor_registers',
  title = 'Registers',
  description = 'Text of the registers that hold something: yanks, macros, last search (/) and command (:). What'
    .. ' looks like a secret is left out. The clipboard (+ and *) is read only when names has it, and the person is'
    .. ' asked first.',
  args = {
    names = {
      type = 'string',
      description = 'Names of registers, one after the other, such as "0a+. Default: all but the clipboard',
      minLength = 1,
      maxLength = 60,
      default = registers.OWN,
    },
    max_bytes = {
      type = 'integer',
      description = 'Of each register; the rest is cut',
      default = 2000,
      minimum = 1,
      maximum = 100000,
    },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  needs_approval = function(args)
    return registers.is_shared(args.names) and 'it reads the clipboard, which may hold anything'
  end,
  preview = function(args)
    local err = registers.refusal(args.names)
    if err then
      return nil, err
    end
    return 'Registers ' .. args.names
  end,
  run = function(ctx, args)
    local err = registers.refusal(args.names)
    if err then
      return ctx(nil, err)
    end
    return valid_utf8({ registers = registers.get(args.names, args.max_bytes, time_slice.of(ctx)) })
  end,
}
