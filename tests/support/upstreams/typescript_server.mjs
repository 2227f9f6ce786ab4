// An MCP server on the official TypeScript SDK, over HTTP with a token.
//
//     node typescript_server.mjs      prints {"port": N}, then one JSON value per line for each event
//
// Reads commands: "forget" drops every session.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(process.env.NPM);
const load = (name) => import(require.resolve(name));
const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = await load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { z } = await load("zod");

const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const text = (value) => ({ content: [{ type: "text", text: value }] });
const sessions = new Map();

function makeServer() {
  const server = new McpServer({ name: "typescript-upstream", version: "2.0" });
  server.registerTool("echo", { description: "Echoes.", inputSchema: { text: z.string() } }, ({ text: given }) =>
    text(given),
  );
  server.registerTool("count", { description: "Counts." }, async (extra) => {
    const progressToken = extra._meta?.progressToken;
    for (let progress = 1; progress <= 3; progress++) {
      await extra.sendNotification({
        method: "notifications/progress",
        params: { progressToken, progress, total: 3 },
      });
    }
    return text("counted");
  });
  server.registerTool("hold", { description: "Waits." }, (extra) => {
    say(["holding"]);
    return new Promise((_, reject) => {
      extra.signal.addEventListener("abort", () => {
        say(["cancelled"]);
        reject(new Error("aborted"));
      });
    });
  });
  server.registerTool("ask", { description: "Asks." }, async (extra) => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const answer = await server.server.elicitInput(
      { message: "Who are you?", requestedSchema },
      { relatedRequestId: extra.requestId },
    );
    return text(`${answer.action} ${answer.content?.name ?? ""}`);
  });
  server.registerTool("grow", { description: "Grows." }, () => {
    server.registerTool("grown", { description: "New." }, () => text("new"));
    return text("grown");
  });
  return server;
}

const http = createServer(async (request, response) => {
  if (request.headers.authorization !== `Bearer ${process.env.TOKEN}`) {
    say(["refused"]);
    response.writeHead(401).end();
    return;
  }
  const id = request.headers["mcp-session-id"];
  let transport = sessions.get(id);
  if (id && !transport) {
    response.writeHead(404).end();
    return;
  }
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (made) => {
        sessions.set(made, transport);
        say(["session", request.headers["x-team"]]);
      },
    });
    await makeServer().connect(transport);
  }
  await transport.handleRequest(request, response);
});

http.listen(0, "127.0.0.1", () => say({ port: http.address().port }));

for await (const command of createInterface({ input: process.stdin })) {
  if (command === "forget") sessions.clear();
}
process.exit(0);
