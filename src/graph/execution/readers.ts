import type { PreparedNode } from "../prepared.js";

/** Counts who may still read a node's result, so that it leaves with its last reader. */
export class Readers {
  private readonly counts = new Map<string, number>();

  constructor(nodes: Iterable<PreparedNode>) {
    for (const node of nodes) this.addLinksOf(node);
  }

  /** A node that is to run, now or never: lazy links count as well. */
  addLinksOf({ links }: PreparedNode): void {
    for (const { source } of links) this.add(source);
  }

  add(id: string): void {
    this.counts.set(id, (this.counts.get(id) ?? 0) + 1);
  }

  /** A reader of these is done. Answers those that nobody reads any more. */
  remove(ids: Iterable<string>): string[] {
    const unread: string[] = [];
    for (const id of ids) {
      const left = (this.counts.get(id) ?? 0) - 1;
      this.counts.set(id, left);
      if (left === 0) unread.push(id);
    }
    return unread;
  }

  has(id: string): boolean {
    return (this.counts.get(id) ?? 0) > 0;
  }
}
