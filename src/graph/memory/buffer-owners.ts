import { releaseMemory } from "../../tensor/device-values.js";
import type { Entry } from "./cache.js";
import { type Footprint, type Memory, measure } from "./footprint.js";

/** Footprints of results, which never change; a cache hands out the same results to every run. */
const footprints = new WeakMap<Entry, Footprint>();

/** Counts the owners of each buffer among a run's results and returns a buffer to its pool with the last of them. */
export class BufferOwners {
  /** Number of results of this run alone that own the buffer. */
  private readonly owners = new Map<Memory, number>();
  /** Buffers of results that a cache holds or held: other runs may read them, so they never return to a pool. */
  private readonly shared = new Set<Memory>();
  /** True once a result was too large to measure: it may hold any buffer. */
  private hasUnmeasured = false;

  /** Marks the buffers of a result that a cache or an equal node of the run may hold as well. */
  share(entry: Entry): void {
    for (const buffer of this.buffersOf(entry)) this.shared.add(buffer);
  }

  /** Adds a result that this run alone holds. */
  own(entry: Entry): void {
    for (const buffer of this.buffersOf(entry)) this.owners.set(buffer, (this.owners.get(buffer) ?? 0) + 1);
  }

  /** Removes a result added by `own` that no node reads any more. */
  release(entry: Entry): void {
    for (const buffer of this.buffersOf(entry)) {
      const left = (this.owners.get(buffer) ?? 0) - 1;
      this.owners.set(buffer, left);
      if (left === 0 && !this.hasUnmeasured && !this.shared.has(buffer)) releaseMemory(buffer);
    }
  }

  private buffersOf(entry: Entry): readonly Memory[] {
    const footprint = footprints.get(entry) ?? measure(entry);
    footprints.set(entry, footprint);
    if (!footprint.isComplete) this.hasUnmeasured = true;
    return footprint.buffers;
  }
}
