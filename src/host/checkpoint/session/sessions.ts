import type { Tensor } from "../../../tensor/tensor.js";
import type { EncodedGraph } from "../onnx/graph.js";
import type { Target } from "../onnx/target.js";
import type { UnpackPlan } from "../weights/packed/packed-weights.js";
import { type FileState, valuesIn } from "../weights/stored.js";
import type { Device, Plan } from "./options.js";

/** An input or output of a session. */
export interface Port {
  readonly name: string;
  /** Name of its type as in ONNX Runtime: "float32", "int64"; "none" for anything but a tensor. */
  readonly type: string;
  /** Sides; a text names one that is known when the session runs. */
  readonly shape: readonly (number | string)[];
}

/** Inputs and outputs of a session, as its model declares them. */
export interface SessionPorts {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
}

/** A graph, with the file to write before its session is made; or the path of a file that holds one. */
type MadeGraph = (EncodedGraph & { readonly unpack?: UnpackPlan }) | { readonly path: string };

/** A network that a runtime can load. */
export interface SessionSource extends PlannedNetwork {
  /** Equal keys: equal sessions. */
  readonly key: string;
  /** Name for messages: "UNet of sd15.safetensors". */
  readonly label: string;
  /** Bytes that a run takes beside the weights, for each value of an input; unknown if absent. */
  readonly work?: Readonly<Record<string, number>>;
  /** Whether its outputs are inputs of another network. */
  readonly isStage?: boolean;
  /** Paths of the files of its weights, without symbolic links; none if a receipt names them in another way. */
  readonly files?: readonly string[];
  /** Its files as they were when `key` was made: looked at before it is loaded, and before each streamed run. */
  readonly states?: readonly FileState[];
  /** Writes its graph for a plan, in the forms of a target, or returns the path of a file that holds it (`isFixed`). */
  make(plan: Plan, target: Target): MadeGraph | Promise<MadeGraph>;
}

/** Value of an input: a tensor, or whole numbers. */
export type Feed = Tensor | { readonly int64: readonly number[]; readonly shape: readonly number[] };

/** Memory for a run of a network without an estimate. */
const USUAL_WORK = 2 ** 30;

/** Estimate of the bytes that a run takes beside the weights. */
export function workBytes({ work }: SessionSource, feeds: Readonly<Record<string, Pick<Feed, "shape">>> = {}): number {
  if (work === undefined) return USUAL_WORK;
  const valuesOf = (name: string) => valuesIn(feeds[name]?.shape ?? [0]);
  return Object.entries(work).reduce((sum, [name, bytes]) => sum + bytes * valuesOf(name), 0);
}

/** Cells of the largest picture [B, C, h, w] among the inputs; 0 where none is one. */
export const cellsOf = (feeds: Readonly<Record<string, Pick<Feed, "shape">>>): number =>
  Math.max(0, ...Object.values(feeds).map(({ shape }) => (shape.length === 4 ? shape[2]! * shape[3]! : 0)));

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
  /** Bytes that are free before others are released, less all that it takes: negative if it does not fit. */
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

  /** Everything that is held, except the sessions in `needed`. */
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
   * `needed` stay. Folded ones also make room for the pages of its file: pages not in memory are read from the disk in every run.
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

/** A network before it is loaded. */
interface PlannedNetwork {
  readonly parameters: number;
  /** Those of weights that a streamed run has as float32 at once. */
  readonly convertedParameters?: number;
  /** Parameters that a GPU can hold in 16 bits; none if absent. */
  readonly halfParameters?: number;
  /** Those of matrices that stay packed if the provider can multiply with them. */
  readonly packedParameters?: number;
  /** Size of these in the form that it takes. */
  readonly packedBytes?: number;
  /** Size of its weights in their files. */
  readonly fileBytes: number;
  /** Whether its graph is a file too: weights are held as that file says, which counts as folded. */
  readonly isFixed?: boolean;
}

/** Where a network will run. */
export interface PlannedDevice {
  readonly isGpu: boolean;
  /** Whether its memory holds numbers of 16 bits that it can compute with. */
  readonly hasFloat16: boolean;
}

/** Use that a network is loaded for. */
interface PlannedUse {
  /** Runs to expect. */
  readonly calls: number;
  /** Cells of the picture or latent that it takes, as cellsOf counts them. */
  readonly cells: number;
  readonly device: PlannedDevice;
  readonly wish?: Plan;
}

/** Bytes of a parameter in memory. */
const FLOAT_BYTES = 4;
const HALF_BYTES = 2;
/** Folded weights of SD 1.5 took 3.9 GB for 3.44 GB of float32. */
const FOLD_FACTOR = 1.15;
/** A streamed session beside the weights that it converts: the process, the graph and its optimised form. */
const STREAM_BYTES = 2 ** 26;
/** Below two bytes a parameter weights are 8-bit floats, whose conversion takes longer than the rest of a run. */
const FLOAT_8_BELOW = 2;
/** Folding more of them for one run takes minutes, and 4 GB and more that nothing else uses: text encoders of transformers. */
const MOST_FLOAT_8 = 1e9;
/** Folding takes as long as it saves in so many runs: of a picture's latent with fewer cells than 512 x 512 pixels have, or more. */
const FOLD_FROM_CALLS = { small: 20, large: 10 };
const LARGE_CELLS = 64 * 64;

/** A network as a device holds it: nothing stays packed if the device cannot multiply with packed weights. */
export const plannedOn = ({ target }: Pick<Device, "target">, network: PlannedNetwork): PlannedNetwork =>
  target.groups === undefined ? { ...network, packedParameters: 0, packedBytes: 0 } : network;

/** Bytes of a session's own, without the pages of files, which the system takes back as it needs. */
export function sessionBytes(network: PlannedNetwork, plan: Plan): number {
  const { halfParameters = 0, packedParameters = 0, packedBytes = 0, convertedParameters = 0 } = network;
  const parameters = network.parameters - packedParameters;
  switch (plan) {
    case "stream":
      return STREAM_BYTES + convertedParameters * FLOAT_BYTES + packedBytes;
    case "keep":
      return (parameters - halfParameters) * FLOAT_BYTES * FOLD_FACTOR + halfParameters * HALF_BYTES + packedBytes;
    case "fold":
      return parameters * FLOAT_BYTES * FOLD_FACTOR + packedBytes;
  }
}

/**
 * Plan for a network as long as there is memory for it. It does not depend on loaded networks or free memory: the same run uses
 * the same plan, and so has the same bits. The first row that holds decides:
 *
 * | Case | Plan | Why |
 * |---|---|---|
 * | the graph is a file | fold | its weights cannot be inputs |
 * | the user wishes one | that | |
 * | a GPU with 16-bit floats, and most parameters have at most 16 | keep | half the memory, a third of the load, for a seventh of a call |
 * | another GPU, or other weights | fold | it has no smaller form |
 * | 8-bit floats, at most 1e9 | fold | their conversion takes longer than a run |
 * | 20 runs and more, 10 of a picture of 512 x 512 and more | fold | it takes as long as it saves |
 * | fewer | stream | the first run starts at once, in a third of the memory |
 */
export function preferredPlan(
  { parameters, halfParameters = 0, fileBytes, isFixed = false }: PlannedNetwork,
  { calls, cells, device, wish }: PlannedUse,
): Plan {
  if (isFixed) return "fold";
  if (wish !== undefined) return wish;
  if (device.isGpu) return device.hasFloat16 && 2 * halfParameters > parameters ? "keep" : "fold";
  if (fileBytes < FLOAT_8_BELOW * parameters && parameters <= MOST_FLOAT_8) return "fold";
  return calls >= FOLD_FROM_CALLS[cells < LARGE_CELLS ? "small" : "large"] ? "fold" : "stream";
}

/** Whether a folded session fits into that much memory, counting what other sessions can release. */
export const fits = (network: PlannedNetwork, bytes: number): boolean => sessionBytes(network, "fold") <= bytes;
