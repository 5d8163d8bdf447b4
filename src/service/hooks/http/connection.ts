import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../clock.js";
import { watchWrites } from "./write-watch.js";

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
      // a response that has not had its turn is closed by nobody
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
