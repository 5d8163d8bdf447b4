import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, systemClock } from "../clock.js";

/** How long, how quiet and how much a client may go on sending to a connection whose last answer is out. */
export const LINGER_MS = 10_000;
const QUIET_MS = 2000;
const MOST_BYTES = 64 * 1024 * 1024;

const CLIENT_KEEPS: unique symbol = Symbol("the client keeps the connection");
type Answer = ServerResponse & { [CLIENT_KEEPS]?: boolean };

/**
 * Prepares for an answer that may go out before the request's body is in: it then says "Connection: close", and the
 * connection ends with `closeLingering`. A body that came along with the headers is in when the promise resolves.
 * Whoever reads the body whole calls `keepConnection` after it.
 */
export async function prepareAnswer(req: IncomingMessage, res: ServerResponse, clock: Clock): Promise<void> {
  if (!hasBody(req)) return;
  // before Node's own listener, which ends the socket: closed at once it would reset the connection
  res.prependOnceListener("finish", () => {
    if (!req.complete) req.socket.destroySoon = () => closeLingering(req.socket, clock);
  });
  await new Promise((resolve) => setImmediate(resolve));
  if (req.complete) return;
  const answer: Answer = res;
  answer[CLIENT_KEEPS] = res.shouldKeepAlive;
  // what Node sends as "Connection: close"
  res.shouldKeepAlive = false;
}

/** The body is in: the connection lives on where the client wants it to. */
export function keepConnection(res: ServerResponse): void {
  res.shouldKeepAlive = (res as Answer)[CLIENT_KEEPS] ?? res.shouldKeepAlive;
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/**
 * Ends our side of a connection after what is written, and throws away what still comes, within bounds, until the
 * client closes its side. Cut at once, the kernel would answer what comes with a reset, which eats our last answer.
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
  const divert = () => socket.removeAllListeners("data").on("data", drop);
  socket.once("end", cut).once("close", () => {
    last.cancel();
    quiet.cancel();
  });
  socket.end();
  // a paused socket is set going by a listener of Node's that goes with the parser
  if (socket.readableFlowing) divert();
  else socket.once("resume", divert).resume();
}
