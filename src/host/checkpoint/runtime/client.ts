import { LatentkitError } from "../../../base/errors.js";
import { checkOptions } from "../../../base/options.js";
import { Tensor } from "../../../tensor/tensor.js";
import { withUnpacked } from "../weights/packed/unpack.js";
import { requireUnchanged } from "../weights/stored.js";
import { CallQueue, type Turn } from "./call-queue.js";
import { CPU_DEVICE, type Device, hasFloat16, isGpu } from "./device.js";
import { type ChosenDevice, chooseDevice } from "./devices/choice.js";
import { KeptValues } from "./kept-values.js";
import { coreCount, freeMemory } from "./machine.js";
import { expanded, fits, type PlannedNetwork, preferredPlan, sessionBytes } from "./plan.js";
import { RuntimeProcess } from "./process.js";
import { bytesOf, type SentFeed, type SessionPorts, type StageRequest } from "./protocol.js";
import type {
  CallOptions,
  DeviceFacts,
  Feeds,
  LoadOptions,
  OwnRuntime,
  RunNetwork,
  RunResult,
  RuntimeOptions,
  RuntimeState,
  Stage,
} from "./runtime.js";
import { RUNTIME_RULES, RunNetworks } from "./runtime.js";
import { type Plan, plansOf, sessionOptions } from "./session-options.js";
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
/** Words of drivers for a GPU that is gone. */
const LOST = /device[ _](was |is )?(lost|removed|hung|reset)/i;

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
  /** Bytes of sessions that were too many for a GPU. */
  #tooMany = Number.POSITIVE_INFINITY;
  readonly #networks = new RunNetworks();

  constructor(options: RuntimeOptions) {
    // a plan of the CPU alone asks for it
    const { threads = coreCount(), plan, device = plan === "stream" ? "cpu" : undefined } = options;
    this.#options = { ...options, device };
    this.#threads = threads;
    this.#device = device === "cpu" ? CPU_DEVICE : undefined;
  }

  async run(source: SessionSource, feeds: Feeds, options?: CallOptions): Promise<Record<string, Tensor>> {
    return (await this.call(source, feeds, options)).outputs;
  }

  call(source: SessionSource, feeds: Feeds, options: CallOptions = {}): Promise<RunResult> {
    const { stages = [], calls } = options;
    const all: Stage[] = [...stages, { source, feeds, keep: options.keep }];
    const work = (turn: Turn) =>
      this.#onDevice(source, turn, async () => {
        const { loaded, sessions } = await this.#load(
          all.map((stage) => stage.source),
          calls,
        );
        const outputs = await call(loaded, sessions, all, options.outputs, turn);
        return { outputs, networks: all.map((stage, index) => this.#remember(stage.source, sessions[index]!)) };
      });
    return this.#queue.add(options.signal, work, options.place);
  }

  ports(source: SessionSource, { signal, calls, place }: LoadOptions = {}): Promise<SessionPorts> {
    const work = (turn: Turn) =>
      this.#onDevice(source, turn, async () => (await this.#load([source], calls)).sessions[0]!.ports);
    return this.#queue.add(signal, work, place);
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

  async #load(sources: readonly SessionSource[], calls = 1) {
    const device = await this.#chooseDevice();
    const loaded = await this.#live();
    const sessions: LoadedSession[] = [];
    for (const source of sources) sessions.push(await this.#session(loaded, device, source, calls, sessions));
    return { loaded, sessions };
  }

  // decision 355
  /**
   * Does some work. What fails on a GPU leaves it in a state that is not to be trusted: the process is replaced, and what
   * more memory may mend is tried once more, with nothing else loaded. Rejects with device.lost where the GPU was.
   */
  async #onDevice<T>(source: SessionSource, turn: Turn, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const failed = await this.#gpuFailure(error);
      if (failed === undefined || turn.isAbandoned) throw error;
      const { sessions } = failed;
      const isCounted = sessions.all.some(({ key }) => key === source.key);
      try {
        const result = await work();
        this.#tooMany = Math.min(this.#tooMany, sessions.bytes + (isCounted ? 0 : bytesOn(this.#device!, source)));
        return result;
      } catch (again) {
        if ((await this.#gpuFailure(again)) === undefined) throw again;
        const gibibytes = (bytesOn(this.#device!, source) / 2 ** 30).toFixed(1);
        throw new LatentkitError(
          "runtime.failed",
          `${(again as Error).message} It failed twice, the second time with nothing else on the GPU, where its weights take ${gibibytes} GiB: a smaller picture, fewer at a time or the device "cpu" may help.`,
        );
      }
    }
  }

  /**
   * The process in which ONNX Runtime reported a failure of a GPU, after its end; undefined for other errors. Rejects with
   * device.lost where the GPU or its driver is gone.
   */
  async #gpuFailure(error: unknown): Promise<LoadedProcess | undefined> {
    const loaded = this.#loaded;
    const isFailure = error instanceof LatentkitError && error.code === "runtime.failed";
    if (!isFailure || loaded === undefined || this.#device === undefined || !isGpu(this.#device)) return undefined;
    const { isAlive, hasCrashed } = loaded.process;
    if (!isAlive && !hasCrashed) return undefined;
    await this.#replace(loaded);
    if (isAlive && !LOST.test(error.message)) return loaded;
    throw new LatentkitError("device.lost", `The GPU was lost (${this.#device.provider}). ${error.message}`);
  }

  /** Ends a process; the next call starts another one. */
  async #replace({ process, sessions }: LoadedProcess): Promise<void> {
    this.#loaded = undefined;
    process.kill();
    await process.ended;
    for (const { label } of sessions.all) this.#options.onLoad?.(label, "released");
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
      device: this.#device === undefined ? undefined : factsOf(this.#device),
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
    if (this.#device !== undefined) return this.#device;
    const { device, plan, onDevice } = this.#options;
    const chosen: ChosenDevice = await chooseDevice(device);
    const plans = plansOf(chosen.provider).filter((each) => each !== "keep" || hasFloat16(chosen));
    if (plan !== undefined && !plans.includes(plan)) {
      const expected = plans.join(" or ");
      throw new LatentkitError(
        "usage.invalid",
        `plan: expected ${expected} on ${chosen.provider}, received "${plan}".`,
      );
    }
    this.#device = chosen;
    if (isGpu(chosen) || chosen.reason !== undefined) onDevice?.({ ...factsOf(chosen), reason: chosen.reason });
    return chosen;
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

  /** `needed` are sessions of the same call, which stay. */
  async #session(
    loaded: LoadedProcess,
    device: Device,
    source: SessionSource,
    calls: number,
    needed: readonly LoadedSession[],
  ): Promise<LoadedSession> {
    const place = { isGpu: isGpu(device), hasFloat16: hasFloat16(device) };
    const wish = preferredPlan(source, { calls, device: place, wish: this.#options.plan });
    const known = loaded.sessions.use(source.key, wish);
    if (known !== undefined && known.plan !== "stream") return known;
    // a streamed one reads its file in every run
    await requireUnchanged(source.states ?? []);
    if (known !== undefined) return known;
    const budget = this.#budget(place.isGpu, loaded.sessions.bytes);
    const isForced = this.#options.plan === "fold" || place.isGpu || source.isFixed === true;
    const spare = budget - needed.reduce((sum, { bytes }) => sum + bytes, 0);
    const plan = isForced || (wish === "fold" && fits(plannedOn(device, source), spare)) ? wish : "stream";
    // streamed for want of memory: it stays so until it is released
    const streamed = plan === "stream" ? loaded.sessions.use(source.key, plan) : undefined;
    return streamed ?? this.#create(loaded, device, source, plan, { budget, needed });
  }

  /** Bytes for weights, those of loaded sessions included. No interface tells what is free on a GPU: failures do. */
  #budget(isOnGpu: boolean, loadedBytes: number): number {
    const { memory = Number.POSITIVE_INFINITY } = this.#options;
    if (isOnGpu) return Math.min(memory, this.#tooMany - 1);
    return Math.min(memory, Math.max(0, freeMemory() + loadedBytes - RESERVED_BYTES));
  }

  async #create(
    { process, sessions }: LoadedProcess,
    device: Device,
    source: SessionSource,
    plan: Plan,
    { budget, needed }: { readonly budget: number; readonly needed: readonly LoadedSession[] },
  ): Promise<LoadedSession> {
    const { provider, target } = device;
    const { onLoad } = this.#options;
    const next = sessions.next(source, plan, sessionBytes(plannedOn(device, source), plan));
    for (const surplus of sessions.surplus(next.bytes, budget, needed)) {
      await process.request({ type: "release", session: surplus.number }, `${surplus.label}, while it was released`);
      sessions.remove(surplus);
      onLoad?.(surplus.label, "released");
    }
    onLoad?.(source.label, "loading");
    const made = await source.make(plan, target);
    const task = `${source.label}, while it was loaded`;
    const model = "path" in made ? made : await process.sendBytes(made.bytes, task);
    const folder = "path" in made ? "" : made.folder;
    const options = sessionOptions({ provider, threads: this.#threads, isStage: source.isStage }, plan, folder);
    const unpack = "path" in made ? undefined : made.unpack;
    const ports = await withUnpacked(unpack, () => process.create({ session: next.number, model, options }, task));
    const session = { ...next, ports };
    sessions.add(session);
    onLoad?.(source.label, "loaded");
    return session;
  }
}

const factsOf = ({ provider, adapter, target }: Device): DeviceFacts =>
  provider === "cpu" ? { provider } : { provider, adapter, form: target.attention };

/** A network as a device holds it. */
const plannedOn = ({ target }: Device, source: SessionSource): PlannedNetwork =>
  target.groups === undefined ? expanded(source) : source;

/** Bytes of a network's weights on a GPU. */
const bytesOn = (device: Device, source: SessionSource): number =>
  sessionBytes(
    plannedOn(device, source),
    preferredPlan(source, { calls: 1, device: { isGpu: true, hasFloat16: hasFloat16(device) } }),
  );

/** Sends the inputs of a call that the child does not have, and runs its sessions; outputs are those of the last. */
async function call(
  { process, kept }: LoadedProcess,
  sessions: readonly LoadedSession[],
  stages: readonly Stage[],
  outputs: readonly string[] | undefined,
  turn: Turn,
): Promise<Record<string, Tensor>> {
  const task = `${sessions.at(-1)!.label}, while it ran`;
  const sent: StageRequest[] = [];
  const temporary: number[] = [];
  for (const [index, { feeds, keep = [] }] of stages.entries()) {
    const own: Record<string, SentFeed> = {};
    for (const [name, feed] of Object.entries(feeds)) {
      const { shape } = feed;
      if (!(feed instanceof Tensor)) {
        own[name] = { int64: feed.int64, shape };
        continue;
      }
      const isKept = keep.includes(name);
      const known = isKept ? kept.use(feed) : undefined;
      const values = known ?? (await process.sendBytes(bytesOf(feed.data), task));
      own[name] = { values, shape, keep: isKept };
      if (isKept && known === undefined && !turn.isAbandoned) kept.add(feed, values);
      else if (known === undefined) temporary.push(values);
      if (turn.isAbandoned) break;
    }
    sent.push({ session: sessions[index]!.number, feeds: own });
  }
  if (turn.isAbandoned) {
    // the caller may have changed them while they were sent
    await process.request({ type: "forget", values: temporary }, task);
    throw new LatentkitError("run.interrupted", "The run was interrupted.");
  }
  const results = await process.run({ stages: sent.slice(0, -1), ...sent.at(-1)!, outputs }, task);
  const surplus = kept.takeSurplus();
  if (surplus.length > 0) await process.request({ type: "forget", values: surplus }, task);
  return Object.fromEntries(results.map(({ name, shape, values }) => [name, Tensor.from(values, shape)]));
}
