// A client of the TypeScript SDK, version 1 or 2: says what it sees, one JSON value per line, and takes orders from
// stdin. The Python test beside this file knows what it should see.
//
// node typescript.mjs v1|v2 http|sse legacy|auto|pin URL     (environment: TOKEN, NPM)

import { loadSdk, order, requestInit, say } from './sdk.mjs'

const [version, transportKind, mode, url] = process.argv.slice(2)
const { Client, StreamableHTTPClientTransport, SSEClientTransport } = loadSdk(version)

let changed
const change = new Promise((resolve) => (changed = resolve))
const negotiation = mode === 'pin' ? { pin: '2026-07-28' } : mode
const client = new Client(
  { name: `typescript-${version}`, version: '1' },
  {
    ...(version === 'v2' && { versionNegotiation: { mode: negotiation } }),
    listChanged: {
      tools: { onChanged: (error, tools) => changed(error ? String(error) : tools.map((tool) => tool.name)) },
    },
  },
)

function call(name, args, options) {
  const params = { name: `nvim_${name}`, arguments: args }
  return version === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options)
}

async function failure(promise) {
  try {
    return { result: await promise }
  } catch (error) {
    return { name: error.name, code: error.code ?? null, message: error.message }
  }
}

const Transport = transportKind === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport
const transport = new Transport(new URL(url), { requestInit })
await client.connect(transport)
say({
  server: client.getServerVersion().name,
  protocol: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null,
  listChanged: client.getServerCapabilities().tools?.listChanged ?? false,
  instructions: (client.getInstructions() ?? '').length > 0,
})
say((await client.listTools()).tools.map((tool) => tool.name))

say(await call('test_echo', { text: 'hällo' }))
say(await call('fail', { how: 'on purpose' }))
say(await call('promised', {}))
say(await call('promised', { fail: true }))
say(await failure(call('nowhere', {})))

const prompt = await client.getPrompt({ name: 'verify_setup' })
say({
  resources: (await client.listResources()).resources.map((resource) => resource.uri),
  templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate),
  status: JSON.parse((await client.readResource({ uri: 'nvim://status' })).contents[0].text).plugin,
  missing: (await failure(client.readResource({ uri: 'nvim://nowhere' }))).code,
  prompts: (await client.listPrompts()).prompts.map((each) => each.name),
  prompt: prompt.messages[0].content.type,
})

const seen = []
const counted = await call('count', { steps: 3 }, { onprogress: (progress) => seen.push(progress) })
say({ progress: seen, text: counted.content[0].text })

const abort = new AbortController()
const held = failure(call('hold', {}, { signal: abort.signal }))
await order('abort')
abort.abort('not needed any more')
say(await held)

await order('wait for a change')
say('waiting')
say(await change)

if (transportKind === 'http' && transport.sessionId) await transport.terminateSession()
await client.close()
process.exit(0)
