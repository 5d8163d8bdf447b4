import { lstatSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** From one attempt to take the lock to the next. */
const RETRY_MS = 20;
const MAX_LOCK_BYTES = 32;

/**
 * Returns what `read` has, else what `work` returns, which one thread of one process does at a time; while another one
 * works, `read` is called again and again. A lock file names the process that works: one that has died, or takes longer
 * than limitMs, is not waited for. Where there can be no such file everybody works. Blocks the thread.
 */
export function inTurn<T>(lock: string, limitMs: number, read: () => T | undefined, work: () => T): T {
  const until = performance.now() + limitMs;
  let state = take(lock);
  while (state === "busy" && performance.now() < until) {
    const value = read();
    if (value !== undefined) return value;
    if (!isHeld(lock)) remove(lock);
    sleep(RETRY_MS);
    state = take(lock);
  }
  try {
    // the one before may have ended after the last attempt
    return read() ?? work();
  } finally {
    if (state !== "impossible") remove(lock);
  }
}

function take(lock: string): "own" | "busy" | "impossible" {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
    return "own";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EEXIST" && isPlain(lock) ? "busy" : "impossible";
  }
}

/** Whether the lock is a small file: no folder, link or pipe. One that is gone was a file. */
function isPlain(lock: string): boolean {
  const stats = lstatSync(lock, { throwIfNoEntry: false });
  return stats === undefined || (stats.isFile() && stats.size <= MAX_LOCK_BYTES);
}

/** Whether the process that wrote the file may still work. */
function isHeld(lock: string): boolean {
  try {
    const pid = Number(readFileSync(lock, "latin1"));
    // created this moment, and not written yet
    if (!Number.isSafeInteger(pid) || pid <= 0) return true;
    process.kill(pid, 0);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== "ESRCH" && code !== "ENOENT";
  }
}

function remove(lock: string): boolean {
  try {
    rmSync(lock, { force: true });
    return true;
  } catch {
    // another user's, say: it is waited for until the limit
    return false;
  }
}

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
