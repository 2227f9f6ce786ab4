--- Returns its argument, to test a connection.

return {
  name = 'test_echo',
  title = 'Test: echo',
  description = 'Returns the given text. For testing the connection to the editor.',
  args = { text = { type = 'string', description = 'Text to return', required = true } },
  annotations = { read_only = true, idempotent = true },
  execute = function(ctx, args)
    ctx(args.text)
  end,
}
