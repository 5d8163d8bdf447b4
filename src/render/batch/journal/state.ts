/** State of an item in a journal; a failed one is "cut" too: it is tried again. */
export type ItemState = "unknown" | "cut" | "done";

const CUT = 1;
const DONE = 2;
/** Done, but one of its files is missing or truncated. */
const GONE = 3;
/** Done without some outputs, which could not be computed. */
const PARTIAL = 4;

/** The items of a journal by position, in seventeen bytes each: a million take little memory. */
export class JournalState {
  #keys = new BigUint64Array(1024);
  #states = new Uint8Array(1024);
  #offsets = new Float64Array(1024);
  readonly #leftovers = new Map<number, readonly string[]>();
  /** Number of items that are done and have their files. */
  finished = 0;
  /** Number of items that were done, and have lost a file since. */
  gone = 0;
  /** Number of items that were done without some of their outputs, and have their files. */
  partial = 0;
  /** One more than the highest position. */
  length = 0;
  readonly #takesPartial: boolean;

  /** `takesPartial`: an item that was rendered without some outputs counts as done. */
  constructor(takesPartial = false) {
    this.#takesPartial = takesPartial;
  }

  /** An item was begun, or failed; it counts as cut until it is done. */
  begin(item: number, key: string): void {
    this.#set(item, key, CUT);
  }

  /** `offset`: first byte of the record that names its files. */
  end(item: number, key: string, offset: number): void {
    this.#set(item, key, DONE, offset);
    this.finished++;
  }

  /** An item was done without some of its outputs; it wrote these files. */
  endPartial(item: number, key: string, files: readonly string[], offset: number): void {
    this.#set(item, key, PARTIAL, offset);
    this.partial++;
    if (this.#takesPartial) this.finished++;
    else if (files.length > 0) this.#leftovers.set(item, files);
  }

  /** An item was done, and has lost a file since; `left`: its files that still exist, if only in part. */
  lose(item: number, key: string, left: readonly string[]): void {
    this.#set(item, key, GONE);
    this.gone++;
    if (left.length > 0) this.#leftovers.set(item, left);
  }

  /** State of the item with this key; records of other values at its position do not count. */
  of(item: number, key: string): ItemState {
    if (!this.has(item, key)) return "unknown";
    return this.#isDone(item) ? "done" : "cut";
  }

  /** Whether the journal has an item of this key at the position. */
  has(item: number, key: string): boolean {
    return this.#isTaken(item) && this.#keys[item] === keyBits(key);
  }

  /** Whether the item ended once, with any values. */
  isRecorded(item: number): boolean {
    return this.#isDone(item) || this.#states[item] === GONE || this.#states[item] === PARTIAL;
  }

  /** Files of an item that exist while others are missing or truncated. */
  leftoversOf(item: number): readonly string[] {
    return this.#leftovers.get(item) ?? [];
  }

  /** First byte of the record that names the files of an item that is done. */
  offsetOf(item: number): number {
    return this.#offsets[item]!;
  }

  /** Positions of all items in the order of their keys, those of one key in order; `from`: index of a key's first one. */
  byKey(): { readonly items: Uint32Array; from(key: string): number } {
    const keys = this.#keys;
    const items = Uint32Array.from({ length: this.length }, (_, item) => item).filter((item) => this.#isTaken(item));
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

  #isTaken(item: number): boolean {
    return (this.#states[item] ?? 0) !== 0;
  }

  #isDone(item: number): boolean {
    return this.#states[item] === DONE || (this.#takesPartial && this.#states[item] === PARTIAL);
  }

  #set(item: number, key: string, state: number, offset = 0): void {
    this.#grow(item);
    if (this.#isDone(item)) this.finished--;
    if (this.#states[item] === PARTIAL) this.partial--;
    if (this.#states[item] === GONE) this.gone--;
    this.#leftovers.delete(item);
    this.#keys[item] = keyBits(key);
    this.#states[item] = state;
    this.#offsets[item] = offset;
    this.length = Math.max(this.length, item + 1);
  }

  #grow(item: number): void {
    if (item < this.#states.length) return;
    const size = Math.max(item + 1, this.#states.length * 2);
    const keys = this.#keys;
    const states = this.#states;
    const offsets = this.#offsets;
    this.#keys = new BigUint64Array(size);
    this.#states = new Uint8Array(size);
    this.#offsets = new Float64Array(size);
    this.#keys.set(keys);
    this.#states.set(states);
    this.#offsets.set(offsets);
  }
}

const keyBits = (key: string): bigint => BigInt(`0x${key}`);

/**
 * Positions of items: their numbers in the journal, which the names of their files are made from. In a new batch,
 * or if the items have not changed, that is the number in the source. An item that the journal has keeps its position
 * wherever it stands now, equal ones in their order; a new one gets the position of its number unless that belongs to a
 * finished item, else one after all others.
 */
export class Positions {
  #taken = new Uint8Array(1024);
  #end: number;
  #index: ReturnType<JournalState["byKey"]> | undefined;
  /** Index of the next item, for a key that several items have. */
  readonly #cursors = new Map<string, number>();
  readonly #state: JournalState | undefined;

  constructor(state: JournalState | undefined) {
    this.#state = state;
    this.#end = state?.length ?? 0;
  }

  of(index: number, key: string): number {
    if (this.#state === undefined || this.#state.length === 0) return index;
    const position = this.#choose(this.#state, index, key);
    this.#take(position);
    return position;
  }

  #choose(state: JournalState, index: number, key: string): number {
    if (this.#taken[index] !== 1 && state.has(index, key)) return index;
    const earlier = this.#find(state, key);
    if (earlier !== undefined) return earlier;
    const isFree = this.#taken[index] !== 1 && !state.isRecorded(index);
    return isFree ? index : this.#end;
  }

  #find(state: JournalState, key: string): number | undefined {
    this.#index ??= state.byKey();
    const { items, from } = this.#index;
    const first = from(key);
    let at = this.#cursors.get(key) ?? first;
    while (at < items.length && state.has(items[at]!, key) && this.#taken[items[at]!] === 1) at++;
    if (at > first) this.#cursors.set(key, at);
    return at < items.length && state.has(items[at]!, key) ? items[at] : undefined;
  }

  #take(position: number): void {
    if (position >= this.#taken.length) {
      const grown = new Uint8Array(Math.max(position + 1, this.#taken.length * 2));
      grown.set(this.#taken);
      this.#taken = grown;
    }
    this.#taken[position] = 1;
    this.#end = Math.max(this.#end, position + 1);
  }
}
