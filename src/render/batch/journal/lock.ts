import { createHash } from "node:crypto";
import { createServer } from "node:net";
import { constants } from "node:os";
import { getSystemErrorName } from "node:util";
import { LatentkitError } from "../../../base/errors.js";
import { loadNative } from "../../../native/load.js";

/** Ends a lock; it also ends with the process, however that ends. */
export type Unlock = () => Promise<void>;

/**
 * Locks an open file for this process; undefined where another has it. The system itself keeps the lock (flock on the
 * open file, on Windows the name of a pipe), so a kill leaves none behind. Fails with file.write-failed where the file
 * system knows no locks.
 */
export async function lockFile(fd: number, path: string): Promise<Unlock | undefined> {
  if (process.platform === "win32") return lockPipe(path);
  const error = loadNative().lockFile(fd);
  // closing the file releases it
  if (error === 0) return async () => {};
  if (error === constants.errno.EWOULDBLOCK) return undefined;
  throw new LatentkitError("file.write-failed", `Journal ${path} cannot be locked (${getSystemErrorName(-error)}).`);
}

function lockPipe(path: string): Promise<Unlock | undefined> {
  const name = createHash("sha256").update(path.toLowerCase()).digest("hex").slice(0, 32);
  const server = createServer();
  server.unref();
  return new Promise((resolve) => {
    server.once("error", () => resolve(undefined));
    server.listen(`\\\\.\\pipe\\latentkit-${name}`, () => {
      resolve(() => new Promise((done) => server.close(() => done())));
    });
  });
}
