// Program of threads for tests of WorkThreads.
import { setTimeout } from "node:timers/promises";
import { threadId } from "node:worker_threads";
import { serveWork } from "#src/service/hooks/work-threads.js";

const hoard: Uint8Array[] = [];

/** Work for a thread; `running`: number of threads that are at work, and the most so far; `crowd`: most to wait for. */
export interface TestWork {
  readonly what: "answer" | "hold" | "spin" | "throw" | "exit" | "overflow" | "fill" | "double" | "hoard";
  readonly running?: SharedArrayBuffer;
  readonly crowd?: number;
  readonly bytes?: Uint8Array;
}

/** Result of a thread: its id, and each byte twice as large. */
export interface TestDone {
  readonly threadId: number;
  readonly bytes?: Uint8Array;
}

serveWork<TestWork, TestDone>(async ({ what, running, crowd = 0, bytes }) => {
  const counts = running && new Int32Array(running);
  if (counts !== undefined) {
    const now = Atomics.add(counts, 0, 1) + 1;
    if (now > Atomics.load(counts, 1)) Atomics.store(counts, 1, now);
  }
  if (what === "hold") await setTimeout(40);
  while (counts !== undefined && Atomics.load(counts, 1) < crowd) await setTimeout(1);
  while (what === "spin");
  if (what === "throw") throw new TypeError("a fault of the program");
  if (what === "exit") process.exit(3);
  if (what === "overflow") overflow();
  if (what === "hoard") hoard.push(new Uint8Array(100 * 2 ** 20));
  const filled: object[] = [];
  while (what === "fill") filled.push(new Array(1000).fill({}));
  if (counts !== undefined) Atomics.sub(counts, 0, 1);
  if (bytes === undefined) return { value: { threadId } };
  const doubled = Uint8Array.from(bytes, (byte) => byte * 2);
  return { value: { threadId, bytes: doubled }, moved: [doubled.buffer] };
});

function overflow(): number {
  return 1 + overflow();
}
