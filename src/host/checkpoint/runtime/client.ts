import { LatentkitError } from "../../../base/errors.js";
import { checkOptions, FUNCTION, type OptionRules } from "../../../base/options.js";
import { Tensor } from "../../../tensor/tensor.js";
import { CPU_TARGET } from "../onnx/target.js";
import { CallQueue, type Turn } from "./call-queue.js";
import { KeptValues } from "./kept-values.js";
import { coreCount, freeMemory } from "./machine.js";
import { fits, preferredPlan } from "./plan.js";
import { RuntimeProcess } from "./process.js";
import { bytesOf, type SentFeed, type SessionPorts } from "./protocol.js";
import { chooseProvider, type Device } from "./providers.js";
import { type Plan, PROVIDERS, type Provider, sessionOptions } from "./session-options.js";
import { type Feed, type LoadedSession, LoadedSessions, type SessionSource } from "./sessions.js";

/** Options of `createRuntime`. */
export interface RuntimeOptions {
  /** Number of threads of one run; the number of cores by default. */
  threads?: number;
  /** Bytes of memory for weights; by default as much as is free. */
  memory?: number;
  /** Where networks run: "cpu" (the default), another provider, or "auto" for the first one that computes rightly here. */
  device?: Provider | "auto";
  /** Way to hold weights; by default chosen for each network. */
  plan?: Plan;
  /** Called when a network begins to load, has been loaded, and has been released. */
  onLoad?: (label: string, state: LoadState) => void;
}

export type LoadState = "loading" | "loaded" | "released";

/** Options of one run. */
export interface CallOptions {
  /** Ends the wait at once. */
  readonly signal?: AbortSignal;
  /** Inputs that come again and never change: they are sent once. */
  readonly keep?: readonly string[];
  /** Number of runs of this network to expect, which decides how to load it; 1 by default. */
  readonly calls?: number;
  /** Names of the outputs to compute; all by default. */
  readonly outputs?: readonly string[];
}

/** A network that has run. */
export interface RunNetwork {
  readonly label: string;
  readonly plan: Plan;
  /** Paths of the files of its weights, without symbolic links. */
  readonly files: readonly string[];
}

/** State of a runtime, for receipts and reports. */
export interface RuntimeState {
  /** Version of onnxruntime-node; undefined before the first run. */
  readonly version?: string;
  /** Undefined before the first run where the device is "auto". */
  readonly provider?: Provider;
  readonly threads: number;
  readonly processId?: number;
  /** Least recently used first. */
  readonly sessions: readonly LoadedSession[];
  /** Networks that have run, with the plan of the last run; least recently run first, at most 256. */
  readonly networks: readonly RunNetwork[];
}

/** ONNX Runtime in a child process, which starts with the first run and ends with this process. */
export interface Runtime {
  /**
   * Runs a network once and returns its outputs; runs take turns. Rejects with run.interrupted, runtime.missing,
   * device.unavailable, what `verify` of the source rejects with, and runtime.failed: the run failed, or the process died
   * in it. The next run works with a new process then.
   */
  run(
    source: SessionSource,
    feeds: Readonly<Record<string, Feed>>,
    options?: CallOptions,
  ): Promise<Record<string, Tensor>>;
  /** Loads a network where it is not loaded and returns its inputs and outputs. Rejects as `run`. */
  ports(source: SessionSource, options?: Pick<CallOptions, "signal" | "calls">): Promise<SessionPorts>;
  /** Interrupts all runs and gives all memory back. A later run starts anew. */
  close(): Promise<void>;
  describe(): RuntimeState;
}

const MAX_THREADS = 256;
const MOST_NETWORKS = 256;

const RULES: OptionRules<RuntimeOptions> = {
  threads: [
    `a whole number from 1 to ${MAX_THREADS}`,
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_THREADS,
  ],
  memory: ["a number of bytes", (value) => typeof value === "number" && value >= 0],
  device: [`auto, ${PROVIDERS.join(", ")}`, (value) => value === "auto" || PROVIDERS.includes(value as Provider)],
  plan: ["stream or fold", (value) => value === "stream" || value === "fold"],
  onLoad: FUNCTION,
};

// decision 220
/** Makes a runtime. Nothing is started or loaded before the first run. Throws usage.invalid. */
export function createRuntime(options: RuntimeOptions = {}): Runtime {
  checkOptions("createRuntime", options, RULES);
  return new ChildRuntime(options);
}

/** A child process, and what is in it. */
class LoadedProcess {
  readonly process = new RuntimeProcess();
  readonly sessions = new LoadedSessions();
  readonly kept = new KeptValues();
}

/** Memory for the activations of a run. */
const RESERVED_BYTES = 2 ** 30;

class ChildRuntime implements Runtime {
  readonly #options: RuntimeOptions;
  readonly #threads: number;
  readonly #queue = new CallQueue({
    onStuck: () => this.#loaded?.process.kill(),
    onWanted: () => this.#holdProcess(),
  });
  #device: Device | undefined;
  #version: string | undefined;
  #loaded: LoadedProcess | undefined;
  readonly #networks = new Map<string, RunNetwork>();

  constructor(options: RuntimeOptions) {
    const { threads = coreCount(), device = "cpu" } = options;
    this.#options = options;
    this.#threads = threads;
    this.#device = device === "cpu" ? { provider: device, target: CPU_TARGET } : undefined;
  }

  run(
    source: SessionSource,
    feeds: Readonly<Record<string, Feed>>,
    options: CallOptions = {},
  ): Promise<Record<string, Tensor>> {
    return this.#queue.add(options.signal, async (turn) => {
      const { loaded, session } = await this.#load(source, options.calls);
      const outputs = await call(loaded, session, feeds, options, turn);
      this.#remember(source, session);
      return outputs;
    });
  }

  ports(source: SessionSource, { signal, calls }: Pick<CallOptions, "signal" | "calls"> = {}): Promise<SessionPorts> {
    return this.#queue.add(signal, async () => (await this.#load(source, calls)).session.ports);
  }

  async #load(source: SessionSource, calls = 1): Promise<{ loaded: LoadedProcess; session: LoadedSession }> {
    const device = await this.#chooseDevice();
    const loaded = await this.#live();
    return { loaded, session: await this.#session(loaded, device, source, calls) };
  }

  async close(): Promise<void> {
    this.#queue.clear();
    const process = this.#loaded?.process;
    this.#loaded = undefined;
    // a program that has nothing else to do waits for the end too
    process?.ref();
    process?.kill();
    await process?.ended;
  }

  describe(): RuntimeState {
    const loaded = this.#loaded?.process.isAlive ? this.#loaded : undefined;
    return {
      version: this.#version,
      provider: this.#device?.provider,
      threads: this.#threads,
      processId: loaded?.process.id,
      sessions: loaded?.sessions.all ?? [],
      networks: [...this.#networks.values()],
    };
  }

  #remember({ key, label, files = [] }: SessionSource, { plan }: LoadedSession): void {
    this.#networks.delete(key);
    this.#networks.set(key, { label, plan, files });
    if (this.#networks.size > MOST_NETWORKS) this.#networks.delete(this.#networks.keys().next().value!);
  }

  async #chooseDevice(): Promise<Device> {
    const { device = "cpu" } = this.#options;
    this.#device ??= await chooseProvider(device);
    return this.#device;
  }

  /** The child process, a new one where it has died since the last run. */
  async #live(): Promise<LoadedProcess> {
    const current = this.#loaded;
    if (current !== undefined) {
      try {
        await current.process.request({ type: "ping" }, "Waiting for ONNX Runtime");
        return current;
      } catch (error) {
        if (current.process.isAlive) throw error;
      }
    }
    const loaded = new LoadedProcess();
    this.#loaded = loaded;
    this.#holdProcess();
    const { version } = await loaded.process.ready;
    this.#version = version;
    return loaded;
  }

  /** Lets the child process keep this one alive while somebody waits for a run. */
  #holdProcess(): void {
    if (this.#queue.isWanted) this.#loaded?.process.ref();
    else this.#loaded?.process.unref();
  }

  async #session(loaded: LoadedProcess, device: Device, source: SessionSource, calls: number): Promise<LoadedSession> {
    const isGpu = device.provider !== "cpu";
    const wish = preferredPlan(source, { calls, isGpu, wish: this.#options.plan });
    const streamed = loaded.sessions.use(source.key, "stream");
    const known = wish === "stream" ? streamed : loaded.sessions.use(source.key, "fold");
    if (known?.plan === "fold") return known;
    await source.verify?.();
    if (known !== undefined) return known;
    const budget = this.#budget(loaded.sessions.bytes);
    const isForced = this.#options.plan === "fold" || isGpu || source.isFixed === true;
    const plan = isForced || (wish === "fold" && fits(source, budget)) ? wish : "stream";
    // streamed for want of memory: it stays so until it is released
    if (plan === "stream" && streamed !== undefined) return streamed;
    return this.#create(loaded, device, source, plan, budget);
  }

  /** Bytes for weights, those of loaded sessions included. */
  #budget(loadedBytes: number): number {
    const free = Math.max(0, freeMemory() + loadedBytes - RESERVED_BYTES);
    return Math.min(this.#options.memory ?? free, free);
  }

  async #create(
    { process, sessions }: LoadedProcess,
    { provider, target }: Device,
    source: SessionSource,
    plan: Plan,
    budget: number,
  ): Promise<LoadedSession> {
    const { onLoad } = this.#options;
    const next = sessions.next(source, plan);
    for (const surplus of sessions.surplus(next.bytes, budget)) {
      await process.request({ type: "release", session: surplus.number }, `${surplus.label}, while it was released`);
      sessions.remove(surplus);
      onLoad?.(surplus.label, "released");
    }
    onLoad?.(source.label, "loading");
    const made = await source.make(plan, target);
    const task = `${source.label}, while it was loaded`;
    const model = "path" in made ? made : await process.sendBytes(made.bytes, task);
    const folder = "path" in made ? "" : made.folder;
    const options = sessionOptions({ provider, threads: this.#threads }, plan, folder);
    const session = { ...next, ports: await process.create({ session: next.number, model, options }, task) };
    sessions.add(session);
    onLoad?.(source.label, "loaded");
    return session;
  }
}

/** Sends the inputs of a run that the child does not have, and runs the session. */
async function call(
  { process, kept }: LoadedProcess,
  session: LoadedSession,
  feeds: Readonly<Record<string, Feed>>,
  { keep = [], outputs: names }: CallOptions,
  turn: Turn,
): Promise<Record<string, Tensor>> {
  const task = `${session.label}, while it ran`;
  const sent: Record<string, SentFeed> = {};
  const temporary: number[] = [];
  for (const [name, feed] of Object.entries(feeds)) {
    const { shape } = feed;
    if (!(feed instanceof Tensor)) {
      sent[name] = { int64: feed.int64, shape };
      continue;
    }
    const isKept = keep.includes(name);
    const known = isKept ? kept.use(feed) : undefined;
    const values = known ?? (await process.sendBytes(bytesOf(feed.data), task));
    sent[name] = { values, shape, keep: isKept };
    if (isKept && known === undefined && !turn.isAbandoned) kept.add(feed, values);
    else if (known === undefined) temporary.push(values);
    if (turn.isAbandoned) break;
  }
  if (turn.isAbandoned) {
    // the caller may have changed them while they were sent
    await process.request({ type: "forget", values: temporary }, task);
    throw new LatentkitError("run.interrupted", "The run was interrupted.");
  }
  const outputs = await process.run({ session: session.number, feeds: sent, outputs: names }, task);
  const surplus = kept.takeSurplus();
  if (surplus.length > 0) await process.request({ type: "forget", values: surplus }, task);
  return Object.fromEntries(outputs.map(({ name, shape, values }) => [name, Tensor.from(values, shape)]));
}
