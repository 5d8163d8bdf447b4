import { lstatSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** Between two looks at what another one does. */
const LOOK_MS = 20;
const MAX_LOCK_BYTES = 32;

/**
 * What `look` finds, else what `work` answers, which one thread of one process does at a time: `look` is asked while
 * another one works. A file names the process that works; one that has died, or takes longer than limitMs, is not waited
 * for, and where there can be no such file everybody works. Holds the thread.
 */
export function inTurn<T>(lock: string, limitMs: number, look: () => T | undefined, work: () => T): T {
  const until = performance.now() + limitMs;
  let turn = take(lock);
  while (turn === "another's" && performance.now() < until) {
    const found = look();
    if (found !== undefined) return found;
    if (!isHeld(lock)) remove(lock);
    sleep(LOOK_MS);
    turn = take(lock);
  }
  try {
    // the one before may have ended after the last look
    return look() ?? work();
  } finally {
    if (turn !== "nobody's") remove(lock);
  }
}

function take(lock: string): "mine" | "another's" | "nobody's" {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
    return "mine";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EEXIST" && isPlain(lock) ? "another's" : "nobody's";
  }
}

/** Whether a file has that name: no folder, link or pipe. One that is gone was a file. */
function isPlain(lock: string): boolean {
  const stats = lstatSync(lock, { throwIfNoEntry: false });
  return stats === undefined || (stats.isFile() && stats.size <= MAX_LOCK_BYTES);
}

/** Whether the process that made the file may still work. */
function isHeld(lock: string): boolean {
  try {
    const pid = Number(readFileSync(lock, "latin1"));
    // made this moment, and not written yet
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
