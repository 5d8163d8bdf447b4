import type { Tensor } from "../../../tensor/tensor.js";
import type { EncodedGraph } from "../onnx/graph.js";
import type { Target } from "../onnx/target.js";
import type { UnpackPlan } from "../weights/packed/packed-weights.js";
import type { FileState } from "../weights/stored.js";
import { type PlannedNetwork, sessionBytes } from "./plan.js";
import type { SessionPorts } from "./protocol.js";
import type { Plan } from "./session-options.js";

/** A graph, with what to write before a session of it is made; or the path of a file that holds one. */
type MadeGraph = (EncodedGraph & { readonly unpack?: UnpackPlan }) | { readonly path: string };

/** A network that a runtime can load. */
export interface SessionSource extends PlannedNetwork {
  /** Equal keys: equal sessions. */
  readonly key: string;
  /** Name for messages: "UNet of sd15.safetensors". */
  readonly label: string;
  /** Bytes that a run takes beside the weights, for each value of an input; unknown where absent. */
  readonly work?: Readonly<Record<string, number>>;
  /** Whether its outputs are inputs of another network. */
  readonly isStage?: boolean;
  /** Paths of the files of its weights, without symbolic links; none where a receipt names them in another way. */
  readonly files?: readonly string[];
  /** Its files as they were when `key` was made: looked at before it is loaded, and before each streamed run. */
  readonly states?: readonly FileState[];
  /** Writes its graph for a plan, in the forms of a target, or returns the path of a file that holds it (`isFixed`). */
  make(plan: Plan, target: Target): MadeGraph | Promise<MadeGraph>;
}

/** Value of an input: a tensor, or whole numbers. */
export type Feed = Tensor | { readonly int64: readonly number[]; readonly shape: readonly number[] };

/** Memory for a run of a network that does not say what it takes. */
const USUAL_WORK = 2 ** 30;

/** Estimate of the bytes that a run takes beside the weights. */
export function workBytes({ work }: SessionSource, feeds: Readonly<Record<string, Pick<Feed, "shape">>> = {}): number {
  if (work === undefined) return USUAL_WORK;
  const valuesOf = (name: string) => feeds[name]?.shape.reduce((product, side) => product * side, 1) ?? 0;
  return Object.entries(work).reduce((sum, [name, bytes]) => sum + bytes * valuesOf(name), 0);
}

/** A session that is about to be made. */
interface NextSession {
  readonly number: number;
  readonly key: string;
  readonly label: string;
  readonly plan: Plan;
  /** Estimate of its own memory. */
  readonly bytes: number;
}

/**
 * Sessions that stay loaded at most: a picture takes five, and a LoRA at a new strength makes two that may never come again,
 * whose own memory, 20 MB even of tiny networks, is not in the estimate.
 */
const MOST_SESSIONS = 16;

/** A session in the child process. */
export interface LoadedSession extends NextSession {
  readonly ports: SessionPorts;
  /** Bytes of its largest run, which its arena keeps for the next one. */
  arenaBytes: number;
}

/** Room for a session that is about to be made or run. */
export interface Room {
  /** Bytes for the weights of all sessions. */
  readonly weights: number;
  /** Bytes that are free before others are released, less all that it takes: negative where it does not fit. */
  readonly free: number;
}

/** Sessions in one child process, in order of last use. */
export class LoadedSessions {
  readonly #byKey = new Map<string, LoadedSession>();
  #nextNumber = 0;

  /** Least recently used first. */
  get all(): readonly LoadedSession[] {
    return [...this.#byKey.values()];
  }

  /** All that is held, but for the sessions in `needed`. */
  heldBytes(needed: readonly LoadedSession[] = []): number {
    return this.all.reduce((sum, each) => sum + (needed.includes(each) ? 0 : each.bytes + each.arenaBytes), 0);
  }

  get bytes(): number {
    return this.all.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Finds a session and counts it as used. */
  use(key: string, plan: Plan): LoadedSession | undefined {
    const id = idOf(key, plan);
    const session = this.#byKey.get(id);
    if (session === undefined) return undefined;
    this.#byKey.delete(id);
    this.#byKey.set(id, session);
    return session;
  }

  /** Session for a source, which is not loaded yet and will take `bytes`. */
  next(source: SessionSource, plan: Plan, bytes = sessionBytes(source, plan)): NextSession {
    const { key, label } = source;
    return { number: this.#nextNumber++, key, label, plan, bytes };
  }

  /**
   * Sessions to release, least recently used first, so that there is room for `next`, or for a run of loaded ones; those in
   * `needed` stay. Folded ones go for the pages of its file too: what is not in memory is read from the disk in every run.
   */
  surplus(
    room: Room,
    needed: readonly LoadedSession[] = [],
    next?: { readonly bytes: number; readonly pages?: number },
  ): LoadedSession[] {
    const { bytes = 0, pages = 0 } = next ?? {};
    const surplus: LoadedSession[] = [];
    let { free } = room;
    let weights = this.bytes + bytes;
    for (const session of this.#byKey.values()) {
      const isTooMany = next !== undefined && this.#byKey.size - surplus.length >= MOST_SESSIONS;
      const isFull = weights > room.weights || free < 0 || isTooMany;
      const isForPages = free < pages && session.plan !== "stream";
      if (needed.includes(session) || !(isFull || isForPages)) continue;
      surplus.push(session);
      weights -= session.bytes;
      free += session.bytes + session.arenaBytes;
    }
    return surplus;
  }

  add(session: LoadedSession): void {
    this.#byKey.set(idOf(session.key, session.plan), session);
  }

  remove({ key, plan }: LoadedSession): void {
    this.#byKey.delete(idOf(key, plan));
  }
}

const idOf = (key: string, plan: Plan): string => `${plan} ${key}`;
