import { randomUUID } from "node:crypto";
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { HookService } from "../hooks/hook-service.js";
import { closeLingering, whenIdle } from "../hooks/http/connection.js";

const PIECE_BYTES = 2048;

/**
 * Passes the bytes of a connection to Node's parser in pieces. One read brings 64 KiB, some 2,000 pipelined requests, and
 * Node creates all of them before it checks whether the first one cut or paused the connection.
 */
export function parseInPieces(server: Server): void {
  const tunnels = new WeakSet<Duplex>();
  // such a socket no longer has a parser
  server.prependListener("connect", (_req, socket: Duplex) => void tunnels.add(socket));
  const upgraded = new WeakSet<Duplex>();
  // with a listener, Node hands over every request that asks for another protocol
  if (server.listenerCount("upgrade") > 0) {
    server.prependListener("upgrade", (_req, socket: Duplex) => void upgraded.add(socket));
  }
  server.on("connection", (socket: Socket) => {
    // one whose upgrade was ignored comes again
    upgraded.delete(socket);
    const [parse] = socket.listeners("data");
    if (parse === undefined) return;
    const feed = (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        if (at > 0 && hasStopped()) return;
        if (at > 0 && socket.isPaused()) return void socket.unshift(chunk.subarray(at));
        parse.call(socket, chunk.subarray(at, at + PIECE_BYTES));
        if (!upgraded.has(socket)) continue;
        // its next reader gets the rest
        socket.removeListener("data", feed);
        if (!socket.destroyed && at + PIECE_BYTES < chunk.length) socket.unshift(chunk.subarray(at + PIECE_BYTES));
        return;
      }
    };
    const hasStopped = () => socket.destroyed || tunnels.has(socket) || !socket.listeners("data").includes(feed);
    socket.removeListener("data", parse as (chunk: Buffer) => void);
    socket.on("data", feed);
  });
}

/** Headers of an offer of another protocol, which `Connection` lists. */
const OFFER: ReadonlySet<string> = new Set(["http2-settings", "upgrade"]);

// Java's client offers HTTP/2 with each request; Node 20 cannot take back what it has handed over.
/**
 * Passes requests for a WebSocket on. With a listener Node hands over every request that offers another protocol, HTTP/2
 * for instance; all but WebSockets are read again without the offer, as a server may ignore it.
 */
export function passUpgrades(server: Server, upgrade: NonNullable<HookService["upgrade"]>): void {
  const counts = new WeakMap<Socket, number>();
  // Node begins to count anew if a connection comes again
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

/** The head of a request, unchanged except for the offer. */
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

/** Sends an error when Node has no response object, and closes the connection. */
export function sendRawError(socket: Duplex, status: number, sentence: string): void {
  const body = JSON.stringify({ ok: false, error: sentence, code: "invalid_request", request_id: randomUUID() });
  socket.write(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      "Content-Type: application/json; charset=utf-8",
      `Content-Length: ${Buffer.byteLength(body)}`,
      "Cache-Control: no-store",
      "Connection: close",
      "",
      body,
    ].join("\r\n"),
  );
  closeLingering(socket);
}
