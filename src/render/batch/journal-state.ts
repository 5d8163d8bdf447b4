/** What a journal says of an item. */
export type ItemState = "unknown" | "cut" | "done";

const CUT = 1;
const DONE = 2;

/** The items of a journal in nine bytes each, so that a million of them are no matter. */
export class JournalState {
  private keys = new BigUint64Array(1024);
  private states = new Uint8Array(1024);
  /** Items that came to their end. */
  finished = 0;

  /** An item was begun; it counts as cut until it is done. A failed one is cut, too: it is tried again. */
  begin(item: number, key: string): void {
    this.grow(item);
    if (this.states[item] === DONE) this.finished--;
    this.keys[item] = BigInt(`0x${key}`);
    this.states[item] = CUT;
  }

  end(item: number, key: string): void {
    this.begin(item, key);
    this.states[item] = DONE;
    this.finished++;
  }

  /** Of the item with these values: what is known of other values at its place does not count. */
  of(item: number, key: string): ItemState {
    const state = this.states[item] ?? 0;
    if (state === 0 || this.keys[item] !== BigInt(`0x${key}`)) return "unknown";
    return state === DONE ? "done" : "cut";
  }

  isDone(item: number): boolean {
    return this.states[item] === DONE;
  }

  private grow(item: number): void {
    if (item < this.states.length) return;
    const size = Math.max(item + 1, this.states.length * 2);
    const [keys, states] = [new BigUint64Array(size), new Uint8Array(size)];
    keys.set(this.keys);
    states.set(this.states);
    this.keys = keys;
    this.states = states;
  }
}
