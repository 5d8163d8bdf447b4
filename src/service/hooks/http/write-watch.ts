import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../clock.js";

/** Looks at a connection this often in the time it is allowed. */
const LOOKS = 4;

type Watched = Pick<Socket, "bytesWritten" | "writableLength" | "destroy"> & {
  /** Node's own: what the kernel has not taken of the write under way. */
  readonly _handle?: { readonly writeQueueSize?: number } | null;
};

/**
 * Cuts a connection whose client takes nothing for `seconds` while bytes of its answer wait, until the answer is out.
 * What the client sends meanwhile does not count, as it would with Node's time-out of a socket.
 */
export function watchWrites(socket: Watched, res: Pick<ServerResponse, "once">, clock: Clock, seconds: number): void {
  let timer: Timer | undefined;
  let before = progressOf(socket);
  /** Since when bytes wait without progress, as far as the looks tell. */
  let stalledSince = Number.POSITIVE_INFINITY;
  const look = () => {
    const now = progressOf(socket);
    const hasMoved = now.sent !== before.sent || now.left !== before.left;
    before = now;
    if (socket.writableLength === 0) stalledSince = Number.POSITIVE_INFINITY;
    else stalledSince = hasMoved ? clock.monotonic() : Math.min(stalledSince, clock.monotonic());
    if (clock.monotonic() - stalledSince >= seconds * 1000) socket.destroy();
    else arm();
  };
  const arm = () => {
    timer = clock.setTimer((seconds * 1000) / LOOKS, look);
  };
  arm();
  res.once("close", () => timer?.cancel());
}

/** Bytes that left the process in whole writes, and the rest of the write under way. */
const progressOf = ({ bytesWritten, writableLength, _handle }: Watched) => ({
  sent: bytesWritten - writableLength,
  left: _handle?.writeQueueSize ?? 0,
});
