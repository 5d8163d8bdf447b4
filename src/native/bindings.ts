import type { CudaBindings, Four, TensorOperations } from "./tensor-operations.js";

/** BLAKE3 of bytes that come in pieces. */
export interface ByteHasher {
  update(bytes: Uint8Array): void;
  /** The hash of the bytes so far, as 64 digits. */
  hex(): string;
}

/**
 * The one TypeScript type of the native module (`latentkit.node`). Contracts are in native/include/engine.h;
 * every function checks lengths and throws a TypeError or RangeError that names the argument.
 */
export interface NativeBindings extends TensorOperations<Float32Array, Uint8Array> {
  /** Instruction set in use. The environment variable LATENTKIT_ISA forces one at load. */
  isa(): Isa;
  /** Sets that this processor can run, best first. */
  isas(): Isa[];
  setIsa(name: Isa): void;
  /** Size of the thread pool, the caller included. LATENTKIT_THREADS sets it at load. */
  threads(): number;
  setThreads(count: number): void;

  /** Takes flock's exclusive lock of an open file without waiting. Returns 0, or the system's error number; ENOSYS on Windows. */
  lockFile(fd: number): number;
  /**
   * Gives free pages of the heap back to the system. glibc keeps a gigabyte and more of a released session, and half as
   * much again as a folded session needs after it was loaded in the place of another one; elsewhere it does nothing.
   */
  trimHeap(): void;
  /** On Linux, has the system kill this process when its parent ends, even in the middle of a call. */
  dieWithParent(): void;
  /**
   * The graphics adapters that Vulkan lists, those first that WebGPU prefers for high performance. Empty without Vulkan, as
   * on macOS. Call it only in a child process: it runs code of every driver installed, and a faulty one ends the process.
   */
  graphicsAdapters(): GraphicsAdapter[];

  /** Bytes of a generator's state; the caller owns it. */
  readonly mtStateBytes: number;
  /** Only the low 32 bits of the seed count; clears the cached normal. */
  mtSeed(state: Uint8Array, seed: bigint): void;
  /** Fills `out` with the first normals of PyTorch's CPU stream of a seed, as a generator of that seed does. */
  mtNormals(out: Float32Array, seed: bigint): void;
  /** Fills `out` with PyTorch's CPU normals and moves the state on. */
  mtRandn(state: Uint8Array, out: Float32Array): void;

  /**
   * An increment of a Brownian path: out [n] = (sum of the nodes in `terms`) / divisor. root [n] is the whole path, `ends`
   * the ends of the ranges of elements that threads work on, lefts [ranges, rows, pitch] the left halves of cuts. `cuts`:
   * 7 words each, node, seed, row, drawn and the float32 length, reciprocal, spread; see engine_cut of engine.h.
   */
  brownian(
    out: Float32Array,
    root: Float32Array,
    lefts: Float32Array,
    pitch: number,
    ends: Uint32Array,
    cuts: Uint32Array,
    terms: Uint32Array,
    divisor: number,
  ): void;

  /** The offset that philoxRandn of `count` values returns, without computing them. */
  philoxSkip(count: number, offset: bigint, threads: number): bigint;
  /** The four u32 words behind each of n elements, row by row: out[row * n + element]; for tests. */
  philoxWords(out: Uint32Array, seed: bigint, offset: bigint, threads: number): void;

  /**
   * Latents x [batch, C, plane] as colours out [batch, 3, plane] in 0 … 1: (bias + sum of (x - shift) * scale * factors
   * + 1) / 2 in double, channel by channel; factors [C, 3], bias [3].
   */
  latentToRgb(
    out: Float32Array,
    x: Float32Array,
    batch: number,
    factors: Float64Array,
    bias: Float64Array,
    shift: number,
    scale: number,
  ): void;

  /**
   * Resizes planes, shape [batch, channels, inner, inH, inW], or pixels [batch, inH, inW, channels], whose shape is
   * written the same way with inner 1; see engine_resize. Pillow's methods take pixels of 1 to 4 channels only.
   */
  resize(
    out: Float32Array,
    x: Float32Array,
    method: ResizeMethod,
    pixels: boolean,
    shape: readonly [number, number, number, number, number],
    outHeight: number,
    outWidth: number,
  ): void;

  /** A part [y, x, height, width] of pixels x [batch, inH, inW, channels] resized to height x width: bicubic, with antialias. */
  resizeAntialiased(out: Float32Array, x: Float32Array, shape: Four, height: number, width: number, part: Four): void;

  /** resizeBilinear of x [batch, 3, inH, inW] and planesToImage of that in one pass: out [batch, outH, outW, 3]. */
  resizeToImage(out: Float32Array, x: Float32Array, ...sides: ResizedSides): void;

  /** resizeToImage and floatToByte of that in one pass. */
  resizeToBytes(out: Uint8Array, x: Float32Array, ...sides: ResizedSides): void;

  /** x [batch, height, width, channels] weighted along both axes, borders mirrored; an odd number of weights up to 4095. */
  convolveImage(
    out: Float32Array,
    x: Float32Array,
    batch: number,
    height: number,
    width: number,
    channels: number,
    weights: Float32Array,
  ): void;
  /** out = a * (1 - factor) + mode(a, b) * factor, clamped to 0 … 1; formulas of the modes are in engine.h. */
  blendImages(out: Float32Array, a: Float32Array, b: Float32Array, mode: BlendMode, factor: number): void;
  /** x clamped to 0 … 1, in place; NaN stays NaN. */
  clampToUnit(x: Float32Array): void;

  /**
   * Lines [outer, count, inner]: out = the greater (`least`: lesser) of the values `before` positions in front of each
   * along the middle axis and `after` behind it, positions clamped; `more`: and of what out holds.
   */
  extremesAlong(
    out: Float32Array,
    x: Float32Array,
    lines: readonly [number, number, number],
    before: number,
    after: number,
    least: boolean,
    more: boolean,
  ): void;

  /** Elementary functions in double with the same bits everywhere; see elementary.ts. */
  exp(x: number): number;
  expm1(x: number): number;
  log(x: number): number;
  log1p(x: number): number;
  pow(x: number, y: number): number;
  sin(x: number): number;
  cos(x: number): number;
  tan(x: number): number;
  atan(x: number): number;

  samplingTable(sampling: SamplingSpec): Float32Array;
  samplingTimestep(sampling: SamplingSpec, sigma: number): number;
  samplingSigma(sampling: SamplingSpec, timestep: number): number;
  /** PyTorch's linspace in float32; `count` at most 2^24. */
  linspace(start: number, end: number, count: number): Float32Array;
  /** Falling sigmas of a schedule. `extraStep`: one more step, then the last but one dropped. `denoise` as KSampler's. */
  schedule(
    sampling: SamplingSpec,
    table: Float32Array,
    scheduler: string,
    steps: number,
    extraStep: boolean,
    denoise: number,
  ): Float32Array;

  /** BLAKE3 of width, height and channels, 32 bits big-endian each, and the samples, as 64 hex digits. `bitDepth` as of encodePng. */
  pixelHash(samples: Uint8Array, width: number, height: number, channels: number, bitDepth?: number): string;
  blake3(): ByteHasher;
  /** x * 65535, rounded and clipped: two bytes each, big-endian. */
  floatToUint16(out: Uint8Array, x: Float32Array): void;

  /**
   * Encodes on the pool. Floats are converted as by floatToByte, or floatToUint16. 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA.
   * Text goes into tEXt chunks before IDAT. Samples of 16 bits are two bytes each, big-endian. Default
   * of `bitDepth`: 8.
   */
  encodePng(pixels: Uint8Array | Float32Array, ...settings: PngSettings): Promise<Uint8Array>;
  /** Size of such a file without text, at most; 0 if the format cannot hold the picture. */
  pngBound(width: number, height: number, channels: number, level: number, bitDepth?: number): number;
  /** As encodePng, in the calling thread, into `out`: pngBound bytes, 13 and its characters for each text. Returns how many were written. */
  encodePngHere(out: Uint8Array, pixels: Uint8Array, ...settings: PngSettings): number;
  /** As encodePng, of rows that are filtered already: a filter byte and width * channels bytes each. */
  deflatePng(rows: Uint8Array, ...settings: PngSettings): Promise<Uint8Array>;
  /** Decodes on the pool; refuses more than maxPixels before it allocates. Palettes are expanded, interlacing undone. */
  decodePng(bytes: Uint8Array, maxPixels: number): Promise<DecodedPng>;
  /**
   * The first `most` pictures of a file as a viewer shows them, one after the other: frames of an animation composited,
   * turned as EXIF says. maxPixels counts the pixels of all of them. `takeSamples` fetches their samples.
   */
  decodePngFrames(bytes: Uint8Array, maxPixels: number, most: number): Promise<DecodedPngFrames>;
  /** Sides of what `decodePngFramesHere` writes. */
  inspectPngFrames(bytes: Uint8Array, maxPixels: number, most: number): PngFramesInfo;
  /** Decodes in the calling thread, into an array of byteLength. */
  decodePngFramesHere(out: Uint8Array, bytes: Uint8Array, maxPixels: number, most: number): void;
  /** Copies samples into an array of their byteLength and frees them; they can be taken once. */
  takeSamples(samples: DecodedPngFrames["samples"], out: Uint8Array): void;

  /** Values of blocks of a GGUF file, `type` being the format's number. */
  unpackBlocks(out: Float32Array, blocks: Uint8Array, type: number): void;
  /** The same as codes, scales and offsets of MatMulNBits; engine_repack_blocks of native/include/engine.h has their meaning. */
  repackBlocks(
    codes: Uint8Array,
    lows: Uint8Array,
    scales: Float32Array,
    offsets: Float32Array,
    blocks: Uint8Array,
    type: number,
  ): void;
  /** Rows from `first` on of a matrix of 8-bit floats, times a power of two for each 32; `scales` are those of the whole matrix. */
  unpackMxfp8(out: Float32Array, codes: Uint8Array, scales: Uint8Array, columns: number, first: number): void;
  /** The same of 4-bit floats, times an 8-bit float for each 16 and a factor. */
  unpackNvfp4(
    out: Float32Array,
    values: Uint8Array,
    scales: Uint8Array,
    factor: number,
    columns: number,
    first: number,
  ): void;
  /** The same as two codes and scales of MatMulNBits. */
  repackNvfp4(
    codes: Uint8Array,
    lows: Uint8Array,
    groupScales: Float32Array,
    values: Uint8Array,
    scales: Uint8Array,
    factor: number,
    columns: number,
    first: number,
  ): void;
  /** table[code] times the largest of each group. */
  unpackNf4(out: Float32Array, codes: Uint8Array, table: Float32Array, largest: Float32Array, group: number): void;

  /** The same operations on devices; see native/include/engine_cuda.h. */
  readonly cuda: CudaBindings;
}

/** Sides of pictures before and after a resize. */
type ResizedSides = [batch: number, inHeight: number, inWidth: number, outHeight: number, outWidth: number];

type PngSettings = [
  width: number,
  height: number,
  channels: number,
  level: number,
  text: readonly (readonly [string, string])[],
  bitDepth?: number,
];

export interface GraphicsAdapter {
  name: string;
  /** Vendor and device on the PCI bus; 0x10de is NVIDIA, 0x1002 AMD, 0x8086 Intel. */
  vendorId: number;
  deviceId: number;
  type: "discrete" | "integrated" | "virtual" | "cpu" | "other";
  /** Name and version, or the version as a plain number if the driver does not tell its name. */
  driver: string;
  /** Shaders compute with float16 and read and write it in buffers: WebGPU's shader-f16. */
  hasFloat16: boolean;
}

export type ResizeMethod = "nearest-exact" | "bilinear" | "bicubic" | "area" | "bislerp" | ByteMethod;

/** Pillow's resizes of pictures as bytes. */
export type ByteMethod = "lanczos" | `pillow-${"nearest" | "box" | "bilinear" | "hamming" | "bicubic"}`;

export type Isa = "avx512" | "avx2" | "baseline";

export type BlendMode = "normal" | "multiply" | "screen" | "overlay" | "soft_light" | "difference";

/** Parameters of a model sampling; a kind reads only its own. */
export interface SamplingSpec {
  kind: "discrete" | "edm" | "flow" | "flux" | "cascade";
  /** discrete: betas run from linearStart to linearEnd (square roots linear); zsnr: zero terminal SNR. */
  linearStart: number;
  linearEnd: number;
  zsnr: boolean;
  /** edm */
  sigmaMin: number;
  sigmaMax: number;
  /** flow, flux, cascade */
  shift: number;
  /** flow: timestep = sigma * multiplier */
  multiplier: number;
}

export interface DecodedPng {
  width: number;
  height: number;
  /** 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA: as in the file, a palette expanded to RGB or RGBA. */
  channels: number;
  /** 8, or 16 with a Uint16Array. Smaller depths are scaled to 8. */
  bitDepth: number;
  data: Uint8Array | Uint16Array;
  text: [string, string][];
}

export interface PngFramesInfo extends Omit<DecodedPng, "text" | "data"> {
  /** Length of all samples. */
  byteLength: number;
  frames: number;
  /** The alpha comes from one transparent colour of a grey or RGB file, not from samples. */
  isKeyed: boolean;
}

export interface DecodedPngFrames extends PngFramesInfo {
  /** Memory of the core, for `takeSamples`. */
  samples: object;
}
