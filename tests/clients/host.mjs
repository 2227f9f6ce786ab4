// A client of the TypeScript SDK, version 1 or 2, whose files servers may read (ai.nimblebrain/host-resources): says
// what it is asked and what comes of two calls, one JSON value per line. The test beside this file knows the rest.
//
// node host.mjs v1|v2 http|sse URL     (environment: TOKEN, NPM)

import { loadSdk, require, requestInit, say } from './sdk.mjs'

const [version, transportKind, url] = process.argv.slice(2)
const { z } = require('zod')
const sdk = loadSdk(version)
const [READ, LIST] = ['ai.nimblebrain/resources/read', 'ai.nimblebrain/resources/list']
const declared = {
  read: { enabled: true, range: false, maxSize: 10485760 },
  list: { enabled: true },
  write: { enabled: false },
  schemes: ['files'],
}
const client = new sdk.Client(
  { name: `host-${version}`, version: '1' },
  {
    capabilities: { extensions: { 'ai.nimblebrain/host-resources': declared } },
    ...(version === 'v2' && { versionNegotiation: { mode: 'legacy' } }),
  },
)

const read = ({ uri }) => ({ contents: [{ uri, mimeType: 'text/plain', text: `text of ${uri}` }] })
const list = () => ({ resources: [{ uri: 'files://a', name: 'a', mimeType: 'text/plain' }] })

function answer(method, params, handle) {
  const noted = (given) => {
    say({ method, params: given ?? null })
    return handle(given)
  }
  if (version === 'v2') return client.setRequestHandler(method, { params }, noted)
  const schema = z.object({ method: z.literal(method), params })
  return client.setRequestHandler(schema, (request) => noted(request.params))
}

const filter = z.object({ scheme: z.string().optional(), mimeType: z.string().optional(), tags: z.array(z.string()) })
answer(READ, z.object({ uri: z.string() }), read)
answer(LIST, z.object({ _meta: z.object({ filter: filter.partial().optional() }).optional() }).optional(), list)

const Transport = transportKind === 'sse' ? sdk.SSEClientTransport : sdk.StreamableHTTPClientTransport
const transport = new Transport(new URL(url), { requestInit })
await client.connect(transport)

const call = async (name, args) => (await client.callTool({ name: `nvim_${name}`, arguments: args })).content[0].text
say(await call('host_look', {}))
say(await call('host_read', { uri: 'files://a' }))
say(await call('host_list', {}))
say(await call('host_list', { filter: { mime_type: 'text/csv', tags: ['x'] } }))

if (transportKind === 'http') await transport.terminateSession()
await client.close()
process.exit(0)
