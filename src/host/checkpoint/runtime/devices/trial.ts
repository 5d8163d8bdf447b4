import { onAbort } from "../../../../base/abort.js";
import { LatentkitError } from "../../../../base/errors.js";
import { CPU_TARGET, type Target } from "../../onnx/target.js";
import { type Provider, type SessionOptions, sessionOptions } from "../../session/options.js";
import type { Feed } from "../../session/sessions.js";
import { coreCount } from "../machine.js";
import { RuntimeProcess } from "../process.js";
import { bytesOf, type SentFeed } from "../protocol.js";
import { comparedProbes, type MakeProbes, type Probe, speedProbe } from "./probes.js";

/** Whether a provider is usable on this machine, and how fast. */
export type Verdict =
  | {
      readonly isUsable: true;
      readonly target: Target;
      /** How many times as fast as the CPU with all of its cores. */
      readonly speed: number;
    }
  /** Why it is not used: ends a sentence that begins with its name. */
  | { readonly isUsable: false; readonly reason: string };

export interface TrialOptions {
  readonly probes?: MakeProbes;
  readonly timeoutMs?: number;
  /** Stops the trial. */
  readonly signal?: AbortSignal;
}

/** A GPU that has to compile its programs takes some seconds; a driver that computes on the CPU takes minutes. */
const TIMEOUT_MS = 120_000;
/** Difference from the CPU for values of order 1: sound providers stay below 1e-3, a broken attention was off by 0.1. */
const TOLERANCE = 5e-3;
/** A provider that takes this many times as long as one thread of the CPU is not timed further. */
const FAR_SLOWER = 100;
/** Timed runs, of which the fastest counts. */
const TIMED_RUNS = 3;
/** With the VAE's head of 512 WebGPU's operator took 53 GiB at 1024x1024; the plain form took 13, and less time. */
const LARGEST_HEAD = 256;

/** Sentences for failures whose own message does not help. */
const REMEDIES: readonly (readonly [provider: Provider | "any", failure: RegExp, reason: string])[] = [
  ["any", /fallback to CPU EP/i, "it cannot run every layer of a network."],
  [
    "cuda",
    /load (shared )?library|cannot open shared object/i,
    "its libraries are missing: run \"npm install onnxruntime-node --onnxruntime-node-install=cuda12\", and put CUDA 12's cublas, cudart, cufft and curand and cuDNN 9 on the loader's path.",
  ],
  [
    "webgpu",
    /get a WebGPU adapter|No supported adapters/i,
    process.platform === "linux"
      ? "no GPU was found: install the card's Vulkan driver and a Vulkan loader (Debian and Ubuntu: libvulkan1, and for NVIDIA libegl1, libglx0 and libgl1)."
      : "no GPU was found.",
  ],
];

/**
 * A target of a GPU. WebGPU has no kernel for FusedMatMul, and its convolutions of 6, 9 and 18 channels are wrong:
 * https://github.com/microsoft/onnxruntime/issues/29651
 */
const targetOf = (provider: Provider, attention: Target["attention"], halfTypes: Target["halfTypes"]): Target => ({
  attention,
  largestHead: LARGEST_HEAD,
  matMul: provider === "webgpu" ? "transposed" : "fused",
  convChannels: provider === "webgpu" ? "fours" : "any",
  halfTypes,
});

// decisions: A GPU is used unasked only after a trial
/**
 * Runs small networks on a provider and on the CPU, and compares: attention as one operator, then written out; weights in
 * F16, then in float32. Then requires every layer to run on the provider, and times it. Everything runs in separate processes,
 * which a driver may crash; all have ended when this returns. Rejects with runtime.missing and the signal's reason.
 */
export async function judge(
  provider: Provider,
  { probes = comparedProbes, timeoutMs = TIMEOUT_MS, signal }: TrialOptions = {},
): Promise<Verdict> {
  const trial = new Trial(provider, timeoutMs, signal);
  try {
    const target = await trial.chooseTarget(probes);
    if (typeof target === "string") return { isUsable: false, reason: target };
    return { isUsable: true, target, speed: provider === "cpu" ? 1 : await trial.speed(target) };
  } catch (error) {
    return { isUsable: false, reason: trial.reasonOf(error) };
  } finally {
    await trial.close();
  }
}

/** Runs of one provider beside the CPU's. */
class Trial {
  readonly #process: TrialProcess;
  /** Whether the last target ended in an error, and whether trying another is pointless. */
  #hasFailed = false;
  #isOver = false;
  /** Outputs of the CPU by the types of the weights. */
  readonly #expected = new Map<Target["halfTypes"], Computed>();
  /** Time of the compared run on the provider, and of one thread of the CPU. */
  #times = { own: 0, cpu: 0 };
  readonly #provider: Provider;
  readonly #timeoutMs: number;
  readonly #signal: AbortSignal | undefined;

  constructor(provider: Provider, timeoutMs: number, signal: AbortSignal | undefined) {
    this.#provider = provider;
    this.#timeoutMs = timeoutMs;
    this.#signal = signal;
    this.#process = new TrialProcess(timeoutMs, signal);
  }

  /** The first target with correct numbers, or why there is none. */
  async chooseTarget(probes: MakeProbes): Promise<Target | string> {
    if (this.#provider === "cpu") return (await this.#differ(CPU_TARGET, probes)) ?? CPU_TARGET;
    let halfTypes: Target["halfTypes"] = ["F16"];
    let fault: string | undefined;
    for (const attention of ["fused", "plain"] as const) {
      fault = await this.#differ(targetOf(this.#provider, attention, halfTypes), probes);
      if (this.#hasFailed && halfTypes.length > 0 && !this.#isOver) {
        halfTypes = [];
        fault = await this.#differ(targetOf(this.#provider, attention, halfTypes), probes);
      }
      if (fault === undefined) return targetOf(this.#provider, attention, halfTypes);
      if (this.#isOver) break;
    }
    return fault!;
  }

  /** The fault of a target; undefined if its numbers match the CPU's. */
  async #differ(target: Target, probes: MakeProbes): Promise<string | undefined> {
    const { halfTypes } = target;
    this.#hasFailed = false;
    try {
      const expected =
        this.#expected.get(halfTypes) ?? (await this.#outputs("cpu", probes({ ...CPU_TARGET, halfTypes })));
      this.#expected.set(halfTypes, expected);
      this.#times.cpu = expected.ms;
      const received = await this.#outputs(this.#provider, probes(target));
      this.#times.own = received.ms;
      const difference = largestDifference(expected.values, received.values);
      return difference <= TOLERANCE ? undefined : `its results differ from the CPU's by ${difference.toPrecision(2)}.`;
    } catch (error) {
      const reason = this.reasonOf(error);
      this.#hasFailed = true;
      this.#process.kill();
      return reason;
    }
  }

  /** Why a failure rules the provider out. Throws any other error. */
  reasonOf(error: unknown): string {
    // the failure is that of the process killed on abort
    this.#signal?.throwIfAborted();
    if (!(error instanceof LatentkitError) || error.code !== "runtime.failed") throw error;
    const { message } = error;
    const { isLate } = this.#process;
    this.#isOver ||= isLate;
    if (isLate) return `its trial did not finish within ${this.#timeoutMs / 1000} s.`;
    const remedy = REMEDIES.find(
      ([provider, failure]) => ["any", this.#provider].includes(provider) && failure.test(message),
    );
    this.#isOver ||= remedy !== undefined;
    return remedy?.[2] ?? message;
  }

  /** How many times as fast as the CPU. Rejects if a layer would run on the CPU. */
  async speed(target: Target): Promise<number> {
    const options = sessionOptions({ provider: this.#provider, threads: 1 }, "");
    const alone: SessionOptions = {
      ...options,
      executionProviders: [this.#provider],
      extra: { session: { ...options.extra.session, disable_cpu_ep_fallback: "1" } },
    };
    const own = await this.#time(speedProbe(target), alone);
    if (own === undefined) return this.#times.cpu / this.#times.own;
    const cpu = sessionOptions({ provider: "cpu", threads: coreCount() }, "");
    return (await this.#time(speedProbe({ ...CPU_TARGET, halfTypes: target.halfTypes }), cpu))! / own;
  }

  /** Milliseconds of a run; undefined if it would take too long to find out. */
  async #time(probe: Probe, options: SessionOptions): Promise<number | undefined> {
    const isFarSlower = this.#times.own > FAR_SLOWER * this.#times.cpu;
    return this.#process.inSession(probe, options, async (run) => {
      if (isFarSlower) return undefined;
      const times: number[] = [];
      await run();
      for (let i = 0; i < TIMED_RUNS; i++) times.push((await run()).ms);
      return Math.min(...times);
    });
  }

  async #outputs(provider: Provider, probes: readonly Probe[]): Promise<Computed> {
    const values: Float32Array[] = [];
    let ms = 0;
    for (const probe of probes)
      await this.#process.inSession(
        probe,
        sessionOptions({ provider, threads: 1 }, probe.graph.folder),
        async (run) => {
          const first = await run();
          // the first run compiles a GPU's programs
          const second = await run();
          ms += second.ms;
          values.push(...first.values, ...second.values);
        },
      );
    return { values, ms };
  }

  close(): Promise<void> {
    return this.#process.close();
  }
}

/** Largest difference of two lists of outputs, Infinity for NaN and other lengths. */
function largestDifference(expected: readonly Float32Array[], received: readonly Float32Array[]): number {
  let largest = expected.length === received.length ? 0 : Number.POSITIVE_INFINITY;
  for (const [index, values] of expected.entries()) {
    const others = received[index];
    if (others?.length !== values.length) return Number.POSITIVE_INFINITY;
    for (let i = 0; i < values.length; i++) {
      const difference = Math.abs(values[i]! - others[i]!);
      if (!(difference <= largest)) largest = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
    }
  }
  return largest;
}

const TASK = "its trial failed";

/** Outputs of runs, and their time. */
interface Computed {
  readonly values: readonly Float32Array[];
  readonly ms: number;
}

/** The process of a trial: a new one after a failure, none once the time is over or the signal has aborted. */
class TrialProcess {
  #child: RuntimeProcess | undefined;
  #isLate = false;
  readonly #timer: NodeJS.Timeout;
  readonly #leave: () => void;
  readonly #signal: AbortSignal | undefined;

  constructor(timeoutMs: number, signal: AbortSignal | undefined) {
    this.#signal = signal;
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
    const values = Object.values(sent).flatMap((feed) =>
      "values" in feed && typeof feed.values === "number" ? [feed.values] : [],
    );
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
    this.#signal?.throwIfAborted();
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
