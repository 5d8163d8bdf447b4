import { createHash } from "node:crypto";
import { onAbort } from "../../../../base/abort.js";
import { Tensor } from "../../../../tensor/tensor.js";
import type { CallOptions, Feeds, RunResult } from "../../session/runtime.js";
import { bytesOf } from "../protocol.js";

/** Bytes of results: as many as a thread of a batch keeps for itself. */
const MOST_BYTES = 2 ** 26;
/** Bytes that each result counts beside its values. */
const RESULT_BYTES = 1024;

// 64 MiB hold the prompts of hundreds of items; a call whose equal is being computed waits for it.
/** Results of calls that are equal in all runs of a runtime, least recently used first. */
export class CallMemo {
  readonly #results = new Map<string, RunResult>();
  readonly #running = new Map<string, Promise<RunResult>>();
  #bytes = 0;
  readonly #mostBytes: number;

  constructor(mostBytes = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /**
   * The result of an equal call, else of this one. If one is already being made, it is awaited; if it fails, or its run is
   * given up, the next that waits makes its own.
   */
  async get(key: string, signal: AbortSignal, make: () => Promise<RunResult>): Promise<RunResult> {
    for (let running = this.#running.get(key); running !== undefined; running = this.#running.get(key)) {
      await endOf(running, signal);
      signal.throwIfAborted();
    }
    const known = this.#results.get(key);
    if (known !== undefined) {
      this.#results.delete(key);
      this.#results.set(key, known);
      return known;
    }
    const running = make();
    this.#running.set(key, running);
    try {
      const result = await running;
      this.#add(key, result);
      return result;
    } finally {
      this.#running.delete(key);
    }
  }

  #add(key: string, result: RunResult): void {
    this.#results.set(key, result);
    this.#bytes += sizeOf(result);
    for (const [oldest, other] of this.#results) {
      if (this.#bytes <= this.#mostBytes) return;
      this.#results.delete(oldest);
      this.#bytes -= sizeOf(other);
    }
  }
}

/** Key of a call: equal ones have equal results. */
export function keyOfCall(source: string, feeds: Feeds, { calls, outputs }: CallOptions): string {
  const values = Object.entries(feeds).map(([name, feed]) =>
    feed instanceof Tensor ? [name, feed.shape, hashOf(feed)] : [name, feed.shape, feed.int64],
  );
  return hashOf(JSON.stringify([source, calls, outputs, values]));
}

const hashOf = (content: Tensor | string): string =>
  createHash("sha256")
    .update(typeof content === "string" ? content : bytesOf(content.data))
    .digest("base64");

const sizeOf = ({ outputs }: RunResult): number =>
  Object.values(outputs).reduce((sum, { size }) => sum + size * Float32Array.BYTES_PER_ELEMENT, RESULT_BYTES);

/** Resolves when the work has ended, however, or the signal aborts. */
const endOf = (work: Promise<unknown>, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const leave = onAbort(signal, resolve);
    const end = () => {
      leave();
      resolve();
    };
    work.then(end, end);
  });
