import {
  CHECKED_LATER,
  FILES,
  FLAG,
  FOLDER,
  NAMES,
  type OptionRules,
  type Rule,
  TEXT,
  TEXTS,
  VALUES,
} from "../base/options.js";
import type { FilesByName } from "../io/files/input-text.js";
import type { NodeConfig } from "../nodes/define.js";
import type { DeviceChoice } from "../tensor/device/device.js";
import type { ClassAliases } from "./parse.js";

/** One run of a graph as plain data: with the graph and its `Surroundings` all that the executor needs. */
export interface GraphJob {
  /** Ids of the nodes to compute; the graph's output nodes where absent. */
  targets?: readonly string[];
  /** Restricts the graph's output nodes to these, as ComfyUI's clients ask; null: all of them. */
  partialExecutionTargets?: readonly string[] | null;
  /** Folder that files are written to; ./out where absent. */
  outputDir?: string;
  /** Folder that input files are read from; `input` beside the graph's file if there is one, else ./input, where absent. */
  inputDir?: string;
  /**
   * Input files at hand, by the names that the graph has for them; they precede those of `inputDir`. Their bytes must stay
   * as they are until the run ends.
   */
  files?: FilesByName;
  /** Other names of node classes: prefix to prefix, or whole key to whole key. */
  classAliases?: ClassAliases;
  /** Further texts for the pictures, by key. */
  extraPnginfo?: unknown;
  /** Address and keys of the service that `ext remoteImageApi` calls; the environment's where absent. */
  config?: NodeConfig;
  /**
   * An output that cannot be computed is left out, with a warning, and the others are computed. With false it refuses the
   * graph; true for `executeGraph`, false for all that renders, where absent.
   */
  partial?: boolean;
  /** false: a graph is refused in which a node that runs reaches the network or uses a key; true where absent. */
  allowNetwork?: boolean;
  /** Where tensors are computed: "auto", "cpu" or "cuda:N", see docs/cuda.md; LATENTKIT_DEVICE, else "auto", where absent. */
  device?: DeviceChoice;
  /**
   * Sends a small picture of a sampler's estimate with its progress, an image [B, h, w, 3] of latent cells, at most ten
   * a second. From worker threads it is `{ data, width, height, channels }` of its first one, 128 pixels at most; false
   * where absent.
   */
  previews?: boolean;
}

const IDS: Rule = ["a list of node ids", TEXTS[1]];

/** Ranges, and what depends on the graph, are checked where they are used. */
export const GRAPH_JOB_RULES: OptionRules<GraphJob> = {
  targets: IDS,
  partialExecutionTargets: [IDS[0], (value) => value === null || IDS[1](value)],
  outputDir: FOLDER,
  inputDir: FOLDER,
  files: FILES,
  classAliases: NAMES,
  extraPnginfo: CHECKED_LATER,
  config: VALUES,
  partial: FLAG,
  allowNetwork: FLAG,
  device: CHECKED_LATER,
  previews: FLAG,
};

/** A job of `executeGraph`. */
export interface ExecuteJob extends GraphJob {
  /** false: the graph was validated before; values are taken as they are; true where absent. */
  validate?: boolean;
  /** Id of the run, in its events; a random one where absent. */
  runId?: string;
}

export const EXECUTE_JOB_RULES: OptionRules<ExecuteJob> = {
  ...GRAPH_JOB_RULES,
  validate: FLAG,
  runId: TEXT,
};

/** A job of the executor, with what only callers inside the package may ask. */
export interface GraphRun extends Readonly<ExecuteJob> {
  /** Nodes whose inputs differ in every run: a shared cache keeps neither their results nor what follows from them. */
  readonly volatileNodes?: ReadonlySet<string>;
  /** Nodes that write files do so in every run, whatever the cache holds; false where absent. */
  readonly rewritesFiles?: boolean;
  /** The graph that nodes see: where absent the one that runs, for null none. */
  readonly metadataPrompt?: object | null;
}
