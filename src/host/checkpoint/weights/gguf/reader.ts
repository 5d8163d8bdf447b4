/** Reads the beginning of a file of `fileBytes`, of which `bytes` are there. Numbers are little-endian. */
export class HeaderReader {
  at = 0;
  readonly #view: DataView;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly fileBytes: number,
    /** The error of a header that says something impossible. */
    readonly invalid: (expected: string, received: string) => Error,
  ) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Moves on by `count` bytes and returns where they begin. Throws MORE where they are in the file, but not there. */
  take(count: number): number {
    const from = this.at;
    if (count > this.fileBytes - from)
      throw this.invalid("a header within the file", `the first ${this.fileBytes} bytes of one: download it again`);
    if (count > this.bytes.length - from) throw MORE;
    this.at = from + count;
    return from;
  }

  u32(): number {
    return this.#view.getUint32(this.take(4), true);
  }

  /** A u64, as a number of things that a file can have. */
  u64(what: string): number {
    const from = this.take(8);
    const high = this.#view.getUint32(from + 4, true);
    if (high < 2 ** 21) return high * 2 ** 32 + this.#view.getUint32(from, true);
    throw this.invalid(`${what} below 2^53`, `${this.#view.getBigUint64(from, true)}`);
  }

  /** Text in UTF-8, of at most that many bytes. */
  text(what: string, most: number): string {
    const length = this.u64(`a length of ${what}`);
    if (length > most) throw this.invalid(`${what} of at most ${most} bytes`, `${length}`);
    const from = this.take(length);
    try {
      return UTF8.decode(this.bytes.subarray(from, from + length));
    } catch {
      throw this.invalid(`${what} in UTF-8`, "other bytes");
    }
  }

  /** A number of one of the format's types, as text. */
  number({ bytes, read }: NumberType): string {
    return String(read(this.#view, this.take(bytes)));
  }
}

/** Thrown where a header goes on behind the bytes that have been read. */
export const MORE = new Error("more of the header is needed");

const UTF8 = new TextDecoder("utf-8", { fatal: true });

interface NumberType {
  readonly bytes: number;
  readonly read: (view: DataView, at: number) => number | bigint | boolean;
}

/** Types of values that are numbers, by the format's own. */
export const NUMBERS: Readonly<Record<number, NumberType>> = {
  0: { bytes: 1, read: (view, at) => view.getUint8(at) },
  1: { bytes: 1, read: (view, at) => view.getInt8(at) },
  2: { bytes: 2, read: (view, at) => view.getUint16(at, true) },
  3: { bytes: 2, read: (view, at) => view.getInt16(at, true) },
  4: { bytes: 4, read: (view, at) => view.getUint32(at, true) },
  5: { bytes: 4, read: (view, at) => view.getInt32(at, true) },
  6: { bytes: 4, read: (view, at) => view.getFloat32(at, true) },
  7: { bytes: 1, read: (view, at) => view.getUint8(at) !== 0 },
  10: { bytes: 8, read: (view, at) => view.getBigUint64(at, true) },
  11: { bytes: 8, read: (view, at) => view.getBigInt64(at, true) },
  12: { bytes: 8, read: (view, at) => view.getFloat64(at, true) },
};
