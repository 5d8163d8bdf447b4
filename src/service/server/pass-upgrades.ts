import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { whenIdle } from "../hooks/http/connection.js";
import type { HookService } from "../hooks/service.js";

/** Headers of an offer of another protocol, which `Connection` lists. */
const OFFER: ReadonlySet<string> = new Set(["http2-settings", "upgrade"]);

// decision 317
/**
 * Passes requests for a WebSocket on. With a listener Node hands over every request that offers another protocol, HTTP/2
 * for instance; all but WebSockets are read again without the offer, as a server may ignore it.
 */
export function passUpgrades(server: Server, upgrade: NonNullable<HookService["upgrade"]>): void {
  const counts = new WeakMap<Socket, number>();
  // Node begins to count anew where a connection comes again
  server.prependListener("request", ({ socket }: IncomingMessage, res: ServerResponse) => {
    const count = (counts.get(socket) ?? 0) + 1;
    counts.set(socket, count);
    if (count >= (server.maxRequestsPerSocket ?? Number.POSITIVE_INFINITY)) res.shouldKeepAlive = false;
  });
  server.on("upgrade", async (req: IncomingMessage, socket: Socket, head: Buffer) => {
    if (req.headers.upgrade?.trim().toLowerCase() === "websocket") return upgrade(req, socket, head);
    const cut = () => void socket.destroy();
    socket.on("error", cut);
    // what came behind the request is back in the socket then, and responses to requests before it have left
    await whenIdle(socket);
    socket.off("error", cut);
    if (socket.destroyed) return;
    socket.unshift(Buffer.concat([withoutOffer(req), head]));
    server.emit("connection", socket);
  });
}

/** The head of a request, as it came but for the offer. */
function withoutOffer({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i]!, rawHeaders[i + 1]!];
    if (OFFER.has(name.toLowerCase())) continue;
    lines.push(`${name}: ${name.toLowerCase() === "connection" ? withoutOffered(value) : value}`);
  }
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

const withoutOffered = (connection: string): string =>
  connection
    .split(",")
    .map((option) => option.trim())
    .filter((option) => !OFFER.has(option.toLowerCase()))
    .join(", ");
