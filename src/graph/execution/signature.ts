import { createHash } from "node:crypto";
import type { Host } from "../../host/types.js";
import { isPlainObject, NumberLiteral } from "../../io/json-lossless.js";
import { pythonText } from "../../io/python-text.js";
import type { Cache } from "../cache.js";
import type { PreparedNode } from "../prepared.js";

/** Longer texts stand in a signature as their hash. */
const MAX_TEXT = 512;
const MAX_DEPTH = 32;

/** Where a run takes models and files from: results of another place do not count. */
export interface SignaturePlace {
  readonly host?: Host;
  readonly inputDir?: string;
  readonly outputDir?: string;
  /** Nodes that write files do so in every run, whatever the cache holds. */
  readonly rewritesFiles?: boolean;
}

/**
 * Signatures of the nodes of one run: class, inputs by declared type and the signatures of what they link to, so equal
 * numbers mean equal results, whatever the nodes' ids.
 */
export class Signer {
  private readonly run: string;
  private readonly writers: string;

  constructor(
    private readonly cache: Cache,
    private readonly place: SignaturePlace,
  ) {
    this.run = String(cache.intern(JSON.stringify([this.hostKey(place.host), place.inputDir])));
    const { outputDir = "" } = place;
    this.writers = place.rewritesFiles === true ? String(cache.unique()) : this.valueKey(outputDir, "STRING");
  }

  /** `sourceOf` answers the signature of a linked node, all of which have theirs; `change` is the node's change key. */
  sign(node: PreparedNode, sourceOf: (id: string) => number | undefined, change: string | undefined): number {
    const { definition } = node;
    let text = `${this.cache.identity(definition)}|${this.run}`;
    if (definition.writesFiles) text += `@${this.writers}`;
    if (change !== undefined) text += `!${change}`;
    if (definition.notIdempotent || Object.values(definition.hidden).includes("UNIQUE_ID")) {
      text += `#${this.valueKey(node.id, "STRING")}`;
    }
    for (const { input, source, slot } of node.links) text += `|${input}>${sourceOf(source)}.${slot}`;
    for (const [input, spec] of Object.entries(definition.inputs)) {
      if (Object.hasOwn(node.values, input)) text += `|${input}=${this.valueKey(node.values[input], spec.type)}`;
    }
    for (const [input, value] of node.unknown) text += `|?${this.valueKey([input, value], "")}`;
    return this.cache.intern(text);
  }

  /** A signature no node has or will have. */
  unique(): number {
    return this.cache.unique();
  }

  /** What the node's `isChanged` says, as a text; undefined: always changed, which NaN and a failure mean too. */
  async changeKey({ definition, links, values }: PreparedNode): Promise<string | undefined> {
    const inputs: Record<string, unknown> = { ...values };
    for (const { input } of links) inputs[input] = undefined;
    try {
      const answer = await definition.isChanged!(inputs, this.place);
      return Number.isNaN(answer) ? undefined : this.valueKey(answer, "");
    } catch {
      // the reason shows when the node runs
      return undefined;
    }
  }

  /** A text that is equal for equal values only; 1, 1.0 and true are one INT, where any type goes 1 is not 1.0. NaN equals itself. */
  private valueKey(value: unknown, type: string, depth = 0): string {
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
        return value === null ? "z" : this.objectKey(value, depth);
      case "function":
        return `o${this.cache.identity(value)}`;
      default:
        return `o${this.cache.unique()}`;
    }
  }

  private hostKey(host: Host | undefined): unknown {
    return host === undefined ? null : (host.signature ?? this.cache.identity(host));
  }

  private objectKey(value: object, depth: number): string {
    if (value instanceof NumberLiteral) return `n${pythonText(value)}`;
    if (depth < MAX_DEPTH && Array.isArray(value) && value.length <= MAX_TEXT) {
      return `[${value.map((item) => this.valueKey(item, "", depth + 1)).join()}]`;
    }
    if (depth < MAX_DEPTH && isPlainObject(value)) {
      const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
      return `{${entries.map(([key, item]) => `${key.length}:${key}${this.valueKey(item, "", depth + 1)}`).join()}}`;
    }
    return `o${this.cache.identity(value)}`;
  }
}
