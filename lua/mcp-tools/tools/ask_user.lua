--- Asks the user questions.

local identity = require('mcp-tools.util.session').identity
local mcp_tools = require('mcp-tools')

return {
  name = 'ask_user',
  title = 'Ask the user',
  description = 'Asks the user questions in the editor and waits for the answers: free text, one choice, or several.',
  search_hint = 'interview, clarify, decide, confirm, choose between options',
  args = {
    questions = {
      type = 'array',
      required = true,
      minItems = 1,
      maxItems = 20,
      description = 'Questions',
      items = {
        type = 'object',
        required = { 'question' },
        properties = {
          question = { type = 'string', description = 'Text', minLength = 1, maxLength = 2000 },
          choices = {
            type = 'array',
            maxItems = 50,
            items = { type = 'string', maxLength = 500 },
            description = 'Choices; free text is always possible',
          },
          multiselect = { type = 'boolean', description = 'Allow several choices' },
          default_choice = {
            type = 'integer',
            minimum = 0,
            description = '0-based index of the preselected choice',
            hidden = true,
          },
          default = { type = 'string', maxLength = 10000, description = 'Initial text of the answer', hidden = true },
        },
      },
    },
    timeout_ms = { type = 'integer', description = 'Maximum time to wait', minimum = 1 },
  },
  aliases = { interview = {} },
  annotations = { read_only = true, idempotent = false, open_world = false },
  recommended = true,
  timeout = 0,
  execute = function(ctx, args)
    local name = ctx.client.name
    local from = name and ('a client called "%s"'):format(name) or ('the caller ' .. ctx.host)
    local handle = mcp_tools.interview(args.questions, { from = from, session = identity(ctx) }, ctx)
    ctx:on_cancel(function()
      handle:cancel()
    end)
    if args.timeout_ms then
      vim.defer_fn(function()
        if handle:cancel() then
          ctx({ completed = false, timed_out = true, answers = {} })
        end
      end, args.timeout_ms)
    end
  end,
  render = function(value)
    if value.timed_out then
      return 'The user did not answer in time; the questions are closed.'
    elseif not value.completed then
      return 'The user closed the questions without answering.'
    end
    local rows = {}
    for _, each in ipairs(value.answers) do
      local answer = type(each.answer) == 'table' and table.concat(each.answer, ', ') or each.answer
      table.insert(rows, ('%s: %s'):format(each.question, answer ~= '' and answer or '(no answer)'))
    end
    return table.concat(rows, '\n')
  end,
}
