import type { Host } from "../../host/types.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import type { GraphRun } from "../job.js";
import type { PreparedNode } from "../prepared.js";
import type { RunMemory } from "./run-memory.js";
import { valueKey } from "./value-key.js";

/** Value that a node's `isChanged` returned. */
export interface Change {
  readonly value: unknown;
}

/** Calls a node's `isChanged`; undefined: always changed, which NaN and a failure mean as well. */
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
 * Equal numbers mean equal results, whatever the ids of the nodes.
 */
export class Signer {
  private readonly run: string;
  private readonly writers: string;
  /** Signatures of nodes that no other run will have, by their text. */
  private readonly own = new Map<string, number>();
  private readonly opaqueKey = (value: unknown): string =>
    `o${typeof value === "symbol" ? this.memory.cache.unique() : this.memory.cache.identity(value as object)}`;

  constructor(
    private readonly memory: Pick<RunMemory, "cache" | "isVolatile">,
    private readonly job: Pick<GraphRun, "inputDir" | "outputDir" | "rewritesFiles">,
    host: Host | undefined,
  ) {
    this.run = String(memory.cache.intern(JSON.stringify([this.hostKey(host), job.inputDir])));
    const { outputDir = "" } = job;
    this.writers = job.rewritesFiles === true ? String(memory.cache.unique()) : this.valueKey(outputDir, "STRING");
  }

  /** Signs a node. `sourceOf` returns the signature of a linked node, which is signed before; `change` is of `isChanged`. */
  sign(node: PreparedNode, sourceOf: (id: string) => number | undefined, change: Change | undefined): number {
    const { definition } = node;
    let text = `${this.memory.cache.identity(definition)}|${this.run}`;
    if (definition.writesFiles) text += `@${this.writers}`;
    if (change !== undefined) text += `!${this.valueKey(change.value, "")}`;
    if (definition.notIdempotent || Object.values(definition.hidden).includes("UNIQUE_ID")) {
      text += `#${this.valueKey(node.id, "STRING")}`;
    }
    for (const { input, source, slot } of node.links) text += `|${input}>${sourceOf(source)}.${slot}`;
    for (const [input, spec] of Object.entries(definition.inputs)) {
      if (Object.hasOwn(node.values, input)) text += `|${input}=${this.valueKey(node.values[input], spec.type)}`;
    }
    for (const [input, value] of node.unknown) text += `|?${this.valueKey([input, value], "")}`;
    const isNew = definition.writesFiles && this.job.rewritesFiles === true;
    return isNew || this.memory.isVolatile(node.id) ? this.ownNumber(text) : this.memory.cache.intern(text);
  }

  /** Whether a node's results are of no use to other runs. */
  isVolatile(id: string): boolean {
    return this.memory.isVolatile(id);
  }

  private ownNumber(text: string): number {
    const number = this.own.get(text) ?? this.memory.cache.unique();
    this.own.set(text, number);
    return number;
  }

  /** Returns a signature that no node has or will have. */
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
