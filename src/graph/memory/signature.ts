import type { Host } from "../../host/types.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { PreparedNode } from "../prepared.js";
import type { RunMemory } from "./run-memory.js";
import { valueKey } from "./value-key.js";

/** Where a run takes models and files from: results of another place do not count. */
export interface SignatureScope {
  readonly host?: Host;
  readonly inputDir?: string;
  readonly outputDir?: string;
  /** Nodes that write files do so in every run, whatever the cache holds. */
  readonly rewritesFiles?: boolean;
}

/** What a node's `isChanged` answered. */
export interface Change {
  readonly answer: unknown;
}

/** Asks a node's `isChanged`; undefined: always changed, which NaN and a failure mean too. */
export async function askChange(
  { definition, links, values }: PreparedNode,
  place: ChoiceContext,
): Promise<Change | undefined> {
  const inputs: Record<string, unknown> = { ...values };
  for (const { input } of links) inputs[input] = undefined;
  try {
    const answer = await definition.isChanged!(inputs, place);
    return Number.isNaN(answer) ? undefined : { answer };
  } catch {
    // the reason shows when the node runs
    return undefined;
  }
}

/**
 * Signatures of the nodes of one run: class, inputs by declared type and the signatures of what they link to, so equal
 * numbers mean equal results, whatever the nodes' ids.
 */
export class Signer {
  private readonly run: string;
  private readonly writers: string;
  /** Of nodes that no other run will know again. */
  private readonly own = new Map<string, number>();
  private readonly opaqueKey = (value: unknown): string =>
    `o${typeof value === "symbol" ? this.memory.cache.unique() : this.memory.cache.identity(value as object)}`;

  constructor(
    private readonly memory: Pick<RunMemory, "cache" | "isVolatile">,
    private readonly place: SignatureScope,
  ) {
    this.run = String(memory.cache.intern(JSON.stringify([this.hostKey(place.host), place.inputDir])));
    const { outputDir = "" } = place;
    this.writers = place.rewritesFiles === true ? String(memory.cache.unique()) : this.valueKey(outputDir, "STRING");
  }

  /** `sourceOf` answers the signature of a linked node, all of which have theirs; `change` is what `isChanged` said. */
  sign(node: PreparedNode, sourceOf: (id: string) => number | undefined, change: Change | undefined): number {
    const { definition } = node;
    let text = `${this.memory.cache.identity(definition)}|${this.run}`;
    if (definition.writesFiles) text += `@${this.writers}`;
    if (change !== undefined) text += `!${this.valueKey(change.answer, "")}`;
    if (definition.notIdempotent || Object.values(definition.hidden).includes("UNIQUE_ID")) {
      text += `#${this.valueKey(node.id, "STRING")}`;
    }
    for (const { input, source, slot } of node.links) text += `|${input}>${sourceOf(source)}.${slot}`;
    for (const [input, spec] of Object.entries(definition.inputs)) {
      if (Object.hasOwn(node.values, input)) text += `|${input}=${this.valueKey(node.values[input], spec.type)}`;
    }
    for (const [input, value] of node.unknown) text += `|?${this.valueKey([input, value], "")}`;
    const isNew = definition.writesFiles && this.place.rewritesFiles === true;
    return isNew || this.memory.isVolatile(node.id) ? this.ownNumber(text) : this.memory.cache.intern(text);
  }

  private ownNumber(text: string): number {
    const number = this.own.get(text) ?? this.memory.cache.unique();
    this.own.set(text, number);
    return number;
  }

  /** A signature no node has or will have. */
  unique(): number {
    return this.memory.cache.unique();
  }

  private valueKey(value: unknown, type: string): string {
    return valueKey(value, type, this.opaqueKey);
  }

  private hostKey(host: Host | undefined): unknown {
    return host === undefined ? null : (host.signature ?? this.memory.cache.identity(host));
  }
}
