import { createHash } from "node:crypto";
import type { z } from "zod";
import { LatentkitError } from "../../base/errors.js";
import { lazy, loadZod } from "../../base/lazy.js";
import { packageVersion } from "../../base/package.js";
import { type ClassAliases, findDefinitions, parseGraph } from "../../graph/parse.js";
import type { Host, NamedModels, RuntimeRecord } from "../../host/host.js";
import type { InputFiles } from "../../io/files/input-files.js";
import type { FilesByName } from "../../io/files/input-text.js";
import type { OutputHandling } from "../../io/files/output-files.js";
import { isPlainObject, parseJson, printJson } from "../../io/json/lossless.js";
import { pixelHash } from "../../io/png/png.js";
import type { NoiseStream } from "../../nodes/define.js";
import type { Registry } from "../../nodes/registry.js";
import { createOrigins, type IsShown } from "./origins.js";

/**
 * How a picture was made: nothing in it differs when the same graph is rendered again. Hashes are "sha256:" and hex
 * digits, those of pixels "blake3:".
 */
export interface Receipt {
  readonly version: 1;
  /** Version of latentkit. */
  readonly engine: string;
  /** Hash of the chunk `prompt`'s text. */
  readonly graph: string;
  /** The node that saved the picture, and which of its pictures this is, from 0. */
  readonly node: string;
  readonly index: number;
  /** See `pixelHash`. */
  readonly pixels: string;
  /** Seeds of the nodes that the picture is made from, as digits by "9.seed". */
  readonly seeds: Readonly<Record<string, string>>;
  readonly noise: Readonly<Record<string, NoiseStream>>;
  /** Hashes of image files, by the names that the graph has; of a data: text by "data:" and its input, "data:3.image". */
  readonly inputs: Readonly<Record<string, string>>;
  readonly host: { readonly name: string; readonly preview: boolean };
  /** Hashes of model files by kind and name, "loras/ink/wash.safetensors"; absent if the host does not report models. */
  readonly models?: Readonly<Record<string, string>>;
  /** The program that ran the models' networks; absent if none ran. */
  readonly runtime?: RuntimeRecord;
  /** Keys whose values the metadata hides. */
  readonly redacted?: readonly string[];
}

/** The run whose pictures get receipts. */
export interface ReceiptRun {
  readonly prompt: Readonly<Record<string, unknown>>;
  /** The graph as the files hold it. */
  readonly shownPrompt: Readonly<Record<string, unknown>>;
  readonly redact: readonly string[];
  readonly registry: Registry;
  readonly classAliases: ClassAliases;
  readonly host: Host;
  readonly inputDir: string;
  readonly files?: FilesByName;
  readonly inputs: InputFiles;
  readonly signal?: AbortSignal;
}

/** The receipts of a run. */
export interface Receipts {
  /** Makes the receipt of a picture, as JSON. */
  readonly of: NonNullable<OutputHandling["receipt"]>;
  /** Hashes of the model files of a node's pictures, as their receipts have them. */
  modelsOf(nodeId: string): Promise<Receipt["models"]>;
  /** Begins to hash the model files of the pictures that these nodes save, so that it takes place while they run. */
  begin(nodeIds: readonly string[]): void;
  /** Stops the hashing that `begin` started and that no picture waits for. */
  end(): void;
}

/** Receipts of one run; only the hashes of models are computed before the first picture. */
export function createReceipts(run: ReceiptRun): Receipts {
  const countOf = createCounter();
  const ended = new AbortController();
  let maker: ReturnType<typeof createMaker> | undefined;
  return {
    of: async (node, picture) => {
      const index = countOf(node);
      maker ??= createMaker(run);
      const { engine, graph, host, models, runtime, redacted, ...origins } = await maker.make(node);
      const pixels = pixelHash(picture);
      const made = { ...origins, host, models, runtime, redacted };
      const receipt: Receipt = { version: 1, engine, graph, node, index, pixels, ...made };
      return printJson(receipt);
    },
    modelsOf: async (nodeId) => {
      maker ??= createMaker(run);
      return (await maker.provenanceOf(nodeId)).models;
    },
    begin: (nodeIds) => {
      if (run.host.provenance === undefined) return;
      maker ??= createMaker(run);
      for (const nodeId of maker.saversOf(nodeIds)) {
        // the receipt that needs the hash reports the error
        void maker.provenanceOf(nodeId, ended.signal).catch(() => {});
      }
    },
    end: () => ended.abort(),
  };
}

/** Numbers a node's pictures: one that runs for each element of a list saves several times. */
export function createCounter(): (nodeId: string) => number {
  const counts = new Map<string, number>();
  return (nodeId) => {
    const index = counts.get(nodeId) ?? 0;
    counts.set(nodeId, index + 1);
    return index;
  };
}

/** Hash of a graph as it is printed into the files. */
export const textHash = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`;

/** Makes the part of receipts that does not depend on the pixels. */
interface Maker {
  /** Nodes among these that may save pictures. */
  saversOf(nodeIds: readonly string[]): readonly string[];
  make(nodeId: string): Promise<Omit<Receipt, "version" | "node" | "index" | "pixels">>;
  provenanceOf(nodeId: string, signal?: AbortSignal): Promise<Pick<Receipt, "models" | "runtime">>;
}

function createMaker(run: ReceiptRun): Maker {
  const { registry, classAliases, inputDir, files, inputs: inputFiles, redact, signal } = run;
  const { name, preview } = run.host;
  const engine = packageVersion();
  const graph = textHash(printJson(run.shownPrompt));
  const parsed = parseGraph(run.prompt, { classAliases });
  const originsOf = createOrigins(parsed, registry, { host: run.host, inputDir, files }, isShownOf(run));
  const redacted = redact.length === 0 ? undefined : [...new Set(redact)];
  const cached = new Map<string, ReturnType<typeof originsOf>>();
  const onceOf = (nodeId: string) => {
    const origins = cached.get(nodeId) ?? originsOf(nodeId);
    cached.set(nodeId, origins);
    return origins;
  };
  const provenanceOf: Maker["provenanceOf"] = async (nodeId, until = signal) =>
    provenanceFields(run.host, (await onceOf(nodeId)).models, until);
  const make: Maker["make"] = async (nodeId) => {
    const { seeds, noise, files } = await onceOf(nodeId);
    const inputs: Record<string, string> = {};
    for (const [key, file] of files) {
      const hash = await readable(inputFiles.hash(file));
      if (hash !== undefined) inputs[key] = `sha256:${hash}`;
    }
    return { engine, graph, seeds, noise, inputs, host: { name, preview }, ...(await provenanceOf(nodeId)), redacted };
  };
  const saversOf: Maker["saversOf"] = (nodeIds) => {
    const definitions = findDefinitions(parsed, registry);
    return nodeIds.filter((id) => definitions.get(id)?.writesFiles);
  };
  return { saversOf, make, provenanceOf };
}

/** Fields of a receipt about models; none if the host does not report them. */
export async function provenanceFields(
  host: Host,
  named: NamedModels,
  signal: AbortSignal | undefined,
): Promise<Pick<Receipt, "models" | "runtime">> {
  if (host.provenance === undefined) return {};
  const { models, runtime } = await host.provenance(named, signal);
  const hashes = Object.entries(models).map(([name, hash]) => [name, `sha256:${hash}`] as const);
  return { models: Object.fromEntries(hashes), runtime };
}

/** A branch that did not run may name a missing file. */
async function readable(hash: Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await hash;
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}

/** Whether the files hold an input's whole value. */
function isShownOf({ prompt, shownPrompt, redact }: ReceiptRun): IsShown {
  if (redact.length === 0) return () => true;
  const valueIn = (graph: ReceiptRun["prompt"], nodeId: string, input: string) => {
    const node = graph[nodeId];
    const inputs = isPlainObject(node) ? node.inputs : undefined;
    return isPlainObject(inputs) ? printJson(inputs[input]) : undefined;
  };
  return (nodeId, input) => valueIn(prompt, nodeId, input) === valueIn(shownPrompt, nodeId, input);
}

/** Longest receipt, far above any real one: anyone can write one. */
export const MAX_RECEIPT_CHARACTERS = 2 ** 22;
/** The most seeds, streams of noise, input files, model files, networks and hidden keys, each. */
export const MAX_RECEIPT_ENTRIES = 10_000;

/** Longest version, which is printed unchanged. */
const MAX_ENGINE_CHARACTERS = 100;

const receiptSchema = lazy(() => {
  const { z } = loadZod();
  const text = z.string().max(4096);
  const hash = z.string().regex(/^sha256:[0-9a-f]{64}$/);
  const pixelHash = z.string().regex(/^blake3:[0-9a-f]{64}$/);
  const entries = <Value extends z.ZodType>(value: Value) =>
    z.record(text, value).refine((record) => Object.keys(record).length <= MAX_RECEIPT_ENTRIES);

  const host = z.looseObject({ name: text, preview: z.boolean() });
  const runtime = z.looseObject({
    name: text,
    version: text.max(MAX_ENGINE_CHARACTERS),
    provider: text,
    adapter: text.optional(),
    form: text.optional(),
    threads: z.int().positive(),
    plans: entries(text),
  });
  return z.looseObject({
    version: z.literal(1),
    engine: text.max(MAX_ENGINE_CHARACTERS),
    graph: hash,
    node: text,
    index: z.int().nonnegative(),
    pixels: pixelHash,
    seeds: entries(text),
    noise: entries(z.enum(["cpu", "gpu"])),
    inputs: entries(hash),
    host,
    models: entries(hash).optional(),
    runtime: runtime.optional(),
    redacted: z.array(text).max(MAX_RECEIPT_ENTRIES).optional(),
  });
});

/**
 * Reads a file's text as a receipt; undefined if it is not one, or too large. Anyone can have written
 * it: it proves nothing. Fields of later versions stay.
 */
export function readReceipt(json: string): Receipt | undefined {
  if (json.length > MAX_RECEIPT_CHARACTERS) return undefined;
  try {
    return receiptSchema().safeParse(parseJson(json)).data as Receipt | undefined;
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}

/** Fields that no receipt of this version has. */
export function unknownFields(receipt: Receipt): string[] {
  const { shape } = receiptSchema();
  const own = Object.keys(receipt).filter((key) => !Object.hasOwn(shape, key));
  const hosts = Object.keys(receipt.host).filter((key) => !Object.hasOwn(shape.host.shape, key));
  const runtimes = Object.keys(receipt.runtime ?? {}).filter(
    (key) => !Object.hasOwn(shape.runtime.unwrap().shape, key),
  );
  return [...own, ...hosts.map((key) => `host.${key}`), ...runtimes.map((key) => `runtime.${key}`)];
}
