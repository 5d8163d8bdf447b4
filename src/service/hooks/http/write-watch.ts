import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../clock.js";

/** Number of checks of a connection within its time limit. */
const CHECKS = 4;

type Watched = Pick<Socket, "bytesWritten" | "writableLength" | "destroy"> & {
  /** Private to Node: bytes of the current write that the kernel has not accepted. */
  readonly _handle?: { readonly writeQueueSize?: number } | null;
};

// decision 133
/**
 * Cuts a connection whose client reads nothing for `seconds` while bytes of the response wait, until the response ends.
 * Bytes that the client sends meanwhile do not count, as they would for Node's socket time-out.
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
