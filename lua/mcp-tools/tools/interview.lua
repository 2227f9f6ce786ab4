--- Asks the user questions; compatible with guill/mcp-tools.nvim.

local mcp_tools = require('mcp-tools')

--- Maximum lengths of texts, in characters.
local MAX_QUESTION, MAX_CHOICE, MAX_TEXT = 2000, 500, 10000
local MAX_QUESTIONS, MAX_CHOICES = 20, 50

return {
  name = 'interview',
  title = 'Ask the user',
  description = 'Asks the user at the editor questions and waits for the answers: text, or one or several of the'
    .. ' choices (the user can always type another answer). Ask all questions in one call. Returns answers as'
    .. ' [{question, answer}]; completed is false if the user closed the interview.',
  args = {
    questions = {
      type = 'array',
      required = true,
      minItems = 1,
      maxItems = MAX_QUESTIONS,
      description = 'Questions, asked one after the other',
      items = {
        type = 'object',
        required = { 'question' },
        properties = {
          question = { type = 'string', minLength = 1, maxLength = MAX_QUESTION, description = 'Text of the question' },
          choices = {
            type = 'array',
            maxItems = MAX_CHOICES,
            items = { type = 'string', maxLength = MAX_CHOICE },
            description = 'Choices; without them the user types the answer',
          },
          multiselect = { type = 'boolean', description = 'Allow several choices; the answer is then an array' },
          default_choice = { type = 'integer', minimum = 0, description = '0-based index of the preselected choice' },
          default = { type = 'string', maxLength = MAX_TEXT, description = 'Initial text of the answer' },
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
    local from = name and ('a client called "%s"'):format(name) or ('the caller ' .. ctx.host)
    local handle = mcp_tools.interview(args.questions, { from = from }, ctx)
    ctx:on_cancel(function()
      handle:cancel()
    end)
  end,
}
