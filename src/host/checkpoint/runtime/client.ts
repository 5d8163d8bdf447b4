import { LatentkitError } from "../../../base/errors.js";
import { checkOptions } from "../../../base/options.js";
import { Tensor } from "../../../tensor/tensor.js";
import { CPU_TARGET } from "../onnx/target.js";
import { requireUnchanged } from "../weights/stored.js";
import { CallQueue, type Turn } from "./call-queue.js";
import { KeptValues } from "./kept-values.js";
import { coreCount, freeMemory } from "./machine.js";
import { fits, preferredPlan } from "./plan.js";
import { RuntimeProcess } from "./process.js";
import { bytesOf, type SentFeed, type SessionPorts } from "./protocol.js";
import { chooseProvider, type Device } from "./providers.js";
import type {
  CallOptions,
  Feeds,
  LoadOptions,
  OwnRuntime,
  RunNetwork,
  RunResult,
  RuntimeOptions,
  RuntimeState,
} from "./runtime.js";
import { RUNTIME_RULES, RunNetworks } from "./runtime.js";
import { type Plan, sessionOptions } from "./session-options.js";
import { type LoadedSession, LoadedSessions, type SessionSource } from "./sessions.js";

// decision 220
/** Makes a runtime. Nothing is started or loaded before the first run. Throws usage.invalid. */
export function createRuntime(options: RuntimeOptions = {}): OwnRuntime {
  checkOptions("createRuntime", options, RUNTIME_RULES);
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

class ChildRuntime implements OwnRuntime {
  readonly #options: RuntimeOptions;
  readonly #threads: number;
  readonly #queue = new CallQueue({
    onStuck: () => this.#loaded?.process.kill(),
    onWanted: () => this.#holdProcess(),
  });
  #device: Device | undefined;
  #version: string | undefined;
  #loaded: LoadedProcess | undefined;
  readonly #networks = new RunNetworks();

  constructor(options: RuntimeOptions) {
    const { threads = coreCount(), device = "cpu" } = options;
    this.#options = options;
    this.#threads = threads;
    this.#device = device === "cpu" ? { provider: device, target: CPU_TARGET } : undefined;
  }

  async run(source: SessionSource, feeds: Feeds, options?: CallOptions): Promise<Record<string, Tensor>> {
    return (await this.call(source, feeds, options)).outputs;
  }

  call(source: SessionSource, feeds: Feeds, options: CallOptions = {}): Promise<RunResult> {
    const work = async (turn: Turn) => {
      const { loaded, session } = await this.#load(source, options.calls);
      const outputs = await call(loaded, session, feeds, options, turn);
      return { outputs, network: this.#remember(source, session) };
    };
    return this.#queue.add(options.signal, work, options.place);
  }

  ports(source: SessionSource, { signal, calls, place }: LoadOptions = {}): Promise<SessionPorts> {
    return this.#queue.add(signal, async () => (await this.#load(source, calls)).session.ports, place);
  }

  start(): void {
    const work = async () => {
      await this.#chooseDevice();
      await this.#live();
    };
    this.#queue.add(undefined, work).catch(() => {});
  }

  forget(run: string): void {
    this.#queue.forget(run);
  }

  drop(tensors: Iterable<Tensor>): void {
    for (const tensor of tensors) this.#loaded?.kept.drop(tensor);
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
      networks: this.#networks.all,
    };
  }

  #remember({ key, label, files = [] }: SessionSource, { plan }: LoadedSession): RunNetwork {
    const network = { key, label, plan, files };
    this.#networks.add(network);
    return network;
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
    await requireUnchanged(source.states ?? []);
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
  feeds: Feeds,
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
