import { AsyncLocalStorage } from "node:async_hooks";
import type { MessagePort } from "node:worker_threads";
import { onAbort } from "../../../../base/abort.js";
import { LatentkitError } from "../../../../base/errors.js";
import { deserializeError, serializeError } from "../../../../base/sent-error.js";
import { Tensor } from "../../../../tensor/tensor.js";
import {
  type CallOptions,
  type Feeds,
  type LoadOptions,
  type Place,
  RunNetworks,
  type Runtime,
  type RuntimeFacts,
  type Stage,
} from "../../session/runtime.js";
import type { SessionPorts, SessionSource } from "../../session/sessions.js";
import type {
  FromRuntime,
  NetworkReport,
  Outcome,
  Question,
  SentInput,
  SentSource,
  SentStage,
  ThreadCall,
  ThreadReply,
  ToRuntime,
} from "./messages.js";

/** A call that waits for its outcome. */
interface Waiting {
  readonly settle: (outcome: Outcome) => void;
  readonly stages?: readonly Stage[];
  readonly onLoad?: OnLoad;
}

type OnLoad = (report: NetworkReport) => void;

/** A run of this thread. */
export interface PlacedRun {
  readonly place: Place;
  readonly onLoad?: OnLoad;
}

const UNNAMED: Place = { run: "", rank: 0 };
const LOST = { error: { code: "runtime.failed", message: "The thread of ONNX Runtime has ended." } } as const;

// decisions: Threads share one runtime and take turns
/** The runtime of another thread, at the other end of a port. Calls that are made within a run take turns as that run. */
export class RemoteRuntime implements Runtime {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, Waiting>();
  readonly #runs = new AsyncLocalStorage<PlacedRun>();
  readonly #networks = new RunNetworks();
  /** Numbers of tensors whose values were sent to be kept. */
  readonly #kept = new WeakMap<Tensor, number>();
  #facts: Omit<RuntimeFacts, "networks"> = { threads: 0 };
  #nextId = 0;
  #nextKept = 0;
  #isClosed = false;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on("message", (message: FromRuntime) => {
      const waiting = this.#waiting.get(message.id);
      if (message.type === "outcome") waiting?.settle(message.outcome);
      else if (message.type === "network") waiting?.onLoad?.(message);
      // a call that was given up has its inputs no more
      else if (waiting !== undefined) void this.#reply(waiting, message.question, message.asked);
    });
    port.on("close", () => {
      this.#isClosed = true;
      for (const { settle } of [...this.#waiting.values()]) settle(LOST);
    });
  }

  /** Does the work of a run, whose calls take turns as its place says; `onLoad` receives what they load and release. */
  async within<T>(run: PlacedRun, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#runs.run(run, work);
    } finally {
      this.#send({ type: "over", run: run.place.run });
    }
  }

  async run(source: SessionSource, feeds: Feeds, options: CallOptions = {}): Promise<Record<string, Tensor>> {
    const { signal, calls, outputs: names, isShared, place = this.#place } = options;
    signal?.throwIfAborted();
    const moved: ArrayBuffer[] = [];
    const stages = [...(options.stages ?? []), { source, feeds, keep: options.keep }];
    const sentStages = stages.map((stage) => this.#sent(stage, moved));
    const call = { type: "run", calls, outputs: names, isShared, place, stages: sentStages } as const;
    const outcome = await this.#call(call, { stages, signal, moved });
    if (!("outputs" in outcome)) throw unexpected();
    this.#facts = outcome.facts;
    for (const network of outcome.networks) this.#networks.add(network);
    const outputs = Object.entries(outcome.outputs);
    return Object.fromEntries(outputs.map(([name, { values, shape }]) => [name, Tensor.from(values, shape)]));
  }

  async ports(source: SessionSource, options: LoadOptions = {}): Promise<SessionPorts> {
    const { signal, calls, place = this.#place } = options;
    const stages = [{ source, feeds: {} }];
    const outcome = await this.#call({ type: "ports", calls, place, source: plain(source) }, { stages, signal });
    if (!("ports" in outcome)) throw unexpected();
    return outcome.ports;
  }

  /** SHA-256 of a file, as `FileHashes` computes it: once for all threads. */
  async sha256(path: string, signal?: AbortSignal): Promise<string> {
    const outcome = await this.#call({ type: "hash", path }, { signal });
    if (!("hash" in outcome)) throw unexpected();
    return outcome.hash;
  }

  describe(): RuntimeFacts {
    return { ...this.#facts, networks: this.#networks.all };
  }

  get #place(): Place {
    return this.#runs.getStore()?.place ?? UNNAMED;
  }

  #sent({ source, feeds, keep = [] }: Stage, moved: ArrayBuffer[]): SentStage {
    const inputs = Object.entries(feeds).map(([name, feed]) => [name, this.#input(feed, keep.includes(name), moved)]);
    return { source: plain(source), feeds: Object.fromEntries(inputs) as SentStage["feeds"] };
  }

  #input(feed: Feeds[string], isKept: boolean, moved: ArrayBuffer[]): SentInput {
    const { shape } = feed;
    if (!(feed instanceof Tensor)) return { int64: feed.int64, shape };
    const known = isKept ? this.#kept.get(feed) : undefined;
    if (known !== undefined) return { kept: known, shape };
    // a copy: the thread keeps using its own
    const values = feed.data.slice();
    moved.push(values.buffer);
    if (!isKept) return { values, shape };
    const kept = this.#nextKept++;
    this.#kept.set(feed, kept);
    return { values, kept, shape };
  }

  #call(
    call: ThreadCall,
    {
      signal,
      moved = [],
      ...facts
    }: Omit<Waiting, "settle"> & { signal?: AbortSignal; moved?: readonly ArrayBuffer[] },
  ): Promise<Exclude<Outcome, { error: unknown }>> {
    const id = this.#nextId++;
    const onLoad = this.#runs.getStore()?.onLoad;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const end = () => {
        this.#waiting.delete(id);
        leave();
      };
      const settle = (outcome: Outcome) => {
        end();
        if ("error" in outcome) reject(deserializeError(outcome.error));
        else resolve(outcome);
      };
      let leave = () => {};
      this.#waiting.set(id, { ...facts, settle, onLoad });
      if (this.#isClosed) return settle(LOST);
      this.#send({ type: "call", id, call }, moved);
      leave = onAbort(signal, () => {
        end();
        this.#send({ type: "abort", id });
        reject(signal?.reason);
      });
    });
  }

  async #reply({ stages }: Waiting, question: number, asked: Question): Promise<void> {
    try {
      const { source, feeds } = stages![asked.stage]!;
      if (asked.type === "graph") {
        const graph = await source.make(asked.plan, asked.target);
        this.#answer(question, { graph });
        return;
      }
      const values = (feeds[asked.input] as Tensor).data.slice();
      this.#answer(question, { values }, [values.buffer]);
    } catch (error) {
      this.#answer(question, { error: serializeError(error) });
    }
  }

  #answer(question: number, reply: ThreadReply, moved: readonly ArrayBuffer[] = []): void {
    this.#send({ type: "reply", question, reply }, moved);
  }

  #send(message: ToRuntime, moved: readonly ArrayBuffer[] = []): void {
    this.#port.postMessage(message, moved);
  }
}

const plain = ({ make: _, ...source }: SessionSource): SentSource => source;

const unexpected = (): LatentkitError =>
  new LatentkitError("runtime.failed", "The thread of ONNX Runtime answered a different call.");
