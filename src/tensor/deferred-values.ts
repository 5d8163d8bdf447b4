import { LatentkitError, reasonOf } from "../base/errors.js";
import type { Cuda } from "../native/cuda/cuda.js";
import { loadNative } from "../native/load.js";
import type { CudaMemory, PhiloxDraw } from "../native/tensor-operations.js";
import { retainMemory, returnMemory } from "./memory-pool.js";

/** Noise that is drawn for its first reader: by the draw on the device, by `values` on the CPU. */
export interface DeferredNoise {
  readonly draw: PhiloxDraw;
  readonly values: () => Float32Array;
}

/**
 * Values on a device, or to be there once an operation reads them: still on the CPU, or not even drawn. Tensors that
 * share memory share this object. Once fetched, the array is the only truth, since its reader may write into it.
 */
export class DeviceValues {
  #memory: CudaMemory | undefined;
  #cpuValues: Float32Array | undefined;
  #noise: DeferredNoise | undefined;
  #array: Float32Array | undefined;

  constructor(
    readonly cuda: Cuda,
    readonly size: number,
    values: { readonly memory: CudaMemory } | { readonly cpuValues: Float32Array } | { readonly noise: DeferredNoise },
  ) {
    if ("memory" in values) this.#memory = values.memory;
    else if ("cpuValues" in values) this.#cpuValues = values.cpuValues;
    else this.#noise = values.noise;
  }

  /** Text that console.log prints. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.size} values on ${this.cuda.name}`;
  }

  /** The array that `fetch` returned; nothing is left on the device from then on. */
  get fetched(): Float32Array | undefined {
    return this.#array;
  }

  /** The draw that makes the values, until they are read. */
  get draw(): PhiloxDraw | undefined {
    return this.#noise?.draw;
  }

  get byteLength(): number {
    return this.size * Float32Array.BYTES_PER_ELEMENT;
  }

  /** Returns the memory on the device, filled on first use. */
  reach(): CudaMemory {
    if (this.#memory !== undefined) return this.#memory;
    const { cuda, draw } = this;
    const memory = cuda.take(this.byteLength);
    try {
      if (draw === undefined) cuda.ops.upload(memory, this.#cpuValues!);
      else cuda.ops.philoxRandn(memory, draw.seed, draw.offset, draw.threads, draw.k);
    } catch (error) {
      cuda.ops.release(memory);
      throw error;
    }
    this.#forgetSource();
    this.#memory = memory;
    return memory;
  }

  /** Copies the values into separate memory; undefined if the device has no room for them. */
  copy(): DeviceValues | undefined {
    const { cuda, size } = this;
    const noise = this.#noise;
    if (noise !== undefined) return new DeviceValues(cuda, size, { noise });
    try {
      const memory = cuda.take(this.byteLength);
      cuda.ops.copy(memory, this.reach(), 0);
      return new DeviceValues(cuda, size, { memory });
    } catch (error) {
      if (isNoMemory(error)) return undefined;
      throw lossOf(cuda, error) ?? error;
    }
  }

  /** Returns the values as an array. Fails with device.lost if their device is lost. */
  fetch(): Float32Array {
    this.#array ??= this.#cpuValues ?? this.#noise?.values() ?? this.#download();
    // a tensor that shares the values may still own them as device memory, and must not return the array to the pool
    retainMemory(this.#array.buffer);
    this.#forgetSource();
    return this.#array;
  }

  /** Frees the memory of values that are no longer needed; a fetched array stays. */
  release(): void {
    if (this.#cpuValues !== undefined) returnMemory(this.#cpuValues.buffer);
    if (this.#memory !== undefined) this.cuda.ops.release(this.#memory);
    this.#forgetSource();
    this.#memory = undefined;
  }

  #forgetSource(): void {
    this.#cpuValues = undefined;
    this.#noise = undefined;
  }

  #download(): Float32Array {
    const values = new Float32Array(Buffer.allocUnsafeSlow(this.byteLength).buffer);
    const { cuda } = this;
    const memory = this.#memory;
    try {
      cuda.ops.download(values, memory!);
    } catch (error) {
      throw lossOf(cuda, error) ?? downloadError(cuda, error);
    }
    cuda.ops.release(memory!);
    this.#memory = undefined;
    return values;
  }
}

/** Returns the memory of a tensor to the pool of the thread or of the device; it must not be read again. */
export function releaseMemory(memory: ArrayBufferLike | DeviceValues): void {
  if (memory instanceof DeviceValues) memory.release();
  else returnMemory(memory);
}

/** Error of a reader that got no values from a device that still holds them. */
function downloadError(cuda: Cuda, error: unknown): LatentkitError {
  const message = `The values of a tensor on ${cuda.name} could not be fetched (${reasonOf(error)}).`;
  return new LatentkitError("native.failed", message, {}, { cause: error });
}

const statusOf = (error: unknown): unknown => (error as { status?: unknown } | undefined)?.status;

/** Whether the device has no memory left; it stays usable. */
export const isNoMemory = (error: unknown): boolean => statusOf(error) === "no-memory";

/** Returns device.lost if the error means that the device is gone for good, and marks the device as lost. */
export function lossOf(cuda: Cuda, error: unknown): LatentkitError | undefined {
  if (statusOf(error) !== "device-lost") return undefined;
  const message = `${cuda.name} failed and its tensors are lost: restart the process, or use --device cpu.`;
  cuda.lose(message);
  return new LatentkitError("device.lost", message, {}, { cause: error });
}

/** Planes of float32, row-major: [batch, 3, height, width]. */
export interface Planes {
  readonly data: Float32Array;
  readonly batch: number;
  readonly height: number;
  readonly width: number;
}

/**
 * Pixels of images that are computed when they are read: planes enlarged to [batch, height, width, 3]. A reader of bytes
 * gets only bytes: four times as many bytes of floats are neither written nor read.
 */
export class DeferredImage {
  readonly #planes: Planes;
  readonly #height: number;
  readonly #width: number;

  /** `buffer` is the memory that the values will fill; nothing else may write into it, nor into the planes. */
  constructor(
    readonly buffer: ArrayBufferLike,
    planes: Planes,
    height: number,
    width: number,
  ) {
    this.#planes = planes;
    this.#height = height;
    this.#width = width;
  }

  /** Text that console.log prints. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.#height} x ${this.#width} pixels, not read yet`;
  }

  /** Number of values. */
  get size(): number {
    return this.#planes.batch * this.#height * this.#width * 3;
  }

  /** Computes all values in `buffer`. */
  values(): Float32Array {
    const values = new Float32Array(this.buffer, 0, this.size);
    const { data, batch, height, width } = this.#planes;
    loadNative().resizeToImage(values, data, batch, height, width, this.#height, this.#width);
    return values;
  }

  /** Computes `count` items from `index` on as bytes, equal to `toBytes` of the values. */
  toBytes(out: Uint8Array, index = 0, count = this.#planes.batch): void {
    const { data, height, width } = this.#planes;
    const itemSize = 3 * height * width;
    const items = data.subarray(index * itemSize, (index + count) * itemSize);
    loadNative().resizeToBytes(out, items, count, height, width, this.#height, this.#width);
  }
}
