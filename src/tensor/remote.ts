import { LatentkitError } from "../errors.js";
import type { PhiloxDraw } from "../native/bindings.js";
import type { CudaMemory } from "../native/cuda/bindings.js";
import type { Cuda } from "../native/cuda/cuda.js";
import { giveMemory, keepMemory } from "./memory.js";

/** Noise that is made for its first reader: how, and what makes it for a reader here. */
export interface Unmade {
  readonly draw: PhiloxDraw;
  readonly values: () => Float32Array;
}

/**
 * Values that lie on a device, or that nobody has seen yet: on their way there, or not even made. Tensors that share
 * memory share it. Once read, the array that was handed out is the only truth, since its reader may write into it.
 */
export class Remote {
  private memory: CudaMemory | undefined;
  private unseen: Float32Array | undefined;
  private unmade: Unmade | undefined;
  private handedOut: Float32Array | undefined;

  constructor(
    readonly cuda: Cuda,
    readonly size: number,
    values: { readonly memory: CudaMemory } | { readonly unseen: Float32Array } | { readonly unmade: Unmade },
  ) {
    if ("memory" in values) this.memory = values.memory;
    else if ("unseen" in values) this.unseen = values.unseen;
    else this.unmade = values.unmade;
  }

  /** What console.log shows of it. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.size} values on ${this.cuda.name}`;
  }

  /** The array that a reader got; from then on nothing is left on the device. */
  get read(): Float32Array | undefined {
    return this.handedOut;
  }

  /** How the values are made, while nobody has. */
  get draw(): PhiloxDraw | undefined {
    return this.unmade?.draw;
  }

  /** The same memory for every tensor that shares it, in bytes of which something is taken. */
  get byteLength(): number {
    return this.size * Float32Array.BYTES_PER_ELEMENT;
  }

  /** The memory on the device, filled where nobody has seen the values yet. */
  reach(): CudaMemory {
    if (this.memory !== undefined) return this.memory;
    const { cuda, draw } = this;
    const memory = cuda.take(this.byteLength);
    try {
      if (draw === undefined) cuda.ops.upload(memory, this.unseen!);
      else cuda.ops.philoxRandn(memory, draw.seed, draw.offset, draw.threads, draw.k);
    } catch (error) {
      cuda.ops.release(memory);
      throw error;
    }
    this.settle();
    this.memory = memory;
    return memory;
  }

  /** The same values in memory of their own; undefined where the device has no room for them. */
  copied(): Remote | undefined {
    const { cuda, size, unmade } = this;
    if (unmade !== undefined) return new Remote(cuda, size, { unmade });
    try {
      const memory = cuda.take(this.byteLength);
      cuda.ops.copy(memory, this.reach(), 0);
      return new Remote(cuda, size, { memory });
    } catch (error) {
      if (isNoMemory(error)) return undefined;
      throw lossOf(cuda, error) ?? error;
    }
  }

  /** Hands the values out. Fails with device.lost where they went with their device. */
  fetch(): Float32Array {
    this.handedOut ??= this.unseen ?? this.unmade?.values() ?? this.download();
    // who shares it may know it as memory of a device still: it must not go back with who knows it as an array
    keepMemory(this.handedOut.buffer);
    this.settle();
    return this.handedOut;
  }

  /** Nobody reads it any more. What was handed out is left alone. */
  giveBack(): void {
    if (this.unseen !== undefined) giveMemory(this.unseen.buffer);
    if (this.memory !== undefined) this.cuda.ops.release(this.memory);
    this.settle();
    this.memory = undefined;
  }

  /** The values are somewhere, or nobody wants them any more. */
  private settle(): void {
    this.unseen = undefined;
    this.unmade = undefined;
  }

  private download(): Float32Array {
    const values = new Float32Array(Buffer.allocUnsafeSlow(this.byteLength).buffer);
    const { cuda, memory } = this;
    try {
      cuda.ops.download(values, memory!);
    } catch (error) {
      throw lossOf(cuda, error) ?? failedOf(cuda, error);
    }
    cuda.ops.release(memory!);
    this.memory = undefined;
    return values;
  }
}

/** The error of a reader that a device left without its values, which lie there still. */
function failedOf(cuda: Cuda, error: unknown): LatentkitError {
  const why = error instanceof Error ? error.message : String(error);
  const message = `The values of a tensor on ${cuda.name} could not be fetched (${why.replace(/\.$/, "")}).`;
  return new LatentkitError("native.failed", message, {}, { cause: error });
}

/** The device has no memory left; it stays usable. */
export const isNoMemory = (error: unknown): boolean =>
  (error as { status?: unknown } | undefined)?.status === "no-memory";

/** The error that says that a device is of no use any more, where this is why; the device is known as lost then. */
export function lossOf(cuda: Cuda, error: unknown): LatentkitError | undefined {
  if ((error as { status?: unknown } | undefined)?.status !== "device-lost") return undefined;
  const message = `${cuda.name} reported a fault, and what lay on it is lost: start a new process, or use --device cpu.`;
  cuda.lose(message);
  return new LatentkitError("device.lost", message, {}, { cause: error });
}
