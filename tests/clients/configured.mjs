// A client of the TypeScript SDK (v1, v2) or of the AI SDK (ai), which reads a configuration file as clients have it:
// lists the tools and calls one. Says both, one JSON value per line.
//
// node configured.mjs v1|v2|ai FILE TOOL TEXT     (environment: NPM)

import { readFileSync } from 'node:fs'

import { load, loadSdk, require, say } from './sdk.mjs'

const [kind, file, tool, text] = process.argv.slice(2)
const entry = Object.values(JSON.parse(readFileSync(file, 'utf8')).mcpServers)[0]

const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js')
const program = () => new StdioClientTransport({ command: entry.command, args: entry.args, env: entry.env })

if (kind === 'ai') {
  const { createMCPClient } = await load('@ai-sdk/mcp')
  const transport = entry.url ? { type: 'http', url: entry.url, headers: entry.headers } : program()
  const client = await createMCPClient({ transport })
  const tools = await client.tools()
  say(Object.keys(tools))
  say((await tools[tool].execute({ text }, { toolCallId: '1', messages: [] })).content)
  await client.close()
} else {
  const { Client, StreamableHTTPClientTransport } = loadSdk(kind)
  const client = new Client({ name: `typescript-${kind}`, version: '1' })
  const requestInit = { headers: entry.headers }
  await client.connect(entry.url ? new StreamableHTTPClientTransport(new URL(entry.url), { requestInit }) : program())
  say((await client.listTools()).tools.map((each) => each.name))
  say((await client.callTool({ name: tool, arguments: { text } })).content)
  await client.close()
}
process.exit(0)
