// The peer: an echo tool on the TypeScript SDK and express, as its examples have it. There is no editor behind it.
// `node peer.mjs MODULES` (the folder that holds node_modules); /mcp with sessions, /stateless without.
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.argv[2]}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { default: express } = await load('express');
const { Server } = await load('@modelcontextprotocol/sdk/server/index.js');
const { StreamableHTTPServerTransport } = await load('@modelcontextprotocol/sdk/server/streamableHttp.js');
const types = await load('@modelcontextprotocol/sdk/types.js');

const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

function createServer() {
  const server = new Server({ name: 'peer', version: '0' }, { capabilities: { tools: {} } });
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({
    tools: [{ name: 'echo', description: 'Returns its text', inputSchema }],
  }));
  server.setRequestHandler(types.CallToolRequestSchema, (request) => ({
    content: [{ type: 'text', text: request.params.arguments.text }],
  }));
  return server;
}

const app = express();
app.use(express.json({ limit: '4mb' }));
const transports = new Map();

app.post('/mcp', async (request, response) => {
  let transport = transports.get(request.headers['mcp-session-id']);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => transports.set(id, transport),
    });
    await createServer().connect(transport);
  }
  await transport.handleRequest(request, response, request.body);
});

app.post('/stateless', async (request, response) => {
  const server = createServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => {
    transport.close();
    server.close();
  });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});

const listener = app.listen(0, '127.0.0.1', () => console.log(`listening on port ${listener.address().port}`));
