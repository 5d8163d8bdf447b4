import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

const PIECE_BYTES = 2048;

/**
 * Hands what a connection sends to Node's parser in pieces. One read brings 64 KiB, some 2,000 pipelined requests, and
 * Node makes all of them before it looks whether the connection was cut or paused by the first.
 */
export function parseInPieces(server: Server): void {
  const tunnels = new WeakSet<Duplex>();
  // its parser is gone
  server.prependListener("connect", (_req, socket: Duplex) => void tunnels.add(socket));
  server.on("connection", (socket: Socket) => {
    const [parse] = socket.listeners("data");
    if (parse === undefined) return;
    const feed = (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        if (at > 0 && hasStopped()) return;
        if (at > 0 && socket.isPaused()) return void socket.unshift(chunk.subarray(at));
        parse.call(socket, chunk.subarray(at, at + PIECE_BYTES));
      }
    };
    const hasStopped = () => socket.destroyed || tunnels.has(socket) || !socket.listeners("data").includes(feed);
    socket.removeListener("data", parse as (chunk: Buffer) => void);
    socket.on("data", feed);
  });
}
