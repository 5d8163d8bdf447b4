import { LatentkitError } from "../../../base/errors.js";
import { checkOptions } from "../../../base/options.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { withUnpacked } from "../weights/packed/unpack.js";
import { requireUnchanged } from "../weights/stored.js";
import { CallQueue, type Turn } from "./call-queue.js";
import { type Device, hasFloat16, isGpu } from "./device.js";
import { ChosenOnce, factsOf } from "./devices/chosen-once.js";
import { GpuFailures } from "./gpu-failures.js";
import { LoadedProcess } from "./loaded-process.js";
import { coreCount, freeMemory } from "./machine.js";
import { fits, plannedOn, preferredPlan, sessionBytes } from "./plan.js";
import type { SessionPorts } from "./protocol.js";
import type {
  CallOptions,
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
import { type Plan, sessionOptions } from "./session-options.js";
import type { LoadedSession, SessionSource } from "./sessions.js";

// decision 220
/** Makes a runtime. Nothing is started or loaded before the first run. Throws usage.invalid. */
export function createRuntime(options: RuntimeOptions = {}): OwnRuntime {
  checkOptions("createRuntime", options, RUNTIME_RULES);
  return new ChildRuntime(options);
}

/** Memory for the activations of a run. */
const RESERVED_BYTES = 2 ** 30;

class ChildRuntime implements OwnRuntime {
  readonly #options: RuntimeOptions;
  readonly #threads: number;
  readonly #queue = new CallQueue({
    onStuck: () => this.#loaded?.process.kill(),
    onWanted: (isWanted) => {
      this.#holdProcess();
      if (!isWanted) void this.#device.cut();
    },
  });
  readonly #device: ChosenOnce;
  readonly #failures: GpuFailures;
  #version: string | undefined;
  #loaded: LoadedProcess | undefined;
  readonly #networks = new RunNetworks();

  constructor(options: RuntimeOptions) {
    // a plan of the CPU alone asks for it
    const { threads = coreCount(), plan, device = plan === "stream" ? "cpu" : undefined } = options;
    this.#options = options;
    this.#threads = threads;
    this.#device = new ChosenOnce({ ...options, device });
    const current = () => ({ device: this.#device.known, loaded: this.#loaded });
    this.#failures = new GpuFailures({ current, replace: (loaded) => this.#replace(loaded) });
  }

  async run(source: SessionSource, feeds: Feeds, options?: CallOptions): Promise<Record<string, Tensor>> {
    return (await this.call(source, feeds, options)).outputs;
  }

  call(source: SessionSource, feeds: Feeds, options: CallOptions = {}): Promise<RunResult> {
    const { stages = [], calls } = options;
    const all: Stage[] = [...stages, { source, feeds, keep: options.keep }];
    const work = (turn: Turn) =>
      this.#failures.mend(source, turn, async () => {
        const sources = all.map((stage) => stage.source);
        const { loaded, sessions } = await this.#load(sources, turn, calls);
        const outputs = await loaded.call(sessions, all, options.outputs, turn);
        return { outputs, networks: all.map((stage, index) => this.#remember(stage.source, sessions[index]!)) };
      });
    return this.#queue.add(options.signal, work, options.place);
  }

  ports(source: SessionSource, { signal, calls, place }: LoadOptions = {}): Promise<SessionPorts> {
    const work = (turn: Turn) =>
      this.#failures.mend(source, turn, async () => (await this.#load([source], turn, calls)).sessions[0]!.ports);
    return this.#queue.add(signal, work, place);
  }

  start(): void {
    const work = async (turn: Turn) => {
      await this.#device.get();
      await this.#live(turn);
    };
    this.#queue.add(undefined, work).catch(() => {});
  }

  forget(run: string): void {
    this.#queue.forget(run);
  }

  drop(tensors: Iterable<Tensor>): void {
    for (const tensor of tensors) this.#loaded?.kept.drop(tensor);
  }

  async #load(sources: readonly SessionSource[], turn: Turn, calls = 1) {
    const device = await this.#device.get();
    const loaded = await this.#live(turn);
    const sessions: LoadedSession[] = [];
    for (const source of sources) sessions.push(await this.#session(loaded, device, source, calls, sessions));
    return { loaded, sessions };
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
    await this.#device.cut();
    // a program that has nothing else to do waits for the end too
    process?.ref();
    process?.kill();
    await process?.ended;
  }

  describe(): RuntimeState {
    const loaded = this.#loaded?.process.isAlive ? this.#loaded : undefined;
    const device = this.#device.known;
    return {
      version: this.#version,
      device: device && factsOf(device),
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

  /** The child process, a new one where it has died since the last run. */
  async #live(turn: Turn): Promise<LoadedProcess> {
    const current = this.#loaded;
    if (current !== undefined) {
      try {
        await current.process.request({ type: "ping" }, "Waiting for ONNX Runtime");
        return current;
      } catch (error) {
        if (current.process.isAlive) throw error;
      }
    }
    // a process that starts after close() would never be ended
    if (turn.isAbandoned) throw new LatentkitError("run.interrupted", "The run was interrupted.");
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
    if (isOnGpu) return Math.min(memory, this.#failures.mostBytes);
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
    const pages = plan === "stream" && this.#options.memory === undefined ? source.fileBytes : 0;
    for (const surplus of sessions.surplus({ bytes: next.bytes, pages }, budget, needed)) {
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
