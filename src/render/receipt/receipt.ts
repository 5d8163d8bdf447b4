import { createHash } from "node:crypto";
import { LatentkitError } from "../../base/errors.js";
import { packageVersion } from "../../base/package.js";
import { type ClassAliases, parseGraph } from "../../graph/parse.js";
import type { Host } from "../../host/types.js";
import { createInputHashes } from "../../io/files/input-file.js";
import type { OutputHandling } from "../../io/files/output-files.js";
import { isPlainObject, printJson } from "../../io/json/lossless.js";
import { pixelHash } from "../../io/png/pixel-hash.js";
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
  /** Hashes of image files, by the names that the graph has. */
  readonly inputs: Readonly<Record<string, string>>;
  readonly host: { readonly name: string; readonly preview: boolean };
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
}

/** Receipts of one run, as JSON; nothing is computed before the first picture. */
export function createReceipts(run: ReceiptRun): NonNullable<OutputHandling["receipt"]> {
  const countOf = createCounter();
  let maker: ReturnType<typeof createMaker> | undefined;
  return async (node, picture) => {
    const index = countOf(node);
    maker ??= createMaker(run);
    const { engine, graph, host, redacted, ...origins } = await maker(node);
    const pixels = pixelHash(picture);
    const receipt: Receipt = { version: 1, engine, graph, node, index, pixels, ...origins, host, redacted };
    return printJson(receipt);
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

/** Creates the part of receipts that does not depend on the pixels, once for each node. */
function createMaker(
  run: ReceiptRun,
): (nodeId: string) => Promise<Omit<Receipt, "version" | "node" | "index" | "pixels">> {
  const { registry, classAliases, inputDir, redact } = run;
  const { name, preview } = run.host;
  const engine = packageVersion();
  const graph = textHash(printJson(run.shownPrompt));
  const surroundings = { host: run.host, inputDir };
  const originsOf = createOrigins(parseGraph(run.prompt, { classAliases }), registry, surroundings, isShownOf(run));
  const hashOf = createInputHashes(inputDir);
  const redacted = redact.length === 0 ? undefined : [...new Set(redact)];
  const cached = new Map<string, ReturnType<typeof originsOf>>();
  return async (nodeId) => {
    const origins = cached.get(nodeId) ?? originsOf(nodeId);
    cached.set(nodeId, origins);
    const { seeds, noise, files } = await origins;
    const inputs: Record<string, string> = {};
    for (const file of files) {
      const hash = await readable(hashOf(file));
      if (hash !== undefined) inputs[file] = `sha256:${hash}`;
    }
    return { engine, graph, seeds, noise, inputs, host: { name, preview }, redacted };
  };
}

/** A branch that did not run may name a file that is not there. */
async function readable(hash: Promise<string>): Promise<string | undefined> {
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
