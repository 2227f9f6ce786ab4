-- Tools that read the files of their client. `Seen` records what happened inside the editor.

_G.Seen = { cancelled = {}, errors = {} }

local function tool(name, def)
  def.name, def.description, def.annotations = name, name, { read_only = true }
  require('mcp-tools').register(def)
end

--- Ends the call; an error is recorded with all its fields.
local function give(ctx, value, err)
  if err then
    table.insert(Seen.errors, err)
    return ctx(nil, err)
  end
  ctx(value)
end

tool('host_look', {
  run = function(ctx)
    local host = ctx:host_resources()
    return { host.available, host.list_available, host:supports_scheme('files') }
  end,
})

tool('host_read', {
  args = { uri = { type = 'string', required = true } },
  run = function(ctx, args)
    ctx:on_cancel(function(reason) table.insert(Seen.cancelled, reason) end)
    local value, err = ctx:host_resources():read(args.uri)
    give(ctx, value, err)
  end,
})

tool('host_list', {
  args = { filter = { type = 'object', properties = { scheme = {}, mime_type = {}, tags = {} } } },
  execute = function(ctx, args)
    ctx:host_resources():list(args.filter, function(value, err) give(ctx, value, err) end)
  end,
})

tool('host_size', {
  args = { uri = { type = 'string', required = true } },
  run = function(ctx, args)
    local value, err = ctx:host_resources():read(args.uri)
    local contents = value and value.contents[1]
    give(ctx, contents and #(contents.text or vim.base64.decode(contents.blob)), err)
  end,
})

require('mcp-tools').register_resource({
  uri = 'host://first',
  name = 'first',
  description = "The text of the client's first file",
  run = function(ctx)
    local listed, err = ctx:host_resources():list()
    if err then
      return ctx(nil, err)
    end
    local read
    read, err = ctx:host_resources():read(listed.resources[1].uri)
    give(ctx, read and read.contents[1].text, err)
  end,
})

require('mcp-tools').register_prompt({
  name = 'about_file',
  description = 'A prompt about a file of the client',
  args = { uri = { description = 'Which', required = true } },
  run = function(ctx, args)
    local value, err = ctx:host_resources():read(args.uri)
    give(ctx, value and 'About ' .. value.contents[1].text, err)
  end,
})
