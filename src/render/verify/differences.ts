import { resolve } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { packageVersion } from "../../base/package.js";
import type { Graph } from "../../graph/parse.js";
import { autoV2 } from "../../host/checkpoint/files/file-hashes.js";
import type { Host, RuntimeRecord } from "../../host/host.js";
import { InputFiles } from "../../io/files/input-files.js";
import { isPlainObject } from "../../io/json/lossless.js";
import { createOrigins, type Origins } from "../receipt/origins.js";
import { provenanceFields, type Receipt, unknownFields } from "../receipt/receipt.js";
import { REDACTED } from "../redact.js";
import { defaultHost, defaultRegistry } from "../surroundings.js";

/** A fact that differs from the receipt. */
export interface Difference {
  readonly what:
    | "pixels"
    | "prompt"
    | "rendered"
    | "receipt"
    | "engine"
    | "input"
    | "host"
    | "model"
    | "runtime"
    | "redacted";
  /** One sentence. */
  readonly message: string;
}

type Values = Readonly<Record<string, string>>;

/** At most this many differing input files are named; the rest is not read. */
const NAMED_INPUTS = 20;
const NAMED_CHARACTERS = 80;

/** A receipt compared with the graph beside it and with what a host has. */
export interface Comparison {
  /** Everything that differs from the receipt, except pixels and version. */
  readonly untrue: readonly Difference[];
  /** Settings of the runtime that have changed: the likely cause of different pixels. */
  readonly runtime: readonly Difference[];
}

/** Compares a receipt; the runtime's settings are those of a render that has just ended. */
export async function compareReceipt(
  graph: Graph,
  receipt: Receipt,
  {
    inputDir = "input",
    host = defaultHost,
    signal,
  }: { readonly inputDir?: string; readonly host?: Host; readonly signal?: AbortSignal },
): Promise<Comparison> {
  const folder = resolve(inputDir);
  const isShown = (nodeId: string, input: string) => {
    const { inputs } = graph.prompt[nodeId] as { inputs?: Readonly<Record<string, unknown>> };
    return inputs?.[input] !== REDACTED;
  };
  const originsOf = createOrigins(graph, defaultRegistry, { host, inputDir: folder }, isShown);
  const { seeds, noise, files, models } = await originsOf(receipt.node);
  const now = await provenanceFields(host, models, signal);
  const untrue = [
    ...compared("the seed", receipt.seeds, seeds),
    ...compared("the noise of node", receipt.noise, noise),
    ...(await inputDifferences(receipt.inputs, files, folder)),
    ...hostDifferences(receipt, host),
    ...modelDifferences(receipt.models, now.models),
    ...shownDespite(graph, receipt.redacted ?? []),
    ...unknownFields(receipt).map((field): Difference => {
      return { what: "receipt", message: `The receipt has ${describe(field)}, which this version does not know.` };
    }),
  ];
  return { untrue, runtime: runtimeDifferences(receipt.runtime, now.runtime) };
}

function compared(what: string, recorded: Values, actual: Values): Difference[] {
  const keys = new Set([...Object.keys(recorded), ...Object.keys(actual)]);
  const inWords = (values: Values, key: string) => (Object.hasOwn(values, key) ? describe(values[key]) : "none");
  return [...keys]
    .filter((key) => inWords(recorded, key) !== inWords(actual, key))
    .map((key): Difference => {
      const message = `The receipt has ${what} ${key.slice(0, NAMED_CHARACTERS)} as ${inWords(recorded, key)}, the graph in the file as ${inWords(actual, key)}.`;
      return { what: "receipt", message };
    });
}

/** The version that rendered the picture, if it is a different one. */
export function versionDifference({ engine }: Receipt): Difference[] {
  const now = packageVersion();
  return engine === now ? [] : [{ what: "engine", message: `It was rendered by latentkit ${engine}; this is ${now}.` }];
}

function hostDifferences({ host }: Receipt, own: Host): Difference[] {
  const differences: Difference[] = [];
  if (host.name !== own.name) {
    const message = `Its models came from the host ${describe(host.name)}; this is ${describe(own.name)}.`;
    differences.push({ what: "host", message });
  }
  if (host.preview !== own.preview) {
    const message = host.preview
      ? "The receipt says that it is a preview; this host renders without previews."
      : "The receipt says that it is not a preview; this host renders previews.";
    differences.push({ what: "host", message });
  }
  return differences;
}

/** Differences of input files between the receipt, the graph and the input folder. */
async function inputDifferences(recorded: Values, files: Origins["files"], folder: string): Promise<Difference[]> {
  const inputs = new InputFiles({ folder, isOffline: true });
  const differences: Difference[] = [];
  let left = 0;
  for (const name of new Set([...Object.keys(recorded), ...files.keys()])) {
    if (differences.length === NAMED_INPUTS) left++;
    else {
      const hash = Object.hasOwn(recorded, name) ? recorded[name] : undefined;
      const message = await inputDifference(name, hash, files.get(name), inputs);
      if (message !== undefined) differences.push({ what: "input", message });
    }
  }
  const rest = left === 1 ? "One more input file was" : `${left} more input files were`;
  return left === 0 ? differences : [...differences, { what: "input", message: `${rest} not checked.` }];
}

async function inputDifference(
  name: string,
  recorded: string | undefined,
  file: string | undefined,
  inputs: InputFiles,
): Promise<string | undefined> {
  if (file === undefined)
    return `The receipt has the input file ${describe(name)}, which the graph in the file does not need.`;
  try {
    const hash = `sha256:${await inputs.hash(file)}`;
    if (recorded === undefined)
      return `The receipt lacks the input file ${describe(name)}, which the graph in the file needs.`;
    return hash === recorded ? undefined : `The input file ${describe(name)} has changed.`;
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    // a receipt omits missing files: a branch that did not run may name one
    return recorded === undefined ? undefined : error.message;
  }
}

/** Values that the receipt says are hidden, but that the graph has. */
function shownDespite({ prompt }: Graph, redacted: readonly string[]): Difference[] {
  const keys = new Set(redacted);
  const visible = new Set<string>();
  const scan = (value: unknown, nodeId: string, isInputs: boolean): void => {
    if (Array.isArray(value)) for (const item of value) scan(item, nodeId, false);
    if (!isPlainObject(value)) return;
    for (const [key, inner] of Object.entries(value)) {
      const full = isInputs ? `${nodeId}.${key}` : key;
      const hidden = keys.has(key) ? key : keys.has(full) ? full : undefined;
      if (hidden === undefined) scan(inner, nodeId, false);
      else if (inner !== REDACTED) visible.add(hidden);
    }
  };
  for (const [nodeId, node] of Object.entries(keys.size === 0 ? {} : prompt)) {
    if (keys.has(nodeId)) visible.add(nodeId);
    for (const [key, value] of Object.entries(node as Record<string, unknown>)) {
      if (keys.has(key) && value !== REDACTED) visible.add(key);
      else scan(value, nodeId, key === "inputs");
    }
  }
  return [...visible].map((key): Difference => {
    return {
      what: "redacted",
      message: `The receipt says that ${describe(key)} is hidden, but the graph in the file shows it.`,
    };
  });
}

type Hashes = Readonly<Record<string, string>>;

/** Differences of model files between a receipt and a host; none if the host does not report models. */
function modelDifferences(recorded: Hashes = {}, now: Hashes | undefined): Difference[] {
  if (now === undefined) return [];
  return [...new Set([...Object.keys(recorded), ...Object.keys(now)])].flatMap((name): Difference[] => {
    const message = modelDifference(describe(name), hashIn(recorded, name), hashIn(now, name));
    return message === undefined ? [] : [{ what: "model", message }];
  });
}

const hashIn = (hashes: Hashes, name: string): string | undefined =>
  Object.hasOwn(hashes, name) ? hashes[name] : undefined;

function modelDifference(file: string, recorded: string | undefined, now: string | undefined): string | undefined {
  if (recorded === now) return undefined;
  if (recorded === undefined) return `The receipt lacks the model file ${file}, which the graph in the file needs.`;
  if (now === undefined)
    return `The model file ${file} (AutoV2 ${shown(recorded)}) is missing, or the graph in the file does not name it.`;
  return `The model file ${file} has changed: AutoV2 ${shown(now)} now, ${shown(recorded)} when the picture was made.`;
}

/** A hash of a receipt as Civitai shows it. */
const shown = (hash: string): string => autoV2(hash.slice("sha256:".length));

/** Differences of the runtimes; none if one is unknown. Only networks that ran both times are compared. */
function runtimeDifferences(recorded: RuntimeRecord | undefined, now: RuntimeRecord | undefined): Difference[] {
  if (recorded === undefined || now === undefined) return [];
  const networks = Object.keys(now.plans).filter((network) => Object.hasOwn(recorded.plans, network));
  const facts: (readonly [what: string, then: string | number | undefined, now: string | number | undefined])[] = [
    ["runtime", `${recorded.name} ${recorded.version}`, `${now.name} ${now.version}`],
    ["provider", recorded.provider, now.provider],
    ["GPU", recorded.adapter, now.adapter],
    ["form of the operators", recorded.form, now.form],
    ["number of threads", recorded.threads, now.threads],
    ...networks.map(
      (network) => [`plan of ${describe(network)}`, recorded.plans[network], now.plans[network]] as const,
    ),
  ];
  return facts
    .filter(([, then, own]) => then !== own && then !== undefined && own !== undefined)
    .map(([what, then, own]): Difference => {
      const message = `The ${what} was ${describe(then)} when the picture was made; now it is ${describe(own)}.`;
      return { what: "runtime", message };
    });
}
