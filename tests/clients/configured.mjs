// A client of the TypeScript SDK (v1, v2) or of the AI SDK (ai), which reads a configuration file as clients have it:
// lists the tools and calls one. Says both, one JSON value per line.
//
// node configured.mjs v1|v2|ai FILE TOOL TEXT     (environment: NPM)

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [kind, file, tool, text] = process.argv.slice(2)
const require = createRequire(process.env.NPM)
const entry = Object.values(JSON.parse(readFileSync(file, 'utf8')).mcpServers)[0]
const say = (value) => console.log(JSON.stringify(value))

// A module only, which is not searched for anywhere but beside this file.
function load(name, part = '.') {
  const folder = join(process.env.NPM, name)
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return import(pathToFileURL(join(folder, exports[part].import)))
}

const sdk = '@modelcontextprotocol/sdk'
const { StdioClientTransport } = require(`${sdk}/client/stdio.js`)
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
  const { Client, StreamableHTTPClientTransport } =
    kind === 'v2'
      ? require('@modelcontextprotocol/client')
      : { ...require(`${sdk}/client/index.js`), ...require(`${sdk}/client/streamableHttp.js`) }
  const client = new Client({ name: `typescript-${kind}`, version: '1' })
  const requestInit = { headers: entry.headers }
  await client.connect(entry.url ? new StreamableHTTPClientTransport(new URL(entry.url), { requestInit }) : program())
  say((await client.listTools()).tools.map((each) => each.name))
  say((await client.callTool({ name: tool, arguments: { text } })).content)
  await client.close()
}
process.exit(0)
