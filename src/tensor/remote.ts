import { LatentkitError } from "../errors.js";
import type { Cuda } from "../native/cuda.js";
import type { CudaMemory } from "../native/cuda-bindings.js";
import { giveMemory, keepMemory } from "./memory.js";

/**
 * Values that lie on a device, or that nobody has seen yet on their way there. Tensors that share memory share it. Once
 * read, the array that was handed out is the only truth, since its reader may write into it.
 */
export class Remote {
  private memory: CudaMemory | undefined;
  private unseen: Float32Array | undefined;
  private handedOut: Float32Array | undefined;

  constructor(
    readonly cuda: Cuda,
    readonly size: number,
    values: { readonly memory: CudaMemory } | { readonly unseen: Float32Array },
  ) {
    if ("memory" in values) this.memory = values.memory;
    else this.unseen = values.unseen;
  }

  /** What console.log shows of it. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.size} values on ${this.cuda.name}`;
  }

  /** The array that a reader got; from then on nothing is left on the device. */
  get read(): Float32Array | undefined {
    return this.handedOut;
  }

  /** The same memory for every tensor that shares it, in bytes of which something is taken. */
  get byteLength(): number {
    return this.size * Float32Array.BYTES_PER_ELEMENT;
  }

  /** The memory on the device, uploaded where the values were still on their way. */
  reach(): CudaMemory {
    if (this.memory !== undefined) return this.memory;
    const memory = this.cuda.take(this.byteLength);
    this.cuda.ops.upload(memory, this.unseen!);
    this.unseen = undefined;
    this.memory = memory;
    return memory;
  }

  /** The same values in memory of their own; undefined where the device has no room for them. */
  copied(): Remote | undefined {
    const { cuda, size } = this;
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
    // who shares it may know it as memory of a device still: it must not go back with who knows it as an array
    if (this.unseen !== undefined) keepMemory(this.unseen.buffer);
    this.handedOut ??= this.unseen ?? this.download();
    this.unseen = undefined;
    return this.handedOut;
  }

  /** Nobody reads it any more. What was handed out is left alone. */
  giveBack(): void {
    if (this.unseen !== undefined) giveMemory(this.unseen.buffer);
    if (this.memory !== undefined) this.cuda.ops.release(this.memory);
    this.unseen = undefined;
    this.memory = undefined;
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
