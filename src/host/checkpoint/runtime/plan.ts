import type { Plan } from "./session-options.js";

/** A network before it is loaded. */
export interface PlannedNetwork {
  readonly parameters: number;
  /** Size of its weights in their files. */
  readonly fileBytes: number;
  /** Whether its graph is a file too: weights are held as that file says, which counts as folded. */
  readonly isFixed?: boolean;
}

/** Bytes of a parameter in memory. */
const FLOAT_BYTES = 4;
/** Folded weights of SD 1.5 took 3.9 GB for 3.44 GB of float32. */
const FOLD_FACTOR = 1.15;
/** A streamed session: its graph, optimised, and the largest weights of a run. */
const STREAM_BYTES = 2 ** 27;
/** Below two bytes a parameter weights are 8-bit floats, whose conversion takes longer than the rest of a run. */
const FLOAT_8_BELOW = 2;
/** Folding a network of this size takes half a second. */
const SMALL_PARAMETERS = 2e8;
/** Folding takes as long as it saves in two to three runs. */
const FOLD_FROM_CALLS = 2;

/** Bytes of a session's own, without the pages of files, which the system takes back as it needs. */
export function sessionBytes({ parameters }: PlannedNetwork, plan: Plan): number {
  return plan === "fold" ? parameters * FLOAT_BYTES * FOLD_FACTOR : STREAM_BYTES;
}

/**
 * Plan for a network as long as there is memory for it. It does not depend on what is loaded or free: the same run uses
 * the same plan, and so has the same bits. The first row that holds decides:
 *
 * | Case | Plan | Why |
 * |---|---|---|
 * | the graph is a file | fold | its weights cannot be inputs |
 * | the user wishes one | that | |
 * | a GPU runs it | fold | its memory holds the weights anyway |
 * | 8-bit floats | fold | their conversion takes longer than a run |
 * | at most 2e8 parameters | fold | half a second |
 * | two runs and more | fold | it pays, and its bits do not depend on the number of threads |
 * | one run | stream | reads each weight once, as folding does, and keeps nothing |
 */
export function preferredPlan(
  { parameters, fileBytes, isFixed = false }: PlannedNetwork,
  { calls, isGpu, wish }: { readonly calls: number; readonly isGpu: boolean; readonly wish?: Plan },
): Plan {
  if (isFixed) return "fold";
  if (wish !== undefined) return wish;
  if (isGpu || fileBytes < FLOAT_8_BELOW * parameters) return "fold";
  return parameters <= SMALL_PARAMETERS || calls >= FOLD_FROM_CALLS ? "fold" : "stream";
}

/** Whether a folded session fits into that much memory, of which other sessions may be released for it. */
export const fits = (network: PlannedNetwork, bytes: number): boolean => sessionBytes(network, "fold") <= bytes;
