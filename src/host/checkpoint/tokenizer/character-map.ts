/** Bytes of a cluster that is looked up as a whole. */
const LONGEST_CLUSTER = 5;
/** Units of a text in which clusters are looked for at a time: the segmenter takes quadratic time on a long text. */
const WINDOW = 256;
const ASCII = 0x80;
const [LINE_FEED, RETURN] = [0x0a, 0x0d];

/**
 * Replaces characters by the map of a SentencePiece model: u32 size of a trie, the trie as a double array (Darts), and the
 * texts that its values point at, each with a NUL behind it.
 */
export class CharacterMap {
  readonly #trie: Uint32Array;
  readonly #texts: Uint8Array;
  readonly #decoded = new Map<number, string>();
  readonly #encoder = new TextEncoder();
  readonly #bytes = new Uint8Array(LONGEST_CLUSTER);
  readonly #ascii: readonly (string | undefined)[];
  readonly #segmenter = new Intl.Segmenter("und", { granularity: "grapheme" });

  constructor(map: Uint8Array) {
    const view = new DataView(map.buffer, map.byteOffset, map.byteLength);
    const size = view.getUint32(0, true);
    this.#trie = Uint32Array.from({ length: size / 4 }, (_, index) => view.getUint32(4 + 4 * index, true));
    this.#texts = map.subarray(4 + size);
    this.#ascii = Array.from({ length: ASCII }, (_, code) => this.#lookUp(String.fromCharCode(code)));
  }

  /**
   * The text with its clusters of up to 5 bytes replaced: by what stands for their shortest beginning in the map, and the
   * rest of such a cluster is lost, as in the reference. Others are replaced character by character.
   */
  replaced(text: string): string {
    const parts: string[] = [];
    let kept = 0;
    const replace = (from: number, length: number, by: string | undefined): void => {
      if (by === undefined) return;
      parts.push(text.slice(kept, from), by);
      kept = from + length;
    };
    for (let at = 0; at < text.length; ) {
      const code = text.charCodeAt(at);
      if (isAlone(code, text.charCodeAt(at + 1))) {
        replace(at, 1, this.#ascii[code]);
        at++;
      } else {
        const [start, end] = [at, windowEnd(text, at)];
        for (const { segment, index } of this.#segmenter.segment(text.slice(start, end))) {
          // it may go on after the window
          if (index > 0 && start + index + segment.length === end && end < text.length) break;
          this.#replaceCluster(segment, start + index, replace);
          at = start + index + segment.length;
        }
      }
    }
    return parts.length === 0 ? text : parts.join("") + text.slice(kept);
  }

  #replaceCluster(cluster: string, at: number, replace: (from: number, length: number, by?: string) => void): void {
    const whole = this.#lookUp(cluster);
    if (whole !== undefined || isOne(cluster)) {
      replace(at, cluster.length, whole);
      return;
    }
    let from = at;
    for (const character of cluster) {
      replace(from, character.length, this.#lookUp(character));
      from += character.length;
    }
  }

  /** Text for the shortest beginning of one of up to 5 bytes; undefined for none, and for longer ones. */
  #lookUp(text: string): string | undefined {
    const { read, written } = this.#encoder.encodeInto(text, this.#bytes);
    if (read < text.length) return undefined;
    let node = offsetOf(this.#trie[0]!);
    for (let i = 0; i < written; i++) {
      const byte = this.#bytes[i]!;
      node ^= byte;
      const unit = this.#trie[node];
      if (byte === 0 || unit === undefined || (unit & 0x800000ff) !== byte) return undefined;
      node ^= offsetOf(unit);
      if ((unit & 0x100) !== 0) return this.#textAt(this.#trie[node]! & 0x7fffffff);
    }
    return undefined;
  }

  #textAt(from: number): string {
    let text = this.#decoded.get(from);
    if (text === undefined) {
      text = new TextDecoder().decode(this.#texts.subarray(from, this.#texts.indexOf(0, from)));
      this.#decoded.set(from, text);
    }
    return text;
  }
}

/** Distance from a unit of the trie to those after it. */
const offsetOf = (unit: number): number => (unit >>> 10) << ((unit & 0x200) >>> 6);

/** Whether an ASCII character is a cluster whatever stands before it: nothing joins it but what is not ASCII. */
const isAlone = (code: number, next: number): boolean =>
  code < ASCII && !(next >= ASCII) && !(code === RETURN && next === LINE_FEED);

const isOne = (cluster: string): boolean => cluster.length === (cluster.codePointAt(0)! > 0xffff ? 2 : 1);

/** End of the window that begins there, not inside a pair of surrogates. */
function windowEnd(text: string, at: number): number {
  const end = Math.min(at + WINDOW, text.length);
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}
