import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, systemClock, type Timer } from "../clock.js";

/** Most requests of one connection that wait or are being handled. */
const MOST_IN_FLIGHT = 64;

interface WaitingRequest {
  readonly res: ServerResponse;
  readonly go: (isOpen: boolean) => void;
}

const queues = new WeakMap<Socket, WaitingRequest[]>();
const entered = new WeakSet<IncomingMessage>();

/**
 * Handles the requests of one connection one after the other: pipelined ones wait until the responses before theirs have
 * left, so that a client that does not read costs one response. Cuts a client with more than 64 requests in flight, or
 * one that reads nothing of its response for `seconds`. Resolves to false where the connection is gone.
 */
export function enterConnection(
  req: IncomingMessage,
  res: ServerResponse,
  { clock, seconds }: { clock: Clock; seconds: number },
): Promise<boolean> {
  // HTTP/2 has streams and bounds of its own
  if (entered.has(req) || req.httpVersionMajor !== 1) return Promise.resolve(true);
  entered.add(req);
  const { socket } = req;
  if (socket.destroyed) return Promise.resolve(false);
  const queue = queues.get(socket) ?? openQueue(socket);
  if (queue.length >= MOST_IN_FLIGHT) {
    socket.destroy();
    return Promise.resolve(false);
  }
  return new Promise((resolve) => {
    const go = (isOpen: boolean) => {
      if (isOpen) watchWrites(socket, res, clock, seconds);
      resolve(isOpen);
    };
    queue.push({ res, go });
    res.once("close", () => {
      const isFirst = queue[0]?.res === res;
      const at = queue.findIndex((waiting) => waiting.res === res);
      if (at >= 0) queue.splice(at, 1);
      // in another turn of the event loop: other connections come in between
      if (isFirst && queue.length > 0) setImmediate(() => queue[0]?.go(!socket.destroyed));
    });
    if (queue.length === 1) go(true);
  });
}

/** Resolves once no request of a connection waits or is being handled. */
export async function whenIdle(socket: Socket): Promise<void> {
  for (let last = queues.get(socket)?.at(-1); last !== undefined; last = queues.get(socket)?.at(-1)) {
    const { res } = last;
    await new Promise<void>((resolve) => {
      const end = () => {
        res.off("close", end);
        socket.off("close", end);
        resolve();
      };
      res.once("close", end);
      // Node does not close a response that has not had its turn
      socket.once("close", end);
    });
  }
}

function openQueue(socket: Socket): WaitingRequest[] {
  const queue: WaitingRequest[] = [];
  queues.set(socket, queue);
  // Node emits nothing on the responses that have not had their turn
  socket.once("close", () => {
    for (const { go } of queue.splice(0)) go(false);
  });
  return queue;
}

/** Limits of what a client may still send after the last response: total time, longest pause, bytes. */
const LINGER_MS = 10_000;
const QUIET_MS = 2000;
const MOST_DISCARDED_BYTES = 64 * 1024 * 1024;

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
  let left = MOST_DISCARDED_BYTES;
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

/** Number of checks of a connection within its time limit. */
const CHECKS = 4;

type Watched = Pick<Socket, "bytesWritten" | "writableLength" | "destroy"> & {
  /** Private to Node: bytes of the current write that the kernel has not accepted. */
  readonly _handle?: { readonly writeQueueSize?: number } | null;
};

// decisions: A client that reads nothing is disconnected
/**
 * Cuts a connection whose client reads nothing for `seconds` while bytes of the response wait, until the response ends.
 * Bytes that the client sends meanwhile do not count, as they would for Node's socket time-out.
 *
 * @internal
 */
export function watchWrites(socket: Watched, res: Pick<ServerResponse, "once">, clock: Clock, seconds: number): void {
  let timer: Timer | undefined;
  let before = progressOf(socket);
  /** Start of the current wait without progress, as far as the checks show. */
  let stalledSince = Number.POSITIVE_INFINITY;
  const check = () => {
    const now = progressOf(socket);
    const hasMoved = now.sent !== before.sent || now.left !== before.left;
    before = now;
    if (socket.writableLength === 0) stalledSince = Number.POSITIVE_INFINITY;
    else stalledSince = hasMoved ? clock.monotonic() : Math.min(stalledSince, clock.monotonic());
    if (clock.monotonic() - stalledSince >= seconds * 1000) socket.destroy();
    else arm();
  };
  const arm = () => {
    timer = clock.setTimer((seconds * 1000) / CHECKS, check);
  };
  arm();
  res.once("close", () => timer?.cancel());
}

/** Bytes that left the process in complete writes, and the rest of the current write. */
const progressOf = ({ bytesWritten, writableLength, _handle }: Watched) => ({
  sent: bytesWritten - writableLength,
  left: _handle?.writeQueueSize ?? 0,
});
