import { LatentkitError } from "../errors.js";
import type { NodeDefinition } from "./define.js";

/** Nodes by key. */
export interface Registry {
  has(key: string): boolean;
  get(key: string): NodeDefinition | undefined;
  keys(): string[];
}

/** A registry of these nodes; with a base, its nodes too, and the new ones win. */
export function createRegistry(nodes: readonly NodeDefinition[], base?: Registry): Registry {
  const own = new Map<string, NodeDefinition>();
  for (const node of nodes) {
    if (own.has(node.key)) throw new LatentkitError("value.invalid", `Registry: two nodes have the key "${node.key}".`);
    own.set(node.key, node);
  }
  return Object.freeze({
    has: (key: string) => own.has(key) || (base?.has(key) ?? false),
    get: (key: string) => own.get(key) ?? base?.get(key),
    keys: () => [...new Set([...(base?.keys() ?? []), ...own.keys()])],
  });
}
