import { describe, LatentkitError } from "../base/errors.js";
import { REGISTRY } from "../base/options.js";
import type { NodeDefinition } from "./define.js";

/** Nodes by key; its type knows their keys, inputs and results. */
export interface Registry<Nodes extends NodeDefinition = NodeDefinition> {
  has(key: string): boolean;
  get(key: string): NodeDefinition | undefined;
  keys(): string[];
  /** Carries static types only; never set. */
  readonly nodes?: Nodes;
}

/** Makes a registry of these nodes and those of a base, which the new ones override. */
export function createRegistry<const Own extends readonly NodeDefinition[], Base extends NodeDefinition = never>(
  nodes: Own,
  base?: Registry<Base>,
): Registry<Own[number] | Exclude<Base, { readonly key: Own[number]["key"] }>> {
  if (!Array.isArray(nodes)) throw wrong("a list of nodes", nodes);
  if (base !== undefined && !REGISTRY[1](base)) throw wrong(`${REGISTRY[0]}, as the base`, base);
  const own = new Map<string, NodeDefinition>();
  for (const node of nodes) {
    if (typeof node?.key !== "string" || typeof node.run !== "function")
      throw wrong("nodes that defineNode returned", node);
    if (own.has(node.key)) throw new LatentkitError("value.invalid", `Registry: two nodes have the key "${node.key}".`);
    own.set(node.key, node);
  }
  return Object.freeze({
    has: (key: string) => own.has(key) || (base?.has(key) ?? false),
    get: (key: string) => own.get(key) ?? base?.get(key),
    keys: () => [...new Set([...(base?.keys() ?? []), ...own.keys()])],
  });
}

const wrong = (expected: string, received: unknown): LatentkitError =>
  new LatentkitError("value.invalid", `Registry: expected ${expected}, received ${describe(received)}.`);
