// A client of the AI SDK: says what it sees, one JSON value per line. No model is asked: the one of the last part is a
// list of what it would say. The Python test beside this file knows what this program should see.
//
// node ai_sdk.mjs http|sse stateless|sessions URL     (environment: TOKEN, NPM)

import { load, order, requestInit, say } from './sdk.mjs'

const [type, era, url] = process.argv.slice(2)
const { createMCPClient, ElicitationRequestSchema } = await load('@ai-sdk/mcp')
const { asSchema, generateText, jsonSchema, stepCountIs } = await load('ai')

const client = await createMCPClient({
  transport: { type, url, ...requestInit },
  protocolVersionDiscovery: era === 'stateless',
  capabilities: { elicitation: {} },
})
say({
  server: client.serverInfo.name,
  protocol: client.initializeResult.protocolVersion,
  instructions: (client.instructions ?? '').length > 0,
})

// Lists
const tools = await client.tools()
const schema = await asSchema(tools.nvim_test_echo.inputSchema).jsonSchema
say({ names: Object.keys(tools), described: Object.values(tools).every((tool) => tool.description), schema })

// Runs, as the loop of an agent does
const options = { toolCallId: '1', messages: [] }
say(await tools.nvim_test_echo.execute({ text: 'hällo' }, options))
say(await tools.nvim_fail.execute({ how: 'on purpose' }, options))
say(await tools.nvim_shapes.execute({ list: 7 }, options))
say(await tools.nvim_later.execute({ value: { deep: [1, null] } }, options))

const numbers = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
const typed = await client.tools({
  schemas: {
    nvim_promised: {
      inputSchema: jsonSchema({ type: 'object' }),
      outputSchema: jsonSchema(numbers),
    },
  },
})
say({ names: Object.keys(typed), value: await typed.nvim_promised.execute({}, options) })

// Asks the person, as its own form
const asked = []
client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => {
  asked.push(params)
  return asked.length === 1 ? { action: 'accept', content: { answer: 'once' } } : { action: 'decline' }
})
const answers = []
for (let i = 0; i < 2; i++) answers.push(await tools.nvim_risky.execute({}, options))
say({ answers, asked })

// Stops what it has begun
const abort = new AbortController()
const held = tools.nvim_hold.execute({}, { ...options, abortSignal: abort.signal }).then(
  () => 'a result',
  () => 'nothing',
)
await order('abort')
abort.abort()
say(await held)

say({
  resources: (await client.listResources()).resources.map((each) => each.uri),
  status: JSON.parse((await client.readResource({ uri: 'nvim://status' })).contents[0].text).plugin,
  prompts: (await client.listPrompts()).prompts.map((each) => each.name),
})

// The SDK's own loop around the tools, with somebody in the place of the model who knows what to say
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
const script = [
  {
    content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'nvim_test_echo', input: '{"text":"from the loop"}' }],
    finishReason: { unified: 'tool-calls' },
  },
  { content: [{ type: 'text', text: 'ended' }], finishReason: { unified: 'stop' } },
]
const prompts = []
const model = {
  specificationVersion: 'v4',
  provider: 'tests',
  modelId: 'script',
  supportedUrls: {},
  async doGenerate({ prompt }) {
    prompts.push(prompt)
    return { ...script[prompts.length - 1], usage, warnings: [] }
  },
}
const loop = await generateText({ model, tools, prompt: 'Echo.', stopWhen: stepCountIs(3) })
const last = prompts[1].at(-1)
say({ text: loop.text, steps: loop.steps.length, role: last.role, output: last.content[0].output })

await client.close()
process.exit(0)
