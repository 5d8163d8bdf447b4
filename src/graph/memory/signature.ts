import { createHash } from "node:crypto";
import type { Host } from "../../host/host.js";
import { isPlainObject, NumberLiteral } from "../../io/json/lossless.js";
import { pythonText } from "../../io/python-text.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";
import type { Job } from "../job.js";
import type { PreparedNode } from "../prepared.js";
import type { RunMemory } from "./run-memory.js";

/** Value that a node's `isChanged` returned. */
export interface Change {
  readonly value: unknown;
}

/** Calls a node's `isChanged`; undefined: always changed, as are NaN and a failure. */
export async function readChange(
  { definition, links, values }: PreparedNode,
  context: ChoiceContext,
): Promise<Change | undefined> {
  const inputs: Record<string, unknown> = { ...values };
  for (const { input } of links) inputs[input] = undefined;
  try {
    const value = await definition.isChanged!(inputs, context);
    return Number.isNaN(value) ? undefined : { value };
  } catch {
    // the same failure is reported when the node runs
    return undefined;
  }
}

/**
 * Signatures (cache keys) of the nodes of one run: of class, inputs by declared type and signatures of the sources.
 * Equal numbers mean equal results, regardless of the nodes' ids.
 */
export class Signer {
  readonly #run: string;
  readonly #writers: string;
  /** Signatures of nodes that other runs will never have, by their text. */
  readonly #own = new Map<string, number>();
  readonly #opaqueKey = (value: unknown): string =>
    `o${typeof value === "symbol" ? this.#memory.cache.unique() : this.#memory.cache.identity(value as object)}`;
  readonly #memory: Pick<RunMemory, "cache" | "isVolatile">;
  readonly #rewritesFiles: boolean;

  constructor(
    memory: Pick<RunMemory, "cache" | "isVolatile">,
    { inputDir, outputDir = "" }: Pick<Job, "inputDir" | "outputDir">,
    { host, rewritesFiles = false }: { readonly host?: Host; readonly rewritesFiles?: boolean },
  ) {
    this.#memory = memory;
    this.#rewritesFiles = rewritesFiles;
    const hostKey = host === undefined ? null : (host.signature ?? memory.cache.identity(host));
    this.#run = String(memory.cache.intern(JSON.stringify([hostKey, inputDir])));
    this.#writers = rewritesFiles ? String(memory.cache.unique()) : this.#valueKey(outputDir, "STRING");
  }

  /** Signs a node. `sourceOf` returns the signature of a linked node, which is signed first; `change` is the result of `isChanged`. */
  sign(node: PreparedNode, sourceOf: (id: string) => number | undefined, change: Change | undefined): number {
    const { definition } = node;
    let text = `${this.#memory.cache.identity(definition)}|${this.#run}`;
    if (definition.writesFiles) text += `@${this.#writers}`;
    if (change !== undefined) text += `!${this.#valueKey(change.value, "")}`;
    if (definition.notIdempotent || Object.values(definition.hidden).includes("UNIQUE_ID")) {
      text += `#${this.#valueKey(node.id, "STRING")}`;
    }
    for (const { input, source, slot } of node.links) text += `|${input}>${sourceOf(source)}.${slot}`;
    for (const [input, spec] of Object.entries(definition.inputs)) {
      if (Object.hasOwn(node.values, input)) text += `|${input}=${this.#valueKey(node.values[input], spec.type)}`;
    }
    for (const [input, value] of node.unknown) text += `|?${this.#valueKey([input, value], "")}`;
    const isNew = definition.writesFiles && this.#rewritesFiles;
    return isNew || this.#memory.isVolatile(node.id) ? this.#ownNumber(text) : this.#memory.cache.intern(text);
  }

  /** Whether a node's results are useless to other runs. */
  isVolatile(id: string): boolean {
    return this.#memory.isVolatile(id);
  }

  #ownNumber(text: string): number {
    const number = this.#own.get(text) ?? this.#memory.cache.unique();
    this.#own.set(text, number);
    return number;
  }

  /** Returns a signature that no node has or will have. */
  unique(): number {
    return this.#memory.cache.unique();
  }

  #valueKey(value: unknown, type: string): string {
    return valueKey(value, type, this.#opaqueKey);
  }
}

/** Version of the composition of signatures. */
const GENERATION = 1;

/** Values of these types hold code and memory of a process. */
const LIVE_TYPES: ReadonlySet<string> = new Set([
  "MODEL",
  "VAE",
  "CLIP",
  "PIPE_LINE",
  "GUIDER",
  "SAMPLER",
  "CONTROL_NET",
  "UPSCALE_MODEL",
  "CLIP_VISION",
  "IPADAPTER",
  "STYLE_MODEL",
  "GLIGEN",
  "MODEL_PATCH",
]);

/**
 * Signatures with the same meaning in every process and on every machine: equal ones mean equal results. A node has one
 * only if everything that its result depends on has a key, including its sources.
 */
export class DiskSigner {
  /** Signed nodes, sources before their readers. */
  readonly #signed = new Map<string, { readonly node: PreparedNode; readonly signature: string }>();
  readonly #changes = new Map<string, string>();
  #hasOpaque = false;
  readonly #opaqueKey: OpaqueKey = () => {
    this.#hasOpaque = true;
    return "";
  };
  readonly #packageVersion: string;
  readonly #surroundings: { readonly host?: Host; readonly builtIns?: Registry };
  /** false: values are taken as they are. */
  readonly #isChecked: boolean;

  constructor(
    packageVersion: string,
    surroundings: { readonly host?: Host; readonly builtIns?: Registry },
    isChecked = true,
  ) {
    this.#packageVersion = packageVersion;
    this.#surroundings = surroundings;
    this.#isChecked = isChecked;
  }

  /** Signs a node after its sources; `change` is the result of its `isChanged`. */
  sign(node: PreparedNode, change: Change | undefined): void {
    const text = this.#textOf(node, change);
    if (text === undefined) return;
    const signature = createHash("sha256").update(text).digest("hex");
    this.#signed.set(node.id, { node, signature });
    if (change !== undefined) this.#changes.set(node.id, this.#stableKey(change.value, "") ?? "");
  }

  /** Signature to store a node's result under; undefined if its outputs are live objects or hidden inputs matter. */
  storable(id: string): string | undefined {
    const signed = this.#signed.get(id);
    if (signed === undefined) return undefined;
    const { hidden, outputs } = signed.node.definition;
    const isLive = outputs.some(({ type }) => type.split(",").some((member) => LIVE_TYPES.has(member.trim())));
    return isLive || Object.keys(hidden).length > 0 ? undefined : signed.signature;
  }

  /** Takes the result of `isChanged` after the node ran: if it differs, the node and its readers lose their signatures. */
  confirm(id: string, change: Change | undefined): void {
    const before = this.#changes.get(id);
    if (before === undefined) return;
    if (change !== undefined && this.#stableKey(change.value, "") === before) return;
    this.#signed.delete(id);
    for (const [reader, { node }] of this.#signed) {
      if (node.links.some(({ source }) => !this.#signed.has(source))) this.#signed.delete(reader);
    }
  }

  #textOf({ id, definition, links, values }: PreparedNode, change: Change | undefined): string | undefined {
    const { host, builtIns } = this.#surroundings;
    // their code changes only with the package's version
    const isBuiltIn = builtIns?.get(definition.key) === definition;
    if (!isRepeatable(definition, isBuiltIn)) return undefined;
    // isChanged does not see linked values: a file that a link names may differ tomorrow
    if (definition.isChanged !== undefined && (change?.value === undefined || links.length > 0)) return undefined;
    const needsHost = !isBuiltIn || readsHost(definition);
    if (needsHost && host?.signature === undefined) return undefined;
    const sources: unknown[] = [];
    for (const { input, source, slot } of links) {
      const signed = this.#signed.get(source);
      if (signed === undefined) return undefined;
      sources.push([input, signed.signature, slot]);
    }
    const inputs: unknown[] = [];
    for (const [input, { type }] of Object.entries(definition.inputs)) {
      if (!Object.hasOwn(values, input)) continue;
      const key = this.#stableKey(values[input], type);
      if (key === undefined) return undefined;
      inputs.push([input, key]);
    }
    const changed = change === undefined ? null : this.#stableKey(change.value, "");
    if (changed === undefined) return undefined;
    return JSON.stringify([
      GENERATION,
      this.#packageVersion,
      definition.key,
      definition.cacheVersion ?? null,
      this.#isChecked,
      needsHost ? host!.signature : null,
      Object.values(definition.hidden).includes("UNIQUE_ID") ? id : null,
      changed,
      sources,
      inputs,
    ]);
  }

  #stableKey(value: unknown, type: string): string | undefined {
    this.#hasOpaque = false;
    const key = valueKey(value, type, this.#opaqueKey);
    return this.#hasOpaque ? undefined : key;
  }
}

/**
 * Whether a run can skip the node if its result, or that of a reader, is stored. The package's own nodes use hidden
 * inputs only to save and to show; other nodes may do anything with them.
 */
function isRepeatable(definition: NodeDefinition, isBuiltIn: boolean): boolean {
  const { outputNode, writesFiles, hasUi, notIdempotent, reachesNetwork } = definition;
  if (outputNode || writesFiles || hasUi || notIdempotent || reachesNetwork) return false;
  return isBuiltIn || (definition.cacheVersion !== undefined && Object.keys(definition.hidden).length === 0);
}

/** Whether a node of the package loads models: those that do have a choice of the host's. */
const readsHost = ({ inputs }: NodeDefinition): boolean =>
  Object.values(inputs).some(({ choices }) => typeof choices === "function");

/** Longer texts are hashed. */
const MAX_TEXT = 512;
const MAX_DEPTH = 32;

/** Returns the key of a value without a text form: a function, an instance, a symbol, a long or deep structure. */
type OpaqueKey = (value: unknown) => string;

/**
 * Returns a text that is equal only for equal values. 1, 1.0 and true are one INT; for an input of any type 1 is not 1.0.
 * NaN equals itself.
 */
function valueKey(value: unknown, type: string, opaque: OpaqueKey, depth = 0): string {
  switch (typeof value) {
    case "string":
      return value.length > MAX_TEXT
        ? `h${createHash("sha256").update(value).digest("base64")}`
        : `s${value.length}:${value}`;
    case "number":
      return Object.is(value, -0) ? "n-0" : `n${value}`;
    case "bigint":
      return `n${value}`;
    case "boolean":
      return type === "INT" || type === "FLOAT" ? `n${Number(value)}` : `b${value}`;
    case "undefined":
      return "u";
    case "object":
      return value === null ? "z" : objectKey(value, opaque, depth);
    default:
      return opaque(value);
  }
}

function objectKey(value: object, opaque: OpaqueKey, depth: number): string {
  if (value instanceof NumberLiteral) return `n${pythonText(value)}`;
  if (depth < MAX_DEPTH && Array.isArray(value) && value.length <= MAX_TEXT) {
    return `[${value.map((item) => valueKey(item, "", opaque, depth + 1)).join()}]`;
  }
  if (depth < MAX_DEPTH && isPlainObject(value)) {
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, item]) => `${key.length}:${key}${valueKey(item, "", opaque, depth + 1)}`).join()}}`;
  }
  return opaque(value);
}
