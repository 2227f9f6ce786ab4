// What the clients beside this file share: packages of NPM, the token of TOKEN, and one JSON value per line of output.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

export const require = createRequire(process.env.NPM)
export const say = (value) => console.log(JSON.stringify(value))
export const requestInit = { headers: { Authorization: `Bearer ${process.env.TOKEN}` } }

// Packages that are modules only, which are not searched for anywhere but beside this file.
export function load(name, part = '.') {
  const folder = join(process.env.NPM, name)
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return import(pathToFileURL(join(folder, exports[part].import)))
}

// The TypeScript SDK, version v1 or v2.
export function loadSdk(version) {
  if (version === 'v2') return require('@modelcontextprotocol/client')
  const parts = ['client/index.js', 'client/streamableHttp.js', 'client/sse.js', 'types.js']
  return Object.assign({}, ...parts.map((part) => require(`@modelcontextprotocol/sdk/${part}`)))
}

// Waits for a line of stdin.
const orders = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
export async function order(expected) {
  const { value } = await orders.next()
  if (value !== expected) throw new Error(`received ${value}, not ${expected}`)
}
