import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sha256 } from "../../base/bytes.js";
import { packageVersion } from "../../base/package.js";
import { cacheFolder } from "../../base/user-cache.js";

/** A library, the driver that it opens, and the driver's description of the device. */
export interface TrustQuestion {
  readonly library: string;
  readonly driver: string;
  readonly ordinal: number;
  readonly driverVersion: string;
  readonly name: string;
  readonly computeCapability: string;
}

/** Whether a device may be used in this process, or why not, in a sentence. */
export type Trust =
  | { readonly trusted: true; readonly reason?: undefined }
  | { readonly trusted: false; readonly reason: string };

export interface TrustOptions {
  /** Folder of the verdicts. */
  readonly folder?: string;
  /** Program that tries the library. */
  readonly trial?: string;
  readonly timeoutMs?: number;
  /** In ms since 1970. */
  readonly now?: () => number;
}

const TRIAL = fileURLToPath(new URL("./trial.js", import.meta.url));
/** A driver that has to compile kernels takes some seconds. */
const TIMEOUT_MS = 60_000;
/** How long to wait for another process's trial: its limit, and its start and end. */
const PATIENCE = 1.25;
const MAX_OUTPUT = 65_536;
const MAX_FILE_BYTES = 8192;
const MAX_REASON = 300;
/** A refusal may have a passing cause, such as a busy machine. */
const REFUSAL_MS = 3_600_000;

/**
 * Whether a CUDA library can be trusted with a device: a separate process opens it and compares every operation with
 * the native core, bit for bit. The verdict is stored for this driver, device, library and version of the package; while
 * another process tries the same, this one waits for that verdict.
 */
export function trustOf(question: TrustQuestion, options: TrustOptions = {}): Trust {
  const { folder = cacheFolder(), now = Date.now, timeoutMs = TIMEOUT_MS } = options;
  const key = keyOf(question);
  const file = join(folder, `cuda-${sha256(key).slice(0, 32)}.json`);
  const read = () => readVerdict(file, key, now());
  const stored = read();
  if (stored !== undefined) return stored;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch {
    // a folder that cannot be made or written costs a trial in each process
  }
  return inTurn(`${file}.lock`, timeoutMs * PATIENCE, read, () => {
    const verdict = tryLibrary(question, options);
    storeVerdict(folder, file, { key, at: now(), ...verdict });
    return verdict;
  });
}

function keyOf({ library, driverVersion, name, computeCapability }: TrustQuestion): string {
  const hash = sha256(readFileSync(library));
  return JSON.stringify([packageVersion(), process.arch, hash, driverVersion, name, computeCapability]);
}

/** Verdict of an earlier trial; undefined for any file that is not plainly one of these. */
function readVerdict(file: string, key: string, now: number): Trust | undefined {
  try {
    const stats = lstatSync(file);
    const isOwn = process.getuid === undefined || stats.uid === process.getuid();
    if (!stats.isFile() || !isOwn || stats.size > MAX_FILE_BYTES) return undefined;
    const stored = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown> | null;
    if (stored === null || stored.key !== key) return undefined;
    if (stored.trusted === true) return { trusted: true };
    const isFresh = typeof stored.at === "number" && stored.at <= now && now - stored.at < REFUSAL_MS;
    const isRefusal = stored.trusted === false && typeof stored.reason === "string" && isFresh;
    return isRefusal ? { trusted: false, reason: printable(stored.reason as string) } : undefined;
  } catch {
    // absent, unreadable or no JSON: the library is tried again
    return undefined;
  }
}

function storeVerdict(folder: string, file: string, verdict: object): void {
  const temporary = join(folder, `.cuda-${randomUUID()}.tmp`);
  try {
    writeFileSync(temporary, JSON.stringify(verdict), { flag: "wx", mode: 0o600 });
    renameSync(temporary, file);
  } catch {
    if (existsSync(temporary)) rmSync(temporary);
  }
}

function tryLibrary({ library, driver, ordinal }: TrustQuestion, options: TrustOptions): Trust {
  const { trial = TRIAL, timeoutMs = TIMEOUT_MS } = options;
  // the trial must not inherit preloads
  const { NODE_OPTIONS: _, ...env } = process.env;
  const ended = spawnSync(process.execPath, [trial, library, driver, String(ordinal)], {
    env,
    encoding: "utf8",
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    maxBuffer: MAX_OUTPUT,
    timeout: timeoutMs,
    killSignal: "SIGKILL",
    windowsHide: true,
  });
  const refused = (reason: string): Trust => ({ trusted: false, reason });
  const code = (ended.error as NodeJS.ErrnoException | undefined)?.code;
  if (code === "ETIMEDOUT") return refused(`the check did not finish within ${timeoutMs / 1000} s.`);
  if (code !== undefined) return refused(`the check failed (${code}).`);
  if (ended.signal !== null) return refused(`the check crashed (${ended.signal}).`);
  if (ended.status !== 0) return refused(`the check crashed (exit code ${ended.status}).`);
  return parseVerdict(ended.output[3] ?? "") ?? refused("the check returned no result.");
}

/** Verdict of a trial, JSON. */
function parseVerdict(text: string): Trust | undefined {
  try {
    const { trusted, reason } = JSON.parse(text) as Record<string, unknown>;
    if (trusted === true) return { trusted };
    return typeof reason === "string" ? { trusted: false, reason: printable(reason) } : undefined;
  } catch {
    // a library that ends the process leaves no verdict
    return undefined;
  }
}

/** Text of a driver or a file, safe for a terminal. */
const printable = (text: string): string => text.replace(/[^\x20-\x7e]/g, "?").slice(0, MAX_REASON);

/** From one attempt to take the lock to the next. */
const RETRY_MS = 20;
const MAX_LOCK_BYTES = 32;

/**
 * Returns what `read` has, else what `work` returns, which one thread of one process does at a time; while another one
 * works, `read` is called again and again. A lock file names the process that works: one that has died, or takes longer
 * than limitMs, is not waited for. Without a lock file every process works. Blocks the thread.
 */
function inTurn<T>(lock: string, limitMs: number, read: () => T | undefined, work: () => T): T {
  const until = performance.now() + limitMs;
  let state = takeLock(lock);
  while (state === "busy" && performance.now() < until) {
    const value = read();
    if (value !== undefined) return value;
    if (!isHeld(lock)) removeLock(lock);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    state = takeLock(lock);
  }
  try {
    // the one before may have ended after the last attempt
    return read() ?? work();
  } finally {
    if (state !== "impossible") removeLock(lock);
  }
}

function takeLock(lock: string): "own" | "busy" | "impossible" {
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

function removeLock(lock: string): void {
  try {
    rmSync(lock, { force: true });
  } catch {
    // a lock that cannot be removed, such as another user's, is waited for until the limit
  }
}
