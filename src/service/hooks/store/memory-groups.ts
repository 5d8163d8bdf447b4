import type { GroupSlice } from "../run.js";
import type { MemoryRun } from "./memory-runs.js";

interface Member {
  readonly index: number;
  readonly run: MemoryRun;
  /** Null before the end. */
  position: number | null;
}

interface Group {
  readonly id: string;
  readonly size: number;
  ended: number;
  /** By the ids of their runs. */
  readonly members: Map<string, Member>;
}

/** The groups of a memory store, each as long as one of its runs. */
export class MemoryGroups {
  readonly #groups = new Map<string, Group>();
  readonly #byRun = new Map<string, Group>();

  add(id: string, runs: readonly MemoryRun[]): void {
    const members = runs.map((run, index): [string, Member] => [run.row.id, { index, run, position: null }]);
    const group = { id, size: runs.length, ended: 0, members: new Map(members) };
    this.#groups.set(id, group);
    for (const [runId] of members) this.#byRun.set(runId, group);
  }

  of(runId: string): string | null {
    return this.#byRun.get(runId)?.id ?? null;
  }

  /** Counts the end of a run, of a group or not. */
  countEnd(runId: string): void {
    const group = this.#byRun.get(runId);
    if (group === undefined) return;
    group.ended += 1;
    group.members.get(runId)!.position = group.ended;
  }

  remove(runId: string): void {
    const group = this.#byRun.get(runId);
    if (group === undefined) return;
    this.#byRun.delete(runId);
    group.members.delete(runId);
    if (group.members.size === 0) this.#groups.delete(group.id);
  }

  read(id: string, after: number, most: number): GroupSlice | null {
    const group = this.#groups.get(id);
    if (group === undefined) return null;
    const ends = [...group.members.values()]
      .flatMap(({ position, index, run }) =>
        position === null ? [] : [{ position, index, runId: run.row.id, endedMark: run.endedMark! }],
      )
      .sort((a, b) => a.position - b.position);
    const { size, ended } = group;
    return {
      ...{ size, ended, oldest: ends[0]?.position ?? ended + 1 },
      ends: ends.filter(({ position }) => position > after).slice(0, most),
    };
  }
}
