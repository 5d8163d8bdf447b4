import type { MessagePort } from "node:worker_threads";
import { interruption, onAbort } from "../../../../base/abort.js";
import { LatentkitError } from "../../../../base/errors.js";
import { deserializeError, serializeError } from "../../../../base/sent-error.js";
import { Tensor } from "../../../../tensor/tensor.js";
import type { FileHashes } from "../../files/file-hashes.js";
import type { CallOptions, Feeds, OwnRuntime, RunResult, Stage } from "../../session/runtime.js";
import type { SessionSource } from "../../session/sessions.js";
import { type CallMemo, keyOfCall } from "./call-memo.js";
import type {
  FromRuntime,
  Outcome,
  Question,
  RunCall,
  SentSource,
  SentStage,
  ThreadCall,
  ThreadReply,
  ToRuntime,
} from "./messages.js";

/** The parts of a runtime's thread that all its ports share. */
export interface SharedParts {
  readonly runtime: OwnRuntime;
  readonly hashes: Pick<FileHashes, "sha256">;
  readonly memo: CallMemo;
}

/** Number of a call, and of a stage of it. */
type Position = readonly [call: number, stage: number];

type Asked = Question extends infer Each ? (Each extends unknown ? Omit<Each, "stage"> : never) : never;

/** Serves one port: calls of one thread that renders. When it closes, its calls are given up and its values forgotten. */
export class ServedPort {
  readonly #calls = new Map<number, AbortController>();
  readonly #questions = new Map<number, (reply: ThreadReply) => void>();
  #nextQuestion = 0;
  readonly #port: MessagePort;
  readonly #number: number;
  readonly #shared: SharedParts;
  readonly #kept: KeptInputs;

  /** `number` distinguishes its runs from those of other ports. */
  constructor(port: MessagePort, number: number, shared: SharedParts, kept = new KeptInputs()) {
    this.#port = port;
    this.#number = number;
    this.#shared = shared;
    this.#kept = kept;
    port.on("message", (message: ToRuntime) => this.#receive(message));
    port.on("close", () => this.#close());
  }

  #receive(message: ToRuntime): void {
    switch (message.type) {
      case "call":
        void this.#serve(message.id, message.call);
        break;
      case "abort":
        this.#calls.get(message.id)?.abort();
        break;
      case "reply":
        this.#questions.get(message.question)?.(message.reply);
        break;
      case "over":
        this.#shared.runtime.forget(this.#nameOf(message.run));
        break;
    }
  }

  async #serve(id: number, call: ThreadCall): Promise<void> {
    const abort = new AbortController();
    this.#calls.set(id, abort);
    const moved: ArrayBuffer[] = [];
    const outcome = await this.#outcome(id, call, abort.signal, moved).catch(
      (error): Outcome => ({ error: serializeError(error) }),
    );
    // the caller of an abandoned call does not wait
    if (this.#calls.delete(id) && !abort.signal.aborted) this.#send({ type: "outcome", id, outcome }, moved);
  }

  async #outcome(id: number, call: ThreadCall, signal: AbortSignal, moved: ArrayBuffer[]): Promise<Outcome> {
    const { runtime, hashes } = this.#shared;
    if (call.type === "hash") return { hash: await hashes.sha256(call.path, signal) };
    const place = { ...call.place, run: this.#nameOf(call.place.run) };
    const onLoad: CallOptions["onLoad"] = (label, state, memory) =>
      this.#send({ type: "network", id, label, state, memory });
    const options = { signal, calls: call.calls, place, onLoad };
    if (call.type === "ports")
      return { ports: await runtime.ports(this.#source([id, 0], call.source, signal), options) };
    const { outputs, networks } = await this.#run(id, call, options);
    const sentOutputs = Object.entries(outputs).map(([name, { data, shape }]) => {
      // a result that others may have stays here
      const values = call.isShared ? data.slice() : data;
      moved.push(values.buffer as ArrayBuffer);
      return [name, { shape, values }] as const;
    });
    const { version, device, threads } = runtime.describe();
    return { outputs: Object.fromEntries(sentOutputs), networks, facts: { version, device, threads } };
  }

  async #run(id: number, call: RunCall, common: CallOptions & { readonly signal: AbortSignal }): Promise<RunResult> {
    const { runtime, memo } = this.#shared;
    const stages: Stage[] = [];
    for (const [index, stage] of call.stages.entries())
      stages.push(await this.#stage([id, index], stage, common.signal));
    const { source, feeds, keep } = stages.pop()!;
    const options = { ...common, outputs: call.outputs, keep, stages };
    const make = () => runtime.call(source, feeds, options);
    // their key does not cover values of stages
    const isShared = call.isShared && stages.length === 0;
    return isShared ? memo.get(keyOfCall(source.key, feeds, options), common.signal, make) : make();
  }

  async #stage(at: Position, stage: SentStage, signal: AbortSignal): Promise<Stage> {
    const feeds: Record<string, Feeds[string]> = {};
    const keep: string[] = [];
    for (const [input, feed] of Object.entries(stage.feeds)) {
      if ("int64" in feed) feeds[input] = feed;
      else if (feed.kept === undefined) feeds[input] = Tensor.from(feed.values!, feed.shape);
      else {
        const known = feed.values === undefined ? this.#kept.use(feed.kept) : undefined;
        feeds[input] = known ?? this.#keep(feed.kept, await this.#valuesOf(at, input, feed, signal), feed.shape);
        keep.push(input);
      }
    }
    return { source: this.#source(at, stage.source, signal), feeds, keep };
  }

  #keep(kept: number, values: Float32Array, shape: readonly number[]): Tensor {
    const tensor = Tensor.from(values, shape);
    this.#shared.runtime.drop(this.#kept.add(kept, tensor));
    return tensor;
  }

  async #valuesOf(
    at: Position,
    input: string,
    feed: { values?: Float32Array },
    signal: AbortSignal,
  ): Promise<Float32Array> {
    if (feed.values !== undefined) return feed.values;
    const reply = await this.#ask(at, { type: "values", input }, signal);
    if (!("values" in reply)) throw unexpected();
    return reply.values;
  }

  #source(at: Position, source: SentSource, signal: AbortSignal): SessionSource {
    return {
      ...source,
      make: async (plan, target) => {
        const reply = await this.#ask(at, { type: "graph", plan, target }, signal);
        if (!("graph" in reply)) throw unexpected();
        return reply.graph;
      },
    };
  }

  /** Asks the thread that made a call. Rejects when the call is given up: its thread may be gone. */
  #ask([id, stage]: Position, about: Asked, signal: AbortSignal): Promise<Exclude<ThreadReply, { error: unknown }>> {
    const question = this.#nextQuestion++;
    return new Promise((resolve, reject) => {
      const leave = onAbort(signal, () => {
        this.#questions.delete(question);
        reject(interruption(signal, "The run was interrupted."));
      });
      if (signal.aborted) return;
      this.#questions.set(question, (reply) => {
        this.#questions.delete(question);
        leave();
        if ("error" in reply) reject(deserializeError(reply.error));
        else resolve(reply);
      });
      this.#send({ type: "question", id, question, asked: { ...about, stage } });
    });
  }

  #nameOf(run: string): string {
    return `${this.#number} ${run}`;
  }

  #close(): void {
    for (const abort of this.#calls.values()) abort.abort();
    this.#shared.runtime.drop(this.#kept.clear());
  }

  #send(message: FromRuntime, moved: readonly ArrayBuffer[] = []): void {
    this.#port.postMessage(message, moved);
  }
}

const unexpected = (): LatentkitError =>
  new LatentkitError("runtime.failed", "ONNX Runtime: a rendering thread answered a different question.");

/** Bytes of one thread's values: the conditionings of some runs. */
const MOST_BYTES = 2 ** 26;

/**
 * Tensors of one thread that its calls name by number, in order of last use. One that is gone is asked for again.
 *
 * @internal
 */
export class KeptInputs {
  readonly #tensors = new Map<number, Tensor>();
  #bytes = 0;
  readonly #mostBytes: number;

  constructor(mostBytes = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /** The tensor of a number, which counts as a use. */
  use(number: number): Tensor | undefined {
    const tensor = this.#tensors.get(number);
    if (tensor === undefined) return undefined;
    this.#tensors.delete(number);
    this.#tensors.set(number, tensor);
    return tensor;
  }

  /** Adds a tensor and returns those that are gone for it: its former one, and the least recently used beyond the bound. */
  add(number: number, tensor: Tensor): Tensor[] {
    const gone: Tensor[] = [];
    const former = this.use(number);
    if (former !== undefined) {
      this.#bytes -= former.data.byteLength;
      gone.push(former);
    }
    this.#tensors.set(number, tensor);
    this.#bytes += tensor.data.byteLength;
    for (const [oldest, other] of this.#tensors) {
      if (this.#bytes <= this.#mostBytes || other === tensor) break;
      this.#tensors.delete(oldest);
      this.#bytes -= other.data.byteLength;
      gone.push(other);
    }
    return gone;
  }

  /** Removes all and returns them. */
  clear(): Tensor[] {
    const all = [...this.#tensors.values()];
    this.#tensors.clear();
    this.#bytes = 0;
    return all;
  }
}
