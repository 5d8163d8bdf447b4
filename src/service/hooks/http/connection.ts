import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../clock.js";
import { watchWrites } from "./write-watch.js";

/** Requests of one connection that may wait for their turn, the one that is answered included. */
const MOST_IN_FLIGHT = 64;

interface Waiting {
  readonly res: ServerResponse;
  readonly go: (isOpen: boolean) => void;
}

const queues = new WeakMap<Socket, Waiting[]>();
const entered = new WeakSet<IncomingMessage>();

/**
 * Answers the requests of one connection one after the other: pipelined ones wait until the answers before theirs have
 * left, so that a client that does not read costs one answer. A client with more than 64 requests under way, or one
 * that takes nothing of its answer for `seconds`, is cut. Resolves to false where the connection is gone.
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
      // in another turn of the event loop: others come in between
      if (isFirst && queue.length > 0) setImmediate(() => queue[0]?.go(!socket.destroyed));
    });
    if (queue.length === 1) go(true);
  });
}

function openQueue(socket: Socket): Waiting[] {
  const queue: Waiting[] = [];
  queues.set(socket, queue);
  // answers that have not had their turn are told nothing by Node
  socket.once("close", () => {
    for (const { go } of queue.splice(0)) go(false);
  });
  return queue;
}
