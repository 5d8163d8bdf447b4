import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";

/** Returns a port of the loopback address that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" ? address!.port : assert.fail("no port");
}
