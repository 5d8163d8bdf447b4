/** An order in which nodes can be computed, and the cycles that keep others out of it. */
export interface Cycles {
  /** Nodes that are part of a cycle or need one. */
  readonly stuck: ReadonlySet<string>;
  /** All other nodes, each after its sources. */
  readonly order: readonly string[];
  /** Nodes of each cycle in the direction of the data, lowest id first. */
  readonly cycles: readonly (readonly string[])[];
}

/** Finds cycles in time linear in nodes and links, at any depth. `sources` holds the linked nodes of every node. */
export function findCycles(sources: ReadonlyMap<string, readonly string[]>): Cycles {
  const waiting = new Map<string, number>();
  const consumers = new Map<string, string[]>();
  for (const [id, from] of sources) {
    waiting.set(id, from.length);
    for (const source of from) {
      const list = consumers.get(source);
      if (list === undefined) consumers.set(source, [id]);
      else list.push(id);
    }
  }
  const order = [...waiting.keys()].filter((id) => waiting.get(id) === 0);
  for (const id of order) {
    waiting.delete(id);
    for (const consumer of consumers.get(id) ?? []) {
      const left = waiting.get(consumer)! - 1;
      waiting.set(consumer, left);
      if (left === 0) order.push(consumer);
    }
  }
  const stuck = new Set(waiting.keys());
  return { stuck, order, cycles: nameCycles(stuck, sources) };
}

function nameCycles(stuck: ReadonlySet<string>, sources: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const walkOf = new Map<string, number>();
  let walk = 0;
  for (const start of stuck) {
    walk++;
    const path: string[] = [];
    let id = start;
    while (!walkOf.has(id)) {
      walkOf.set(id, walk);
      path.push(id);
      // every stuck node waits for a stuck node
      id = sources.get(id)!.find((source) => stuck.has(source))!;
    }
    // a walk that ends on an earlier one reaches a cycle that has its name
    if (walkOf.get(id) === walk) cycles.push(lowestFirst(path.slice(path.indexOf(id)).reverse()));
  }
  return cycles;
}

function lowestFirst(cycle: string[]): string[] {
  let lowest = 0;
  for (let i = 1; i < cycle.length; i++) {
    if (cycle[i]!.localeCompare(cycle[lowest]!, "en", { numeric: true }) < 0) lowest = i;
  }
  return [...cycle.slice(lowest), ...cycle.slice(0, lowest)];
}
