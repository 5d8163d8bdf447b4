import { loadNative } from "../load.js";
import type {
  CudaBindings,
  CudaHandle,
  CudaMemory,
  InjectOptions,
  PhiloxDraw,
  ResizedBlend,
  TensorOperations,
} from "../tensor-operations.js";

/** A side that computes a case: the CPU with arrays, or a device with its memory. */
export interface TrialSide<M> {
  readonly ops: TensorOperations<M, M>;
  /** New memory with these values. */
  put(values: Float32Array | Uint8Array): M;
  floats(memory: M, count: number): Float32Array;
  bytes(memory: M, count: number): Uint8Array;
  /** maskedBlend with a mask of another size. */
  resizedBlend: ResizedBlend<M>;
  /** injectNoise that draws what it mixes in; `count` values. */
  injectDrawn(out: M, base: M, noise: M, options: InjectOptions<M>, count: number, draw: PhiloxDraw): void;
  /** The four words behind each of n elements, row by row. */
  words(count: number, seed: bigint, offset: bigint, threads: number): Uint32Array;
  /** New memory of one value. */
  filled(count: number, value: number): M;
  /** `count` floats of `from`, from element `start` on, into `to`, from element `at` on. Default: all. */
  copy(to: M, from: M, at: number, start?: number, count?: number): void;
  /** A picture of floats as a PNG file. */
  encode(images: M, index: number, width: number, height: number, channels: number): Promise<Uint8Array>;
}

const LEVEL = 4;
const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;

/** Arrays of the native core: its operations tell floats from bytes themselves. */
export type CpuMemory = Float32Array | Uint8Array;

const floatsIn = (memory: CpuMemory): Float32Array => memory as Float32Array;

/** The CPU, with the native core. */
export const CPU_TRIAL_SIDE: TrialSide<CpuMemory> = {
  get ops() {
    return loadNative() as unknown as TensorOperations<CpuMemory, CpuMemory>;
  },
  put: (values) => values.slice(),
  floats: floatsIn,
  bytes: (memory) => memory as Uint8Array,
  resizedBlend(out, a, b, mask, shape, [batch, height, width]) {
    const native = loadNative();
    const [items, channels, toHeight, toWidth] = shape;
    const sized = new Float32Array(batch * toHeight * toWidth);
    native.resizeBilinear(sized, floatsIn(mask), batch, height, width, toHeight, toWidth);
    const operands = [floatsIn(out), floatsIn(a), floatsIn(b), sized] as const;
    native.maskedBlend(...operands, items, channels, toHeight * toWidth, batch);
  },
  injectDrawn(out, base, noise, options, count, { seed, offset, threads, k }) {
    const native = loadNative();
    const random = new Float32Array(count);
    native.philoxRandn(random, seed, offset, threads, k);
    const mask = options.mask && floatsIn(options.mask);
    native.injectNoise(floatsIn(out), floatsIn(base), floatsIn(noise), { ...options, mask, random });
  },
  words(count, seed, offset, threads) {
    const out = new Uint32Array(4 * count);
    loadNative().philoxWords(out, seed, offset, threads);
    return out;
  },
  filled: (count, value) => new Float32Array(count).fill(value),
  copy: (to, from, at, start = 0, count = floatsIn(from).length - start) =>
    floatsIn(to).set(floatsIn(from).subarray(start, start + count), at),
  encode(images, index, width, height, channels) {
    const count = width * height * channels;
    const picture = floatsIn(images).subarray(index * count, (index + 1) * count);
    return loadNative().encodePng(picture, width, height, channels, LEVEL, []);
  },
};

/** A device. */
export function cudaTrialSide(cuda: CudaBindings, handle: CudaHandle): TrialSide<CudaMemory> {
  const read = <T extends Float32Array | Uint8Array>(out: T, memory: CudaMemory): T => {
    cuda.download(out, memory);
    return out;
  };
  const put = (values: Float32Array | Uint8Array): CudaMemory => {
    const memory = cuda.take(handle, values.byteLength);
    cuda.upload(memory, values);
    return memory;
  };
  return {
    ops: cuda,
    put,
    words(count, seed, offset, threads) {
      const memory = cuda.take(handle, 16 * count);
      cuda.philoxWords(memory, seed, offset, threads);
      return new Uint32Array(read(new Uint8Array(16 * count), memory).buffer);
    },
    filled(count, value) {
      const memory = cuda.take(handle, FLOAT_BYTES * count);
      cuda.fill(memory, value);
      return memory;
    },
    copy: (to, from, at, start = 0, count) =>
      cuda.copy(to, from, FLOAT_BYTES * at, FLOAT_BYTES * start, count === undefined ? undefined : FLOAT_BYTES * count),
    floats: (memory, count) => read(new Float32Array(count), memory),
    bytes: (memory, count) => read(new Uint8Array(count), memory),
    resizedBlend: (...operands) => cuda.resizedBlend(...operands),
    injectDrawn: (out, base, noise, options, _, drawn) =>
      cuda.injectNoise(out, base, noise, { ...options, random: undefined, drawn }),
    async encode(images, index, width, height, channels) {
      const { rows } = await cuda.filterPng(images, index, width, height, channels);
      return loadNative().deflatePng(rows, width, height, channels, LEVEL, []);
    },
  };
}
