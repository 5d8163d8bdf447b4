import type { Device } from "./device.js";
import type { Plan } from "./session-options.js";

/** A network before it is loaded. */
export interface PlannedNetwork {
  readonly parameters: number;
  /** Those of weights that a streamed run has as float32 at once. */
  readonly convertedParameters?: number;
  /** Parameters that a GPU can hold in 16 bits; none where absent. */
  readonly halfParameters?: number;
  /** Those of matrices that stay packed where the provider has a product with them. */
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
/** Folding a network of this size takes half a second. */
const SMALL_PARAMETERS = 2e8;
/** Folding takes as long as it saves in two to three runs. */
const FOLD_FROM_CALLS = 2;

/** A network as a device holds it: where it has no product with packed weights, nothing stays packed. */
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
 * Plan for a network as long as there is memory for it. It does not depend on what is loaded or free: the same run uses
 * the same plan, and so has the same bits. The first row that holds decides:
 *
 * | Case | Plan | Why |
 * |---|---|---|
 * | the graph is a file | fold | its weights cannot be inputs |
 * | the user wishes one | that | |
 * | a GPU with 16-bit floats, and most parameters have at most 16 | keep | half the memory, a third of the load, for a seventh of a call |
 * | another GPU, or other weights | fold | it has no smaller form |
 * | 8-bit floats, at most 1e9 | fold | their conversion takes longer than a run |
 * | at most 2e8 parameters | fold | half a second |
 * | two runs and more | fold | it pays, and its bits do not depend on the number of threads |
 * | one run | stream | reads each weight once, as folding does, and keeps nothing |
 */
export function preferredPlan(
  { parameters, halfParameters = 0, fileBytes, isFixed = false }: PlannedNetwork,
  { calls, device, wish }: { readonly calls: number; readonly device: PlannedDevice; readonly wish?: Plan },
): Plan {
  if (isFixed) return "fold";
  if (wish !== undefined) return wish;
  if (device.isGpu) return device.hasFloat16 && 2 * halfParameters > parameters ? "keep" : "fold";
  if (fileBytes < FLOAT_8_BELOW * parameters && parameters <= MOST_FLOAT_8) return "fold";
  return parameters <= SMALL_PARAMETERS || calls >= FOLD_FROM_CALLS ? "fold" : "stream";
}

/** Whether a folded session fits into that much memory, of which other sessions may be released for it. */
export const fits = (network: PlannedNetwork, bytes: number): boolean => sessionBytes(network, "fold") <= bytes;
