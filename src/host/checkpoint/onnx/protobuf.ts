const utf8 = new TextEncoder();

/** Numbers of the wire types in a field's tag. */
const VARINT = 0;
const LENGTH_DELIMITED = 2;
const FIXED_32 = 5;
/** Most bytes of a UTF-16 code unit in UTF-8. */
const UTF8_BYTES = 3;
const ASCII_END = 0x80;

/**
 * A writer of one protobuf message: fields are written in the order of the calls, each under its number in the schema.
 * Source of the format: protobuf.dev, "Encoding".
 */
export class ProtobufWriter {
  #bytes = new Uint8Array(256);
  #length = 0;

  /** Writes an int32, int64, enum or bool. */
  integer(field: number, value: number): void {
    this.#varint(field * 8 + VARINT);
    this.#varint(value);
  }

  float(field: number, value: number): void {
    this.#varint(field * 8 + FIXED_32);
    const at = this.#grow(4);
    new DataView(this.#bytes.buffer).setFloat32(at, value, true);
  }

  text(field: number, value: string): void {
    this.#varint(field * 8 + LENGTH_DELIMITED);
    const start = this.#grow(UTF8_BYTES * value.length);
    const bytes = this.#bytes;
    // names are short and ASCII: a call of the encoder for each takes longer than the loop
    let count = 0;
    for (; count < value.length && value.charCodeAt(count) < ASCII_END; count++)
      bytes[start + count] = value.charCodeAt(count);
    if (count < value.length) count = utf8.encodeInto(value, bytes.subarray(start)).written;
    this.#length = start + count;
    this.#insertLength(start);
  }

  bytes(field: number, value: Uint8Array): void {
    this.#varint(field * 8 + LENGTH_DELIMITED);
    this.#varint(value.length);
    // before the bytes are named, which growing replaces
    const at = this.#grow(value.length);
    this.#bytes.set(value, at);
  }

  /** Writes a repeated integer field in its packed form. */
  integers(field: number, values: readonly number[]): void {
    this.message(field, (packed) => {
      for (const value of values) packed.#varint(value);
    });
  }

  /** Writes a nested message, whose fields `write` writes. */
  message(field: number, write: (message: ProtobufWriter) => void): void {
    this.#varint(field * 8 + LENGTH_DELIMITED);
    const start = this.#length;
    write(this);
    this.#insertLength(start);
  }

  /** Bytes of the message; a view, valid until the next write. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Writes an integer of up to 2^53, 7 bits per byte; negative ones as 64-bit two's complement. */
  #varint(value: number): void {
    if (value < 0) {
      let rest = BigInt.asUintN(64, BigInt(value));
      for (; rest >= 0x80n; rest >>= 7n) this.#byte(Number(rest & 0x7fn) | 0x80);
      this.#byte(Number(rest));
      return;
    }
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#byte((rest % 0x80) | 0x80);
    this.#byte(rest);
  }

  /** Writes the length of all bytes from `start` in front of them: a separate buffer for each message took ten times as long. */
  #insertLength(start: number): void {
    const end = this.#length;
    this.#varint(end - start);
    const size = this.#length - end;
    const bytes = this.#bytes;
    if (size === 1) {
      const length = bytes[end]!;
      bytes.copyWithin(start + 1, start, end);
      bytes[start] = length;
      return;
    }
    const length = bytes.slice(end, this.#length);
    bytes.copyWithin(start + size, start, end);
    bytes.set(length, start);
  }

  #byte(value: number): void {
    const at = this.#grow(1);
    this.#bytes[at] = value;
  }

  /** Makes room for `count` bytes and returns where they begin. */
  #grow(count: number): number {
    const from = this.#length;
    const end = from + count;
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#length = end;
    return from;
  }
}
