import { describe, type ErrorCode, LatentkitError } from "../base/errors.js";
import {
  FLAG,
  FOLDER,
  isObject,
  type OptionRules,
  pickOptions,
  type Rule,
  TEXT,
  TEXTS,
  VALUES,
} from "../base/options.js";
import { GRAPH_JOB_RULES, type GraphJob } from "../graph/job.js";
import {
  isPlainObject,
  MAX_DEPTH,
  mayLackDigits,
  NumberLiteral,
  parseJson,
  printJsonUnicode,
} from "../io/json/lossless.js";
import { FORMAT, type PictureFormat } from "../io/pictures/format.js";
import { plain } from "../nodes/values.js";

export const METADATA_POLICIES = ["full", "prompt", "none"] as const;
/** Metadata of pictures: "full" has graph, receipt and extra_pnginfo, "prompt" graph and receipt, "none" nothing. */
export type MetadataPolicy = (typeof METADATA_POLICIES)[number];

const OUTPUTS = ["files", "memory"] as const;
/** Where the files of a render go: into the output folder, or into its result. */
export type OutputChoice = (typeof OUTPUTS)[number];

/**
 * One render as plain data: what a worker thread is sent, a batch's hash covers and a hook renders, beside the graph.
 * An option of a render is one field here and one rule below; live objects are fields of `Surroundings`.
 */
export interface Job extends GraphJob {
  /**
   * "6.text" sets an input of node 6; others fill the placeholder {{key}}, set the primitive of that title, or, as prompt,
   * negative, seed, steps, width and height, the one input of that name which the graph has.
   */
  set?: Readonly<Record<string, unknown>>;
  /** Keys of `set` whose values other runs will not have: the cache keeps nothing that follows from them. */
  passing?: readonly string[];
  /** Further texts for the pictures, by key; none where absent. */
  extraPnginfo?: Readonly<Record<string, unknown>>;
  /** Texts that pictures carry: "full", "prompt" (the graph and its receipt) or "none"; "full" where absent. */
  metadata?: MetadataPolicy;
  /** Format of the pictures; PNG files of 8 bits where absent. */
  format?: PictureFormat;
  /** Adds the line of settings that A1111 writes to pictures, as the text `parameters`; false where absent. */
  parameters?: boolean;
  /** Keys whose values pictures hide: "6.text", or a bare key at any depth of the graph and of extra_pnginfo. */
  redact?: readonly string[];
  /** "memory": files are not written, and come as `bytes` of the result's files; "files" where absent. */
  output?: OutputChoice;
  /** Folder of a disk cache, see `createDiskCache`; none where absent. */
  cacheDir?: string;
  /** Address of a module whose default export (or `setup`) is `() => ({ registry, host })`. */
  setup?: string;
}

/** Rules of a job's fields. @internal */
export const JOB_RULES: OptionRules<Job> = {
  ...GRAPH_JOB_RULES,
  set: VALUES,
  passing: TEXTS,
  extraPnginfo: VALUES,
  metadata: [METADATA_POLICIES.join(", "), (value) => (METADATA_POLICIES as readonly unknown[]).includes(value)],
  format: FORMAT,
  parameters: FLAG,
  redact: ["a list of keys", TEXTS[1]],
  output: [OUTPUTS.join(", "), (value) => (OUTPUTS as readonly unknown[]).includes(value)],
  cacheDir: FOLDER,
  setup: TEXT,
};

/** The job among an application's options, which name a setup module by its URL. */
export interface JobOptions extends Omit<Job, "setup"> {
  /** A module whose default export (or `setup`) is `() => ({ registry, host })`. */
  setup?: URL;
}

const MODULE_URL: Rule = [
  "the URL of a module (pathToFileURL makes one)",
  (value) => isObject(value) && typeof value.href === "string",
];

export const JOB_OPTION_RULES: OptionRules<JobOptions> = { ...JOB_RULES, setup: MODULE_URL };

/** The job among options that are checked. */
export function jobOf(options: JobOptions): Job {
  const { setup, ...job } = pickOptions<JobOptions>(options, JOB_OPTION_RULES);
  return setup === undefined ? job : { ...job, setup: setup.href };
}

/**
 * A job as JSON text, which keeps every digit of `set` and `extraPnginfo`, without its `files`. Throws usage.invalid for a
 * value that JSON would lose.
 */
export function printJob(job: Job): string {
  refuseUnsendable(job);
  const { files, ...printed } = job;
  return printJsonUnicode(printed);
}

/** The job that `printJob` printed. */
export function parseJob(text: string): Job {
  const job = parseJson(text) as Job;
  // nodes compute with numbers, not with the digits of a file
  return job.config === undefined ? job : { ...job, config: plain(job.config) as Job["config"] };
}

/** Options of which JSON may lose more or less than of others. */
const STRICTNESS: { readonly [Option in keyof Job]?: Strictness } = { set: { digits: true }, config: { absent: true } };

/** Throws usage.invalid for a value that would not reach a worker thread as it is. */
export function refuseUnsendable({ files, ...job }: Job): void {
  for (const [option, values] of Object.entries(job)) {
    // by their rules the others are flags, texts and lists of texts
    for (const [key, value] of isObject(values) ? Object.entries(values) : []) {
      refuseLoss(option, key, value, "usage.invalid", STRICTNESS[option as keyof Job]);
    }
  }
}

/** Further losses that count, and values that JSON may lose. */
interface Strictness {
  /** Numbers whose last digits JavaScript may have rounded count as lost. */
  readonly digits?: boolean;
  /** A key whose value is undefined counts as an absent key. */
  readonly absent?: boolean;
}

/** Throws an error of this code, which names subject and key, for a value of which JSON would lose something. */
export function refuseLoss(
  subject: string,
  key: string,
  value: unknown,
  code: ErrorCode,
  strictness: Strictness = {},
): void {
  const lost = lostIn(value, 0, strictness);
  if (lost === undefined) return;
  const expected =
    typeof lost.value === "number" && mayLackDigits(lost.value)
      ? "a whole number beyond 2^53 as a bigint or text, with all its digits"
      : "a text, a number, true, false, null, or a list or plain object of these";
  const received = typeof lost.value === "symbol" ? "a symbol" : describe(lost.value);
  throw new LatentkitError(code, `${subject}, ${key}: expected ${expected}, received ${received}.`);
}

/** The first value inside that JSON would lose; undefined where there is none. */
function lostIn(value: unknown, depth: number, strictness: Strictness): { readonly value: unknown } | undefined {
  if (typeof value === "number") {
    return Number.isFinite(value) && !(strictness.digits && mayLackDigits(value)) ? undefined : { value };
  }
  if (value === null || ["string", "bigint", "boolean"].includes(typeof value)) return undefined;
  if (value === undefined && strictness.absent) return undefined;
  if (value instanceof NumberLiteral) return undefined;
  if (depth >= MAX_DEPTH || !(Array.isArray(value) || isPlainObject(value))) return { value };
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    const lost = lostIn(inner, depth + 1, strictness);
    if (lost !== undefined) return lost;
  }
  return undefined;
}
