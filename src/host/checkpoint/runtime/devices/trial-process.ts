import { onAbort } from "../../../../base/abort.js";
import { LatentkitError } from "../../../../base/errors.js";
import { RuntimeProcess } from "../process.js";
import { bytesOf, type SentFeed } from "../protocol.js";
import type { SessionOptions } from "../session-options.js";
import type { Feed } from "../sessions.js";
import type { Probe } from "./probes.js";

const TASK = "its trial failed";

/** Outputs of runs, and their time. */
export interface Computed {
  readonly values: readonly Float32Array[];
  readonly ms: number;
}

/** The process of a trial: another one after a failure, none when the time is over or the signal has aborted. */
export class TrialProcess {
  #child: RuntimeProcess | undefined;
  #isLate = false;
  readonly #timer: NodeJS.Timeout;
  readonly #leave: () => void;

  constructor(
    timeoutMs: number,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.#leave = onAbort(signal, () => this.kill());
    this.#timer = setTimeout(() => {
      this.#isLate = true;
      this.kill();
    }, timeoutMs);
  }

  /** Whether the time is over. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Does some work with runs of a probe. Rejects with runtime.failed, also when the time is over, and the signal's reason. */
  async inSession<T>(
    { graph, feeds }: Probe,
    options: SessionOptions,
    work: (run: () => Promise<Computed>) => Promise<T>,
  ): Promise<T> {
    const child = await this.#live();
    const model = await child.sendBytes(graph.bytes, TASK);
    const session = 0;
    await child.create({ session, model, options }, TASK);
    const sent: Record<string, SentFeed> = {};
    for (const [name, feed] of Object.entries(feeds)) sent[name] = await sentFeed(child, feed);
    const result = await work(async () => {
      const began = performance.now();
      const outputs = await child.run({ session, feeds: sent, stages: [] }, TASK);
      return { values: outputs.map((output) => output.values), ms: performance.now() - began };
    });
    const values = Object.values(sent).flatMap((feed) => ("values" in feed ? [feed.values] : []));
    await child.request({ type: "forget", values }, TASK);
    await child.request({ type: "release", session }, TASK);
    return result;
  }

  /** Ends the process; the next session starts another one. */
  kill(): void {
    this.#child?.kill();
  }

  /** Resolves when the process is gone. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#leave();
    this.kill();
    await this.#child?.ended;
  }

  async #live(): Promise<RuntimeProcess> {
    this.signal?.throwIfAborted();
    if (this.#isLate) throw new LatentkitError("runtime.failed", TASK);
    if (this.#child?.isAlive !== true) this.#child = new RuntimeProcess();
    await this.#child.ready;
    return this.#child;
  }
}

async function sentFeed(child: RuntimeProcess, feed: Feed): Promise<SentFeed> {
  const { shape } = feed;
  if ("int64" in feed) return { int64: feed.int64, shape };
  return { values: await child.sendBytes(bytesOf(feed.data), TASK), shape, keep: true };
}
