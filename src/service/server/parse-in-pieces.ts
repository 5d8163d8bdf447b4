import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

const PIECE_BYTES = 2048;

/**
 * Passes the bytes of a connection to Node's parser in pieces. One read brings 64 KiB, some 2,000 pipelined requests, and
 * Node creates all of them before it checks whether the first one cut or paused the connection.
 */
export function parseInPieces(server: Server): void {
  const tunnels = new WeakSet<Duplex>();
  // such a socket has no parser any more
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
