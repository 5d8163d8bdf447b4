/** What a journal says of an item. */
export type ItemState = "unknown" | "cut" | "done";

const CUT = 1;
const DONE = 2;
/** Done, but a file of it is gone, or cut. */
const GONE = 3;
/** Done without some outputs, which could not be computed. */
const PARTIAL = 4;

/** The items of a journal in nine bytes each, so that a million of them are no matter. */
export class JournalState {
  private keys = new BigUint64Array(1024);
  private states = new Uint8Array(1024);
  private readonly left = new Map<number, readonly string[]>();
  /** Items that came to their end, and have their files. */
  finished = 0;
  /** Items that came to their end, and have lost a file since. */
  gone = 0;
  /** Items that came to their end without some of their outputs, and have their files. */
  partial = 0;
  /** One more than the highest number. */
  length = 0;

  /** `takesPartial`: an item that was rendered without some outputs counts as done. */
  constructor(private readonly takesPartial = false) {}

  /** An item was begun; it counts as cut until it is done. A failed one is cut, too: it is tried again. */
  begin(item: number, key: string): void {
    this.set(item, key, CUT);
  }

  end(item: number, key: string): void {
    this.set(item, key, DONE);
    this.finished++;
  }

  /** An item came to its end without some of its outputs; it wrote these files. */
  endPartial(item: number, key: string, files: readonly string[]): void {
    this.set(item, key, PARTIAL);
    this.partial++;
    if (this.takesPartial) this.finished++;
    else if (files.length > 0) this.left.set(item, files);
  }

  /** An item came to its end, and has lost a file since; of its files these are there, if only in part. */
  lose(item: number, key: string, left: readonly string[]): void {
    this.set(item, key, GONE);
    this.gone++;
    if (left.length > 0) this.left.set(item, left);
  }

  /** Of the item with these values: what is known of other values at its place does not count. */
  of(item: number, key: string): ItemState {
    if (!this.has(item, key)) return "unknown";
    return this.isDone(item) ? "done" : "cut";
  }

  /** Whether this is the item's key. */
  has(item: number, key: string): boolean {
    return this.isKnown(item) && this.keys[item] === keyBits(key);
  }

  isKnown(item: number): boolean {
    return (this.states[item] ?? 0) !== 0;
  }

  isDone(item: number): boolean {
    return this.states[item] === DONE || (this.takesPartial && this.states[item] === PARTIAL);
  }

  /** Whether the item came to its end once, with whatever values. */
  isRecorded(item: number): boolean {
    return this.isDone(item) || this.states[item] === GONE || this.states[item] === PARTIAL;
  }

  /** Files of an item that are there while others are gone, or not whole. */
  leftOf(item: number): readonly string[] {
    return this.left.get(item) ?? [];
  }

  /** Numbers of all items by their keys, those of one key in order. */
  byKey(): { readonly items: Uint32Array; from(key: string): number } {
    const { keys } = this;
    const items = Uint32Array.from({ length: this.length }, (_, item) => item).filter((item) => this.isKnown(item));
    items.sort((a, b) => (keys[a] === keys[b] ? a - b : keys[a]! < keys[b]! ? -1 : 1));
    const from = (key: string) => {
      const bits = keyBits(key);
      let [low, high] = [0, items.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (keys[items[middle]!]! < bits) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    return { items, from };
  }

  private set(item: number, key: string, state: number): void {
    this.grow(item);
    if (this.isDone(item)) this.finished--;
    if (this.states[item] === PARTIAL) this.partial--;
    if (this.states[item] === GONE) this.gone--;
    this.left.delete(item);
    this.keys[item] = keyBits(key);
    this.states[item] = state;
    this.length = Math.max(this.length, item + 1);
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

const keyBits = (key: string): bigint => BigInt(`0x${key}`);
