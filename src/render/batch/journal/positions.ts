import type { JournalState } from "./state.js";

/**
 * Positions of items: their numbers in the journal, from which the names of their files follow. In a batch that begins,
 * or whose items have not changed, that is the number in the source. An item that the journal has keeps its position
 * wherever it stands now, equal ones in their order; a new one gets the position of its number where that is not a
 * finished item's, else one behind all others.
 */
export class Positions {
  private taken = new Uint8Array(1024);
  private end: number;
  private index: ReturnType<JournalState["byKey"]> | undefined;
  /** Index of the next item, for a key that several items have. */
  private readonly cursors = new Map<string, number>();

  constructor(private readonly state: JournalState | undefined) {
    this.end = state?.length ?? 0;
  }

  of(index: number, key: string): number {
    if (this.state === undefined || this.state.length === 0) return index;
    const position = this.choose(this.state, index, key);
    this.take(position);
    return position;
  }

  private choose(state: JournalState, index: number, key: string): number {
    if (this.taken[index] !== 1 && state.has(index, key)) return index;
    const earlier = this.find(state, key);
    if (earlier !== undefined) return earlier;
    const isFree = this.taken[index] !== 1 && !state.isRecorded(index);
    return isFree ? index : this.end;
  }

  private find(state: JournalState, key: string): number | undefined {
    this.index ??= state.byKey();
    const { items, from } = this.index;
    const first = from(key);
    let at = this.cursors.get(key) ?? first;
    while (at < items.length && state.has(items[at]!, key) && this.taken[items[at]!] === 1) at++;
    if (at > first) this.cursors.set(key, at);
    return at < items.length && state.has(items[at]!, key) ? items[at] : undefined;
  }

  private take(position: number): void {
    if (position >= this.taken.length) {
      const grown = new Uint8Array(Math.max(position + 1, this.taken.length * 2));
      grown.set(this.taken);
      this.taken = grown;
    }
    this.taken[position] = 1;
    this.end = Math.max(this.end, position + 1);
  }
}
