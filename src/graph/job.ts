import {
  CHECKED_LATER,
  FILES,
  FLAG,
  FOLDER,
  isObject,
  NAMES,
  type OptionRules,
  pickOptions,
  type Rule,
  TEXT,
  TEXTS,
  VALUES,
} from "../base/options.js";
import type { FilesByName } from "../io/files/input-text.js";
import { FORMAT, type PictureFormat } from "../io/pictures/format.js";
import type { NodeConfig } from "../nodes/define.js";
import type { DeviceChoice } from "../tensor/device/device.js";
import type { ClassAliases } from "./parse.js";

export const METADATA_POLICIES = ["full", "prompt", "none"] as const;
/** Metadata of pictures: "full" has graph, receipt and extra_pnginfo, "prompt" graph and receipt, "none" nothing. */
export type MetadataPolicy = (typeof METADATA_POLICIES)[number];

const OUTPUTS = ["files", "memory"] as const;
/** Where the files of a render go: into the output folder, or into its result. */
export type OutputChoice = (typeof OUTPUTS)[number];

/**
 * One run of a graph as plain data: with the graph and its `Surroundings` all that is needed to render it. Worker threads
 * receive it, a batch's hash covers it, a hook renders it. An option of a render is one field here and one rule below.
 */
export interface Job {
  /**
   * "6.text" sets an input of node 6; others fill the placeholder {{key}}, set the primitive of that title, or, as prompt,
   * negative, seed, steps, width and height, the one input of that name which the graph has.
   */
  set?: Readonly<Record<string, unknown>>;
  /** Keys of `set` whose values other runs will not have: the cache does not keep results that depend on them. */
  passing?: readonly string[];
  /** Ids of the nodes to compute; the graph's output nodes if absent. */
  targets?: readonly string[];
  /** Restricts the graph's output nodes to these, as ComfyUI's clients ask; null: all of them. */
  partialExecutionTargets?: readonly string[] | null;
  /** Folder that files are written to; ./out if absent. */
  outputDir?: string;
  /** Folder that input files are read from; `input` beside the graph's file if there is one, else ./input, if absent. */
  inputDir?: string;
  /**
   * Input files at hand, by the names that the graph has for them; they precede those of `inputDir`. Their bytes must not
   * change until the run ends.
   */
  files?: FilesByName;
  /** Other names of node classes: prefix to prefix, or whole key to whole key. */
  classAliases?: ClassAliases;
  /** Further texts for the pictures, by key; none if absent. */
  extraPnginfo?: Readonly<Record<string, unknown>>;
  /** Address and keys of the service that `ext remoteImageApi` calls; the environment's if absent. */
  config?: NodeConfig;
  /**
   * true: an output that cannot be computed is left out, with a warning, and the others are computed; false: the graph is
   * refused. If absent, true for `executeGraph` and false for functions that render.
   */
  partial?: boolean;
  /** false: refuses a graph in which a node that runs reaches the network or uses a key; true if absent. */
  allowNetwork?: boolean;
  /** Where tensors are computed: "auto", "cpu" or "cuda:N", see docs/cuda.md; LATENTKIT_DEVICE, else "auto", if absent. */
  device?: DeviceChoice;
  /**
   * Sends a small picture of a sampler's estimate with its progress, an image [B, h, w, 3] of latent cells, at most ten
   * a second. From worker threads it is `{ data, width, height, channels }` of its first one, 128 pixels at most; false
   * if absent.
   */
  previews?: boolean;
  /** Texts that pictures carry: "full", "prompt" (the graph and its receipt) or "none"; "full" if absent. */
  metadata?: MetadataPolicy;
  /** Format of the pictures; PNG files of 8 bits if absent. */
  format?: PictureFormat;
  /** Adds the line of settings that A1111 writes to pictures, as the text `parameters`; false if absent. */
  parameters?: boolean;
  /** Keys whose values pictures hide: "6.text", or a bare key at any depth of the graph and of extra_pnginfo. */
  redact?: readonly string[];
  /** "memory": files are not written, and come as `bytes` of the result's files; "files" if absent. */
  output?: OutputChoice;
  /** Folder of a disk cache, see `createDiskCache`; none if absent. */
  cacheDir?: string;
  /** A module whose default export (or `setup`) is `() => ({ registry, host })`. */
  setup?: URL;
  /** false: the graph was validated before; values are taken as they are; true if absent. */
  validate?: boolean;
  /** Id of the run, in its events; a random one if absent. */
  runId?: string;
}

const IDS: Rule = ["a list of node ids", TEXTS[1]];

/** Rules of a job's fields. Ranges, and everything that depends on the graph, are checked where they are used. */
export const JOB_RULES: OptionRules<Job> = {
  targets: IDS,
  partialExecutionTargets: [IDS[0], (value) => value === null || IDS[1](value)],
  outputDir: FOLDER,
  inputDir: FOLDER,
  files: FILES,
  classAliases: NAMES,
  extraPnginfo: VALUES,
  config: VALUES,
  partial: FLAG,
  allowNetwork: FLAG,
  device: CHECKED_LATER,
  previews: FLAG,
  set: VALUES,
  passing: TEXTS,
  metadata: [METADATA_POLICIES.join(", "), (value) => (METADATA_POLICIES as readonly unknown[]).includes(value)],
  format: FORMAT,
  parameters: FLAG,
  redact: ["a list of keys", TEXTS[1]],
  output: [OUTPUTS.join(", "), (value) => (OUTPUTS as readonly unknown[]).includes(value)],
  cacheDir: FOLDER,
  setup: [
    "the URL of a module (pathToFileURL makes one)",
    (value) => isObject(value) && typeof value.href === "string",
  ],
  validate: FLAG,
  runId: TEXT,
};

/** The job among checked options. */
export const jobOf = (options: Job): Job => pickOptions(options, JOB_RULES);
