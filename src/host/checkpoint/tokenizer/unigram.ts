/** A piece's end in the trie: the parts of a key that find a node. */
const ROOT = 0;
const SLOT_BITS = 18;
const SLOTS = 2 ** SLOT_BITS;
/** How much lower than the lowest score an unknown character's is. */
const UNKNOWN_PENALTY = 10;
const NONE = -1;

/** A vocabulary of pieces with scores, of which a text takes those whose sum is highest: SentencePiece's Unigram model. */
export class Unigram {
  // the trie of all pieces, UTF-16 units as its edges: a node is the slot that its parent and its unit hash to
  readonly #parents = new Int32Array(SLOTS).fill(NONE);
  readonly #units = new Uint16Array(SLOTS);
  /** Id of the piece that ends at a node, or NONE. */
  readonly #ids = new Int32Array(SLOTS).fill(NONE);
  readonly #scores: Float32Array;
  readonly #unknown: number;
  readonly #unknownScore: number;
  // the best way to each place of a word: its score, and the last piece of it
  #best = new Float64Array();
  #starts = new Int32Array();
  #pieces = new Int32Array();

  /** Pieces in the order of their ids, and a score for each. `unknown` is the id of characters that no piece is. */
  constructor(pieces: readonly string[], scores: Float32Array, unknown: number) {
    this.#scores = scores;
    this.#unknown = unknown;
    this.#unknownScore = scores.reduce((least, score) => Math.min(least, score), 0) - UNKNOWN_PENALTY;
    for (const [id, piece] of pieces.entries()) this.#add(piece, id);
  }

  /**
   * Appends the ids of a word; neighbouring characters that are unknown have one. Takes as many steps as the word has
   * units, times the longest piece at most.
   */
  append(word: string, ids: number[]): void {
    this.#reserve(word.length);
    for (let at = 0; at < word.length; at += lengthAt(word, at)) this.#extend(word, at);
    const found: number[] = [];
    for (let end = word.length; end > 0; end = this.#starts[end]!) {
      const id = this.#pieces[end]!;
      if (id !== this.#unknown || found.at(-1) !== id) found.push(id);
    }
    for (const id of found.reverse()) ids.push(id);
  }

  /** Tries every piece that begins at a place, and an unknown character where none is as short as that. */
  #extend(word: string, at: number): void {
    const character = lengthAt(word, at);
    let isKnown = false;
    let node = ROOT;
    for (let end = at; end < word.length; ) {
      node = this.#child(node, word.charCodeAt(end));
      end++;
      if (node === NONE) break;
      const id = this.#ids[node]!;
      if (id === NONE) continue;
      this.#offer(at, end, id, this.#scores[id]!);
      isKnown ||= end - at === character;
    }
    if (!isKnown) this.#offer(at, at + character, this.#unknown, this.#unknownScore);
  }

  /** Takes a piece where it makes the best way to its end; of equal ways the first, which has the longest last piece. */
  #offer(start: number, end: number, id: number, score: number): void {
    const sum = this.#best[start]! + score;
    if (this.#starts[end] !== NONE && sum <= this.#best[end]!) return;
    this.#best[end] = sum;
    this.#starts[end] = start;
    this.#pieces[end] = id;
  }

  #reserve(length: number): void {
    if (this.#best.length <= length) {
      this.#best = new Float64Array(2 * length + 1);
      this.#starts = new Int32Array(2 * length + 1);
      this.#pieces = new Int32Array(2 * length + 1);
    }
    this.#starts.fill(NONE, 0, length + 1);
    this.#best[0] = 0;
  }

  #add(piece: string, id: number): void {
    let node = ROOT;
    for (let i = 0; i < piece.length; i++) {
      const slot = this.#slot(node, piece.charCodeAt(i));
      this.#parents[slot] = node;
      this.#units[slot] = piece.charCodeAt(i);
      node = slot;
    }
    this.#ids[node] = id;
  }

  #child(node: number, unit: number): number {
    const slot = this.#slot(node, unit);
    return this.#parents[slot] === NONE ? NONE : slot;
  }

  /** Slot of a child, or the free one where it would be. Slot 0 is the root's. */
  #slot(node: number, unit: number): number {
    let slot = Math.imul(Math.imul(node, 0x85ebca6b) ^ unit, 0x9e3779b1) >>> (32 - SLOT_BITS);
    while (
      slot === ROOT ||
      (this.#parents[slot] !== NONE && (this.#parents[slot] !== node || this.#units[slot] !== unit))
    )
      slot = (slot + 1) & (SLOTS - 1);
    return slot;
  }
}

/** Units of the character that begins there. */
const lengthAt = (text: string, at: number): number => (text.codePointAt(at)! > 0xffff ? 2 : 1);
