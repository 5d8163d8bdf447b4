/** Smaller memory is not worth keeping: a new array is cleared as fast as an old one is found. */
const SMALLEST = 2 ** 14;

/** Memory of `takeMemory` that is not to come back, whoever gives it. */
export const keepMemory = (buffer: ArrayBufferLike): void => pool.keep(buffer);

/** Bytes that wait in one thread for the next who needs as many. */
const MOST_KEPT = 2 ** 26;

/** One thread's memory. */
class Pool {
  /** What is out: nothing else may come back, and nothing twice. */
  private readonly lent = new WeakSet<ArrayBufferLike>();
  /** By length; the last that came back is the first to leave, since it is the warmest. */
  private readonly kept = new Map<number, ArrayBuffer[]>();
  waiting = 0;

  take(bytes: number): ArrayBuffer {
    const known = this.kept.get(bytes)?.pop();
    if (known !== undefined) this.waiting -= bytes;
    const buffer = known ?? (Buffer.allocUnsafeSlow(bytes).buffer as ArrayBuffer);
    if (bytes >= SMALLEST) this.lent.add(buffer);
    return buffer;
  }

  give(buffer: ArrayBufferLike): void {
    const { byteLength } = buffer;
    // detached memory has no length
    if (!this.lent.delete(buffer) || byteLength > MOST_KEPT / 2 || byteLength === 0) return;
    if (this.waiting + byteLength > MOST_KEPT) this.forget();
    const same = this.kept.get(byteLength);
    if (same === undefined) this.kept.set(byteLength, [buffer as ArrayBuffer]);
    else same.push(buffer as ArrayBuffer);
    this.waiting += byteLength;
  }

  keep(buffer: ArrayBufferLike): void {
    this.lent.delete(buffer);
  }

  forget(): void {
    this.kept.clear();
    this.waiting = 0;
  }
}

const pool = new Pool();

/**
 * Memory of this length, with whatever it held. Fresh pages cost more than what most operations do in them, and V8
 * collects its whole heap after every 32 MiB or so, so memory that came back is taken first.
 */
export const takeMemory = (bytes: number): ArrayBuffer => pool.take(bytes);

/**
 * Gives memory of `takeMemory` back; other memory is left alone. The caller answers for it that nobody reads it any
 * more: the next who takes it writes over it.
 */
export const giveMemory = (buffer: ArrayBufferLike): void => pool.give(buffer);

/** Bytes that wait for the next who takes them. @internal */
export const waitingMemory = (): number => pool.waiting;

/** Lets all waiting memory go. @internal */
export const forgetMemory = (): void => pool.forget();
