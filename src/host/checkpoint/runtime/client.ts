import { LatentkitError } from "../../../base/errors.js";
import { checkOptions } from "../../../base/options.js";
import type { Tensor } from "../../../tensor/tensor.js";
import {
  type CallOptions,
  type Feeds,
  type LoadOptions,
  type OwnRuntime,
  RUNTIME_RULES,
  type RunNetwork,
  RunNetworks,
  type RunResult,
  type RuntimeOptions,
  type RuntimeState,
  type Stage,
} from "../session/runtime.js";
import { cellsOf, type LoadedSession, type SessionPorts, type SessionSource, workBytes } from "../session/sessions.js";
import { CallQueue, type Turn } from "./call-queue.js";
import { ChosenOnce, factsOf } from "./devices/choice.js";
import { GpuFailures } from "./gpu-failures.js";
import { LoadedProcess } from "./loaded-process.js";
import { coreCount } from "./machine.js";
import { type Load, type OnLoad, SessionLoader } from "./session-loader.js";

// decisions: Networks run in a child process
/** Makes a runtime. Nothing is started or loaded before the first run. Throws usage.invalid. */
export function createRuntime(options: RuntimeOptions = {}): OwnRuntime {
  checkOptions("createRuntime", options, RUNTIME_RULES);
  return new ChildRuntime(options);
}

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
  readonly #loader: SessionLoader;
  #version: string | undefined;
  #loaded: LoadedProcess | undefined;
  readonly #networks = new RunNetworks();

  constructor(options: RuntimeOptions) {
    // only a plan of the CPU needs it
    const { threads = coreCount(), memory, plan, device = plan === "stream" ? "cpu" : undefined } = options;
    this.#options = options;
    this.#threads = threads;
    this.#device = new ChosenOnce({ ...options, device });
    const current = () => ({ device: this.#device.known, loaded: this.#loaded });
    this.#failures = new GpuFailures({ current, replace: (loaded) => this.#replace(loaded) });
    const mostBytes = () => this.#failures.mostBytes;
    this.#loader = new SessionLoader({ plan, memory, threads, mostBytes });
  }

  async run(source: SessionSource, feeds: Feeds, options?: CallOptions): Promise<Record<string, Tensor>> {
    return (await this.call(source, feeds, options)).outputs;
  }

  call(source: SessionSource, feeds: Feeds, options: CallOptions = {}): Promise<RunResult> {
    const { stages = [], calls } = options;
    const onLoad = this.#teller(options.onLoad);
    const all: Stage[] = [...stages, { source, feeds, keep: options.keep }];
    const work = (turn: Turn) =>
      this.#mend(source, turn, async () => {
        const sources = all.map((stage) => stage.source);
        const work = Math.max(...all.map((stage) => workBytes(stage.source, stage.feeds)));
        const { device, loaded, sessions } = await this.#load(sources, turn, {
          calls,
          cells: cellsOf(feeds),
          work,
          onLoad,
        });
        await this.#loader.makeRoom({ loaded, device, needed: sessions, work, onLoad });
        const outputs = await loaded.call(sessions, all, options.outputs, turn);
        for (const session of sessions) session.arenaBytes = Math.max(session.arenaBytes, work);
        return { outputs, networks: all.map((stage, index) => this.#remember(stage.source, sessions[index]!)) };
      });
    return this.#queue.add(options.signal, work, options.place);
  }

  ports(source: SessionSource, { signal, calls, place, ...options }: LoadOptions = {}): Promise<SessionPorts> {
    const load = { calls, cells: 0, work: workBytes(source), onLoad: this.#teller(options.onLoad) };
    const work = (turn: Turn) =>
      this.#mend(source, turn, async () => (await this.#load([source], turn, load)).sessions[0]!.ports);
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

  async #load(sources: readonly SessionSource[], turn: Turn, load: Load) {
    const device = await this.#device.get();
    const loaded = await this.#live(turn);
    const sessions: LoadedSession[] = [];
    for (const source of sources)
      sessions.push(await this.#loader.session({ loaded, device, needed: sessions, ...load }, source));
    return { device, loaded, sessions };
  }

  /** Reports loads and releases to the owner of this runtime and the maker of a call. */
  #teller(onLoad: OnLoad | undefined): OnLoad {
    return (...report) => {
      this.#options.onLoad?.(...report);
      onLoad?.(...report);
    };
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
    // a program with nothing else to do waits for the end too
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

  #mend<T>(source: SessionSource, turn: Turn, work: () => Promise<T>): Promise<T> {
    return this.#failures.mend(source, turn, () => this.#inProcess(turn, work));
  }

  /** Does work in the child process. If that had died before it began any of it, does it again in a new one. */
  async #inProcess<T>(turn: Turn, work: () => Promise<T>): Promise<T> {
    const loaded = this.#loaded;
    try {
      return await work();
    } catch (error) {
      // one that was started for this work is not tried again
      const isSame = loaded !== undefined && loaded === this.#loaded;
      const wasGone = isSame && !loaded.process.isAlive && !loaded.process.hasBegun;
      if (!wasGone || turn.isAbandoned) throw error;
      return work();
    }
  }

  /** The child process, a new one if it has ended. */
  async #live(turn: Turn): Promise<LoadedProcess> {
    if (this.#loaded?.process.isAlive) return this.#loaded;
    // a process that starts after close() would never be ended
    if (turn.isAbandoned) throw new LatentkitError("run.interrupted", "The run was interrupted.");
    const loaded = new LoadedProcess();
    this.#loaded = loaded;
    this.#holdProcess();
    const { version } = await loaded.process.ready;
    this.#version = version;
    return loaded;
  }

  /** Lets the child process keep this one alive while a run is awaited. */
  #holdProcess(): void {
    if (this.#queue.isWanted) this.#loaded?.process.ref();
    else this.#loaded?.process.unref();
  }
}
