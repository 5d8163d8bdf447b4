/** The graph as the plan reads it. */
export interface PlanGraph {
  /** Returns the ids that a node waits for: its sources, without lazy ones and those that have results. */
  sourcesOf(id: string): Iterable<string>;
  isOutput(id: string): boolean;
}

interface Step {
  readonly id: string;
  /** Position in the order in which nodes were added. */
  readonly order: number;
  readonly isOutput: boolean;
  /** Steps that this one waits for. */
  readonly sources: Set<Step>;
  readonly consumers: Step[];
  waitsFor: number;
  feedsOutput: boolean;
  rank: Rank;
  state: "waiting" | "ready" | "taken" | "done";
}

/** Distance to an output: 0 an output, 1 feeds one, 2 two links away, 3 any other; the nearest run first. */
type Rank = 0 | 1 | 2 | 3;

/**
 * The order of a run: topological; among the ready nodes those nearest to an output come first, then those added
 * first. Links are followed from the outputs, the last listed first. Costs O(log n) for each node.
 */
export class Plan {
  readonly #steps = new Map<string, Step>();
  readonly #ready: readonly Heap[] = [new Heap(), new Heap(), new Heap(), new Heap()];
  #open = 0;
  #created = 0;
  readonly #graph: PlanGraph;

  constructor(graph: PlanGraph) {
    this.#graph = graph;
  }

  /** Number of nodes that are not done. */
  get size(): number {
    return this.#open;
  }

  /** Adds a node and all that it waits for. */
  add(id: string): void {
    const added: Step[] = [];
    const links: [source: string, step: Step][] = [];
    const stack = [id];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      if (this.#steps.has(next)) continue;
      const step = this.#create(next);
      added.push(step);
      for (const source of this.#graph.sourcesOf(next)) {
        stack.push(source);
        links.push([source, step]);
      }
    }
    for (const [source, step] of links) this.#join(this.#steps.get(source)!, step);
    for (const step of added) this.#settle(step);
  }

  /** Makes `to` wait for `from`, which is added unless it is in the plan. */
  link(from: string, to: string): void {
    this.add(from);
    this.#join(this.#steps.get(from)!, this.#steps.get(to)!);
  }

  /** Takes the next node to run, until it is `done` or put `back`; undefined if none is ready. */
  take(): string | undefined {
    for (const [rank, heap] of this.#ready.entries()) {
      for (let step = heap.pop(); step !== undefined; step = heap.pop()) {
        // a promoted step is in a better heap as well
        if (step.state !== "ready" || step.rank !== rank) continue;
        step.state = "taken";
        return step.id;
      }
    }
    return undefined;
  }

  /** Puts a taken node back: it runs again once the nodes that it now waits for are done. */
  back(id: string): void {
    const step = this.#steps.get(id)!;
    step.state = "waiting";
    this.#settle(step);
  }

  done(id: string): void {
    const step = this.#steps.get(id)!;
    step.state = "done";
    this.#open--;
    for (const consumer of step.consumers) {
      consumer.waitsFor--;
      this.#settle(consumer);
    }
  }

  /** Removes a node that is done: if it is needed again, it is added and runs again. */
  forget(id: string): void {
    if (this.#steps.get(id)?.state === "done") this.#steps.delete(id);
  }

  /** Ids of the nodes that are not done, in the order in which they were added. */
  waiting(): string[] {
    return [...this.#steps.values()].filter(({ state }) => state !== "done").map(({ id }) => id);
  }

  #create(id: string): Step {
    const isOutput = this.#graph.isOutput(id);
    const step: Step = {
      id,
      order: this.#created++,
      isOutput,
      sources: new Set(),
      consumers: [],
      waitsFor: 0,
      feedsOutput: false,
      rank: isOutput ? 0 : 3,
      state: "waiting",
    };
    this.#steps.set(id, step);
    this.#open++;
    return step;
  }

  #join(from: Step, to: Step): void {
    if (from.state === "done" || to.sources.has(from)) return;
    to.sources.add(from);
    from.consumers.push(to);
    to.waitsFor++;
    if (to.state === "ready") to.state = "waiting";
    if (to.isOutput) this.#markFeeding(from);
    else if (to.feedsOutput) this.#promote(from, 2);
  }

  #markFeeding(step: Step): void {
    if (step.feedsOutput) return;
    step.feedsOutput = true;
    this.#promote(step, 1);
    for (const source of step.sources) this.#promote(source, 2);
  }

  #promote(step: Step, rank: Rank): void {
    if (rank >= step.rank) return;
    step.rank = rank;
    if (step.state === "ready") this.#ready[rank]!.push(step);
  }

  #settle(step: Step): void {
    if (step.waitsFor > 0 || step.state !== "waiting") return;
    step.state = "ready";
    this.#ready[step.rank]!.push(step);
  }
}

/** Steps by their order, the lowest first. */
class Heap {
  readonly #items: Step[] = [];

  push(step: Step): void {
    const items = this.#items;
    let at = items.push(step) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent]!.order <= step.order) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = step;
  }

  pop(): Step | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (items.length === 0 || last === undefined) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && items[child + 1]!.order < items[child]!.order) child++;
      if (items[child]!.order >= last.order) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = last;
    return first;
  }
}
