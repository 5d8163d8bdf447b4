import type { PreparedNode } from "../prepared.js";

/** These nodes and all that follow from them, of nodes in an order they can be computed in. */
export function followers(
  first: ReadonlySet<string>,
  order: readonly string[],
  nodes: ReadonlyMap<string, PreparedNode>,
): Set<string> {
  const found = new Set<string>();
  for (const id of order) {
    const node = nodes.get(id);
    if (first.has(id) || node?.links.some(({ source }) => found.has(source))) found.add(id);
  }
  return found;
}
