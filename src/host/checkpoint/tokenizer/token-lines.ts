const SPACE = 0x20;
const LINE_END = 0x0a;
/**
 * Lines of one token, or of two that earlier lines have made; each makes a token whose id is its number. Looks tokens up
 * by their bytes: strings would take twice as long.
 */
export class TokenLines {
  readonly #bytes: Uint8Array;
  /** First byte of each line, and the one after the last line. */
  readonly #starts: number[] = [0];
  /** Id of the token in each slot plus 1, 0 where it is free. */
  readonly #slots: Int32Array;
  readonly #shift: number;

  /** The table has 2^slotBits slots, at least twice the number of lines. */
  constructor(bytes: Uint8Array, slotBits: number) {
    this.#bytes = bytes;
    this.#slots = new Int32Array(2 ** slotBits);
    this.#shift = 32 - slotBits;
  }

  /** Calls back for each line of two tokens, with their ids and its own. */
  forEachPair(callback: (left: number, right: number, id: number) => void): void {
    const bytes = this.#bytes;
    let start = 0;
    let space = -1;
    for (let at = 0; at < bytes.length; at++) {
      if (bytes[at] === SPACE) space = at;
      if (bytes[at] !== LINE_END) continue;
      const id = this.#starts.length - 1;
      this.#starts.push(at + 1);
      if (space >= start) callback(this.#find(start, space), this.#find(space + 1, at), id);
      this.#slots[this.#slot(start, at)] = id + 1;
      start = at + 1;
    }
  }

  #find(from: number, to: number): number {
    return this.#slots[this.#slot(from, to)]! - 1;
  }

  /** Slot of the token of these bytes, or the free one where it would be. */
  #slot(from: number, to: number): number {
    const bytes = this.#bytes;
    let hash = 0x811c9dc5;
    for (let at = from; at < to; at++) {
      if (bytes[at] !== SPACE) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
    }
    let slot = Math.imul(hash, 0x9e3779b1) >>> this.#shift;
    for (let id = this.#slots[slot]!; id !== 0; id = this.#slots[slot]!) {
      if (this.#isLine(id - 1, from, to)) break;
      slot = (slot + 1) & (this.#slots.length - 1);
    }
    return slot;
  }

  /** Whether a line has these bytes, apart from its space. */
  #isLine(id: number, from: number, to: number): boolean {
    const bytes = this.#bytes;
    const end = this.#starts[id + 1]! - 1;
    let at = this.#starts[id]!;
    for (let other = from; other < to; other++, at++) {
      if (bytes[at] === SPACE) at++;
      if (bytes[at] !== bytes[other]) return false;
    }
    return at === end;
  }
}
