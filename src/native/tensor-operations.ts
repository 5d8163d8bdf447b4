export type Three = readonly [number, number, number];
export type Four = readonly [number, number, number, number];

/** Operations on tensors: F holds float32 and B bytes, typed arrays or memory of a device. Outputs come first. */
export interface TensorOperations<F, B> {
  /** Fills `out` with PyTorch's CUDA normals, each times k; `threads` is the grid, 0 for no cap. Returns the next offset. */
  philoxRandn(out: F, seed: bigint, offset: bigint, threads: number, k: number): bigint;

  /** out = x * k */
  scale(out: F, x: F, k: number): void;
  /** out = x + y * k, unfused */
  axpy(out: F, x: F, y: F, k: number): void;
  /** out = (x + y) / 2 */
  average(out: F, x: F, y: F): void;
  /** out = a + (b - a) * t, unfused */
  lerp(out: F, a: F, b: F, t: number): void;
  /** out = sum of coefficient * x over 1 to 8 pairs of these, in double from the first on, rounded once. */
  weightedSum(out: F, ...terms: readonly (number | F)[]): void;
  /** Unbiased standard deviation of all elements, double accumulation over a fixed tree, rounded to float32. */
  std(x: F): number;
  /** std of each of as many equal parts of x as `out`, an array of the CPU on either side, has elements. */
  stdOfItems(out: Float32Array, x: F): void;
  /** Root of the mean of ((low - high) / max(atol, rtol * max(|low|, |previous|)))^2, in double over the tree of std. */
  scaledError(low: F, high: F, previous: F, atol: number, rtol: number): number;
  /** Bilinear, align_corners false, no antialias, edges clamped; `planes` images of inH x inW. */
  resizeBilinear(
    out: F,
    x: F,
    planes: number,
    inHeight: number,
    inWidth: number,
    outHeight: number,
    outWidth: number,
  ): void;
  /** out = m * a + (1 - m) * b; mask [maskBatch, plane] repeats over batch and channels. */
  maskedBlend(out: F, a: F, b: F, mask: F, batch: number, channels: number, plane: number, maskBatch: number): void;
  /**
   * Pastes source [sourceBatch, C or 1, sh, sw] into destination [batch, C, h, w], in place, at (x, y), cropped.
   * Source batches and channels repeat. With a mask [maskBatch, sh, sw]: m * source + (1 - m) * destination.
   */
  composite(
    destination: F,
    shape: Four,
    source: F,
    sourceShape: Four,
    x: number,
    y: number,
    mask?: F,
    maskBatch?: number,
  ): void;
  /**
   * Adds source * mask to an area [y, x, h, w] inside destination, in place, the product rounded first; source
   * [batch, C, h, w], mask [maskBatch, h, w], shared by the channels; maskBatch is 1 or the batch.
   */
  addMasked(destination: F, shape: Four, source: F, area: Four, mask: F, maskBatch: number): void;
  /** The whole of injectNoise: add or average, normalise, mask, mix; see engine.h. Throws RangeError if std is 0. */
  injectNoise(out: F, base: F, noise: F, options: InjectOptions<F>): void;

  /** x [batch, 3, plane] to out [batch, plane, 3], clamped to 0 … 1; NaN is 0. */
  planesToImage(out: F, x: F, batch: number): void;
  /** image [pixels, channels 1, 3 or 4] to the mean of three equal truncated bytes over 255; channel 0 to 2. */
  channelToMask(out: F, image: F, channels: number, channel: number): void;
  /** x * 255 clipped and truncated; NaN is 0. */
  floatToByte(out: B, x: F): void;
  /** f32(byte) / 255 */
  byteToFloat(out: F, x: B): void;
}

export interface InjectOptions<F = Float32Array> {
  strength: number;
  average: boolean;
  normalize: boolean;
  /** Shape of base and noise, [B, C, H, W]; needed with a mask. */
  shape?: readonly number[];
  /** [maskBatch, maskHeight, maskWidth], resized to H x W. */
  mask?: F;
  maskShape?: Three;
  /** Mixes `random` in if above 0. */
  mix: number;
  random?: F;
  /** On a device only, instead of `random`: drawn as it is mixed in. */
  drawn?: PhiloxDraw;
}

/** Normals that are not drawn yet: those of philoxRandn with these arguments. */
export interface PhiloxDraw {
  readonly seed: bigint;
  readonly offset: bigint;
  readonly threads: number;
  readonly k: number;
}

/** out = m * a + (1 - m) * b with a mask of [maskBatch, maskHeight, maskWidth], resized to [B, C, H, W] on the way. */
export type ResizedBlend<F> = (out: F, a: F, b: F, mask: F, shape: Four, maskShape: Three) => void;

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
 * Operations of the CUDA library, queued in the order of the calls; download, std, stdOfItems, scaledError and injectNoise
 * with normalize wait. They throw as the core's do, with `status` "no-memory" if the device has no memory left (it stays usable,
 * and nothing is written) and "device-lost" if it can no longer be used.
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
  /** Released memory can no longer be used; releasing it again does nothing. */
  release(memory: CudaMemory): void;
  /** `values` has as many bytes as the memory, and may be changed right after the call. */
  upload(memory: CudaMemory, values: Float32Array | Uint8Array): void;
  download(out: Float32Array | Uint8Array, memory: CudaMemory): void;
  /** `bytes` of `memory`, from byte `start` on, to `out`, from byte `at` on. Default: all of it. */
  copy(out: CudaMemory, memory: CudaMemory, at: number, start?: number, bytes?: number): void;
  fill(out: CudaMemory, value: number): void;
  philoxWords(out: CudaMemory, seed: bigint, offset: bigint, threads: number): void;
  resizedBlend: ResizedBlend<CudaMemory>;
  /** Picture `index` of [B, height, width, channels] as bytes, and as rows for deflatePng. Off the calling thread. */
  filterPng(
    images: CudaMemory,
    index: number,
    width: number,
    height: number,
    channels: number,
  ): Promise<{ pixels: Uint8Array; rows: Uint8Array }>;
}
