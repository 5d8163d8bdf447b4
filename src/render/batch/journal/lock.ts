import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { LatentkitError } from "../../../errors.js";

/** Ends a lock; it also ends with the process, however that ends. */
export type Unlock = () => Promise<void>;

const EXCLUSIVE = 2;
const AT_ONCE = 4;

/**
 * Locks an open file for this process; undefined where another has it. The system itself keeps the lock (flock on the
 * open file, on Windows the name of a pipe), so a kill leaves none behind. Fails with file.write-failed where the file
 * system knows no locks.
 */
export async function lockFile(fd: number, path: string): Promise<Unlock | undefined> {
  if (process.platform === "win32") return lockPipe(path);
  // loaded here: only batches with a journal pay for it
  const koffi = createRequire(import.meta.url)("koffi") as typeof import("koffi");
  const flock = koffi.load(null).func("int flock(int fd, int operation)") as (fd: number, operation: number) => number;
  // closing the file releases it
  if (flock(fd, EXCLUSIVE | AT_ONCE) === 0) return async () => {};
  const reason = koffi.errno();
  if (reason === koffi.os.errno.EWOULDBLOCK) return undefined;
  throw new LatentkitError("file.write-failed", `Journal ${path} cannot be locked (error ${reason}).`);
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
