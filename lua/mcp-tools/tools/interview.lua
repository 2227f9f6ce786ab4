--- Asks the user questions; compatible with guill/mcp-tools.nvim.

local mcp_tools = require('mcp-tools')

--- Maximum lengths of texts, in characters.
local MAX_QUESTION, MAX_CHOICE, MAX_TEXT = 2000, 500, 10000
local MAX_QUESTIONS, MAX_CHOICES = 20, 50

return {
  name = 'interview',
  title = 'Ask the user',
  description = 'Asks the person at the editor questions and waits for the answers: text, or one or several of'
    .. ' choices (text of their own is always possible). Ask all you need at once. Gives answers as [{question,'
    .. ' answer}]; completed is false when they left it.',
  args = {
    questions = {
      type = 'array',
      required = true,
      minItems = 1,
      maxItems = MAX_QUESTIONS,
      description = 'Asked one after the other',
      items = {
        type = 'object',
        required = { 'question' },
        properties = {
          question = { type = 'string', minLength = 1, maxLength = MAX_QUESTION, description = 'What is asked' },
          choices = {
            type = 'array',
            maxItems = MAX_CHOICES,
            items = { type = 'string', maxLength = MAX_CHOICE },
            description = 'Without any the answer is typed',
          },
          multiselect = { type = 'boolean', description = 'Any number of choices; the answer is an array' },
          default_choice = { type = 'integer', minimum = 0, description = 'Index of a choice, from 0' },
          default = { type = 'string', maxLength = MAX_TEXT, description = 'Text to begin with' },
        },
      },
    },
  },
  output_schema = {
    type = 'object',
    required = { 'completed', 'answers' },
    properties = {
      completed = { type = 'boolean' },
      answers = {
        type = 'array',
        items = {
          type = 'object',
          required = { 'question', 'answer' },
          properties = {
            question = { type = 'string' },
            answer = { anyOf = { { type = 'string' }, { type = 'array', items = { type = 'string' } } } },
          },
        },
      },
    },
  },
  annotations = { read_only = true, idempotent = false, open_world = false },
  timeout = 0,
  execute = function(ctx, args)
    local name = ctx.client.name
    local from = name and ('a client called "%s"'):format(name) or ('the host ' .. ctx.host)
    local handle = mcp_tools.interview(args.questions, { from = from }, ctx)
    ctx:on_cancel(function()
      handle:cancel()
    end)
  end,
}
