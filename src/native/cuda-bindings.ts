import type { TensorOperations } from "./tensor-operations.js";

declare const device: unique symbol;
declare const memory: unique symbol;

/** An opened device: one for each process, shared by its threads. */
export interface CudaHandle {
  readonly [device]: true;
}

/** Memory of a device, freed when it is released or collected. As an operand: float32 values, or bytes. */
export interface CudaMemory {
  readonly [memory]: true;
}

/** Bytes of the device, and of the pool that lends its memory: lent to tensors, and pooled for the next. */
export interface CudaMemoryState {
  readonly total: number;
  readonly free: number;
  readonly lent: number;
  readonly pooled: number;
}

/**
 * Operations of the CUDA library, queued in the order of the calls; download, std, stdOfItems, scaledError and injectNoise with
 * normalize wait.
 * They throw as the core's do, with `status` "no-memory" where the device has none left (it stays usable, and nothing is
 * written) and "device-lost" where it cannot be used any more.
 */
export interface CudaBindings extends TensorOperations<CudaMemory, CudaMemory> {
  /** Opens the library and, with it, a device of the driver, both named by path. Throws an Error with the reason. */
  open(library: string, driver: string, ordinal: number): CudaHandle;
  /** Architectures that the library has kernels for: "75,80,86". */
  architectures(device: CudaHandle): string;
  memory(device: CudaHandle): CudaMemoryState;
  /** Returns the pool's free memory to the driver. */
  trim(device: CudaHandle): void;
  wait(device: CudaHandle): void;

  /** Memory that is not cleared. */
  take(device: CudaHandle, bytes: number): CudaMemory;
  /** Released memory cannot be used any more; releasing it again does nothing. */
  release(memory: CudaMemory): void;
  /** `values` has as many bytes as the memory, and may be changed right after the call. */
  upload(memory: CudaMemory, values: Float32Array | Uint8Array): void;
  download(out: Float32Array | Uint8Array, memory: CudaMemory): void;
  /** `bytes` of `memory`, from byte `start` on, to `out`, from byte `at` on; all of it where they are absent. */
  copy(out: CudaMemory, memory: CudaMemory, at: number, start?: number, bytes?: number): void;
  fill(out: CudaMemory, value: number): void;
  philoxWords(out: CudaMemory, seed: bigint, offset: bigint, threads: number): void;
  /** maskedBlend with a mask of [maskBatch, maskHeight, maskWidth] that is resized on the way. */
  resizedBlend(
    out: CudaMemory,
    a: CudaMemory,
    b: CudaMemory,
    mask: CudaMemory,
    shape: readonly [number, number, number, number],
    maskShape: readonly [number, number, number],
  ): void;
  /** Picture `index` of [B, height, width, channels] as bytes, and as rows for deflatePng. Off the calling thread. */
  filterPng(
    images: CudaMemory,
    index: number,
    width: number,
    height: number,
    channels: number,
  ): Promise<{ pixels: Uint8Array; rows: Uint8Array }>;
}
