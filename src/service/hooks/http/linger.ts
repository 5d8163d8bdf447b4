import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, systemClock } from "../clock.js";

/** Limits of what a client may still send after the last response: total time, longest pause, bytes. */
const LINGER_MS = 10_000;
const QUIET_MS = 2000;
const MOST_BYTES = 64 * 1024 * 1024;

const CLIENT_KEEPS_ALIVE: unique symbol = Symbol("the client keeps the connection alive");
type PreparedResponse = ServerResponse & { [CLIENT_KEEPS_ALIVE]?: boolean };

/**
 * Prepares a response that may go out before the request's body is complete: it then says "Connection: close", and the
 * connection ends with `closeLingering`. A body that came with the headers is complete when the promise resolves. After
 * reading the whole body, call `keepConnection`.
 */
export async function prepareResponse(req: IncomingMessage, res: ServerResponse, clock: Clock): Promise<void> {
  if (!hasBody(req)) return;
  // before Node's own listener, which ends the socket: closed at once it would reset the connection
  res.prependOnceListener("finish", () => {
    if (!req.complete) req.socket.destroySoon = () => closeLingering(req.socket, clock);
  });
  await new Promise((resolve) => setImmediate(resolve));
  if (req.complete) return;
  (res as PreparedResponse)[CLIENT_KEEPS_ALIVE] = res.shouldKeepAlive;
  // Node sends this as "Connection: close"
  res.shouldKeepAlive = false;
}

/** Keeps the connection of a complete body alive where the client wants that. */
export function keepConnection(res: ServerResponse): void {
  res.shouldKeepAlive = (res as PreparedResponse)[CLIENT_KEEPS_ALIVE] ?? res.shouldKeepAlive;
}

/** Whether a request announces a body. */
export const hasBody = ({ headers }: IncomingMessage) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/**
 * Ends our side of a connection after the written bytes, and discards what still arrives, within limits, until the client
 * closes its side. Cut at once, the kernel would reset the connection, and the client would lose our last response.
 */
export function closeLingering(socket: Duplex, clock: Clock = systemClock): void {
  let left = MOST_BYTES;
  const cut = () => socket.destroy();
  const last = clock.setTimer(LINGER_MS, cut);
  let quiet = clock.setTimer(QUIET_MS, cut);
  const drop = (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) return cut();
    quiet.cancel();
    quiet = clock.setTimer(QUIET_MS, cut);
  };
  // in place of the parser, which must not see another request
  const discard = () => socket.removeAllListeners("data").on("data", drop);
  socket.once("end", cut).once("close", () => {
    last.cancel();
    quiet.cancel();
  });
  socket.end();
  // a paused socket is resumed by a listener of Node's that is removed with the parser
  if (socket.readableFlowing) discard();
  else socket.once("resume", discard).resume();
}
