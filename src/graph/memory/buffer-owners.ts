import { giveBack } from "../../tensor/give-back.js";
import type { Entry } from "./cache.js";
import { type Footprint, type Holding, measure } from "./footprint.js";

/** Of results that nothing changes; a cache hands out the same ones to every run. */
const footprints = new WeakMap<Entry, Footprint>();

/**
 * The memory of a run's results: who holds it, so that it goes back when its last holder leaves. Only for runs of nodes
 * and hosts that keep no tensors, and whose events nobody keeps values of.
 */
export class Lending {
  /** Results of this run alone that hold the memory. */
  private readonly holders = new Map<Holding, number>();
  /** Memory of results that a cache holds or held: other runs may read it. */
  private readonly shared = new Set<Holding>();
  /** A result too large to look through may hold anything. */
  private isBlind = false;

  /** A result that a cache holds as well. */
  share(entry: Entry): void {
    for (const buffer of this.buffersOf(entry)) this.shared.add(buffer);
  }

  /** A result that this run alone holds. */
  hold(entry: Entry): void {
    for (const buffer of this.buffersOf(entry)) this.holders.set(buffer, (this.holders.get(buffer) ?? 0) + 1);
  }

  /** A result of `hold` that nobody reads any more. */
  release(entry: Entry): void {
    for (const buffer of this.buffersOf(entry)) {
      const left = (this.holders.get(buffer) ?? 0) - 1;
      this.holders.set(buffer, left);
      if (left === 0 && !this.isBlind && !this.shared.has(buffer)) giveBack(buffer);
    }
  }

  private buffersOf(entry: Entry): readonly Holding[] {
    const found = footprints.get(entry) ?? measure(entry);
    footprints.set(entry, found);
    if (!found.isWhole) this.isBlind = true;
    return found.buffers;
  }
}
