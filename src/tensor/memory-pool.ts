/** Smaller buffers are not pooled: clearing a new array is as fast as finding an old one. */
const MIN_BYTES = 2 ** 14;

/** Bytes that one thread's pool holds at most. */
const MAX_POOLED_BYTES = 2 ** 26;

/** Buffers of one thread, by length. */
class Pool {
  /** Buffers that may come back: only these, and each only once. */
  readonly #lent = new WeakSet<ArrayBufferLike>();
  /** The last that came back leaves first, since its pages are the warmest. */
  readonly #free = new Map<number, ArrayBuffer[]>();
  bytes = 0;

  take(bytes: number): ArrayBuffer {
    const pooled = this.#free.get(bytes)?.pop();
    if (pooled !== undefined) this.bytes -= bytes;
    const buffer = pooled ?? (Buffer.allocUnsafeSlow(bytes).buffer as ArrayBuffer);
    if (bytes >= MIN_BYTES) this.#lent.add(buffer);
    return buffer;
  }

  return(buffer: ArrayBufferLike): void {
    const { byteLength } = buffer;
    // a detached buffer has length 0
    if (!this.#lent.delete(buffer) || byteLength > MAX_POOLED_BYTES / 2 || byteLength === 0) return;
    if (this.bytes + byteLength > MAX_POOLED_BYTES) this.clear();
    const ofLength = this.#free.get(byteLength);
    if (ofLength === undefined) this.#free.set(byteLength, [buffer as ArrayBuffer]);
    else ofLength.push(buffer as ArrayBuffer);
    this.bytes += byteLength;
  }

  retain(buffer: ArrayBufferLike): void {
    this.#lent.delete(buffer);
  }

  clear(): void {
    this.#free.clear();
    this.bytes = 0;
  }
}

const pool = new Pool();

/**
 * Returns a buffer of this length with arbitrary content. Fresh pages cost more than most operations on them, and V8
 * collects its whole heap after every 32 MiB or so, hence the pool.
 */
export const takeMemory = (bytes: number): ArrayBuffer => pool.take(bytes);

/**
 * Returns a buffer of `takeMemory` to the pool; any other buffer stays as it is. The caller must not
 * read it again: the next taker writes over it.
 */
export const returnMemory = (buffer: ArrayBufferLike): void => pool.return(buffer);

/** Excludes a buffer of `takeMemory` from the pool for good, even if it is returned. */
export const retainMemory = (buffer: ArrayBufferLike): void => pool.retain(buffer);

/** Number of bytes in the pool. @internal */
export const pooledBytes = (): number => pool.bytes;

/** Empties the pool. @internal */
export const clearPool = (): void => pool.clear();
