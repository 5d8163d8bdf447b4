import { types } from "node:util";
import { describe, LatentkitError, TENSOR, valueError } from "../base/errors.js";
import type { DeferredImage, DeviceValues } from "./deferred-values.js";
import { takeMemory } from "./memory-pool.js";

/** Number of elements of one tensor at most: 4 GiB of float32. */
const MAX_ELEMENTS = 2 ** 30;

/** Tensors of at least this size take memory that is not cleared: zeroing it would cost more than pooling saves. */
const UNFILLED_FROM = 2 ** 12;
const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;

// A fetched tensor stays in memory, since its reader may write into the array; each operation elsewhere uploads it
// anew.
// Memory that a kernel fills is not zeroed first; it is handed out only once written.
/**
 * Dense float32 values, row-major and contiguous. Until `data` is read they may be on a device, or not computed yet.
 */
export class Tensor {
  /** @internal Reads and writes pictures; installed by the package's entry. */
  static pictures: PictureCodec<Tensor> | undefined;

  readonly shape: readonly number[];
  readonly size: number;
  // Not #private: deepEqual would compare tensors only by their shapes, and postMessage would lose their values.
  /** @internal Values in memory. */
  values: Float32Array | undefined;
  /** @internal Values on a device. */
  remote: DeviceValues | undefined;
  /** @internal Values that are computed when they are read. */
  image: DeferredImage | undefined;
  /** Unfrozen copy of the shape: an element of a frozen array takes ten times as long to read. */
  readonly #sides: readonly number[];

  private constructor(
    values: Float32Array | undefined,
    shape: Tensor | readonly number[],
    remote?: DeviceValues,
    image?: DeferredImage,
  ) {
    this.values = values;
    this.remote = remote;
    this.image = image;
    this.size = values === undefined ? (remote ?? image)!.size : values.length;
    const isTensor = shape instanceof Tensor;
    this.#sides = isTensor ? shape.#sides : [...shape];
    this.shape = isTensor ? shape.shape : Object.freeze([...shape]);
  }

  /**
   * Makes a tensor of values; a Float32Array is taken over, not copied, unless threads share its memory. Fails unless their
   * number fits the shape.
   */
  static from(data: ArrayLike<number>, shape: readonly number[]): Tensor {
    const size = elementCount(shape);
    if (typeof data !== "object" || typeof data?.length !== "number")
      throw valueError("value.invalid", "Tensor data", "a list of numbers or a typed array", data);
    if (data.length !== size)
      throw badShape("Tensor data", `${size} values for shape [${shape.join(", ")}]`, `${data.length}`);
    // the core reads no memory that another thread may write
    const isOwn = types.isFloat32Array(data) && !types.isSharedArrayBuffer(data.buffer);
    return new Tensor(isOwn ? data : Float32Array.from(data), shape);
  }

  /**
   * Reads a picture's file as an image [frames, H, W, 3 or 4] in 0…1, as LoadImage does; decoded off the event loop. 16 bits
   * keep their precision. Fails with png.invalid and png.too-large.
   */
  static async fromImage(bytes: Uint8Array): Promise<Tensor> {
    return codec().decode(bytes);
  }

  static zeros(shape: readonly number[]): Tensor {
    return new Tensor(new Float32Array(elementCount(shape)), shape);
  }

  /** @internal Makes a tensor of values on a device, as many as the shape has. */
  static on(remote: DeviceValues, shape: readonly number[]): Tensor {
    return new Tensor(undefined, shape, remote);
  }

  /** @internal Makes a tensor whose values are computed when they are read, as many as the shape has. */
  static deferred(image: DeferredImage, shape: readonly number[]): Tensor {
    return new Tensor(undefined, shape, undefined, image);
  }

  /** @internal Makes a tensor of arbitrary values, for a writer of every element that returns no tensor if it fails. */
  static unfilled(shape: Tensor | readonly number[]): Tensor {
    const size = shape instanceof Tensor ? shape.size : elementCount(shape);
    if (size < UNFILLED_FROM) return new Tensor(new Float32Array(size), shape);
    return new Tensor(new Float32Array(takeMemory(size * FLOAT_BYTES)), shape);
  }

  static full(shape: readonly number[], value: number): Tensor {
    if (typeof value !== "number") throw valueError("value.invalid", "Tensor value", "a number", value);
    const tensor = Tensor.unfilled(shape);
    tensor.data.fill(value);
    return tensor;
  }

  /** The values; those on a device are fetched and stay in memory from then on. Fails with device.lost. */
  get data(): Float32Array {
    return this.values ?? this.#fetch();
  }

  /** @internal The values from element `from` on in the shape of another tensor, as a view of the CPU's memory. */
  part(from: number, like: Tensor): Tensor {
    return new Tensor(this.data.subarray(from, from + like.size), like);
  }

  /** @internal The computation of the values, until they are read. */
  get deferred(): DeferredImage | undefined {
    return this.image;
  }

  /** @internal Whether the values have to be fetched or computed before they can be read. */
  get isAway(): boolean {
    return this.values === undefined;
  }

  /** @internal */
  get [TENSOR](): true {
    return true;
  }

  /** @internal The values on a device, if they are there. */
  get onDevice(): DeviceValues | undefined {
    const remote = this.remote;
    // a tensor that shares the memory may have fetched it
    if (remote?.fetched !== undefined) this.#fetch();
    return this.remote;
  }

  /** @internal The memory of the values, one object for all tensors that share it. */
  get memory(): ArrayBufferLike | DeviceValues {
    return this.onDevice ?? this.image?.buffer ?? this.data.buffer;
  }

  /** Shape and range of the values, as console.log prints them. Nothing is fetched or computed for it. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    const values = this.values ?? this.remote?.fetched;
    const state = this.remote === undefined ? "not computed yet" : `on ${this.remote.cuda.name}`;
    return `Tensor [${this.shape.join(", ")}] ${values === undefined ? state : rangeOf(values)}`;
  }

  #fetch(): Float32Array {
    const values = this.image?.values() ?? this.remote!.fetch();
    this.values = values;
    this.remote = undefined;
    this.image = undefined;
    return values;
  }

  /**
   * Encodes an image [H, W, C] or [B, H, W, C], or a mask [H, W] or [B, H, W], as a PNG file, off the event loop; a last
   * axis of 1 to 4 is that of the channels. `index` chooses the picture of a batch. Fails with tensor.bad-shape,
   * value.out-of-range and value.invalid.
   */
  async toPng(options?: TensorPngOptions): Promise<Buffer> {
    return codec().encode(this, options);
  }

  /** Whether the tensor has this shape, or the shape of this tensor. */
  hasShape(shape: Tensor | readonly number[]): boolean {
    const sides = shape instanceof Tensor ? shape.#sides : shape;
    if (!Array.isArray(sides) || sides.length !== this.#sides.length) return false;
    // callbacks and iterators would cost more than a small operation
    for (let axis = 0; axis < sides.length; axis++) if (sides[axis] !== this.#sides[axis]) return false;
    return true;
  }

  clone(): Tensor {
    const remote = this.onDevice?.copy();
    if (remote !== undefined) return new Tensor(undefined, this.shape, remote);
    const copy = Tensor.unfilled(this);
    copy.data.set(this.data);
    return copy;
  }

  /** Returns a tensor of another shape and the same size that shares the values. */
  reshape(shape: readonly number[]): Tensor {
    const remote = this.onDevice;
    if (remote === undefined || elementCount(shape) !== this.size) return Tensor.from(this.data, shape);
    return new Tensor(undefined, shape, remote);
  }
}

function codec(): PictureCodec<Tensor> {
  if (Tensor.pictures !== undefined) return Tensor.pictures;
  throw new LatentkitError("usage.invalid", 'Tensor: import "latentkit" before reading or writing pictures.');
}

/** Error of a shape: "scale: expected a batch, received shape [].". */
export function badShape(
  subject: string,
  expected: string,
  received: { readonly shape: readonly number[] } | string,
): LatentkitError {
  const text = typeof received === "string" ? received : `shape [${received.shape.join(", ")}]`;
  return new LatentkitError("tensor.bad-shape", `${subject}: expected ${expected}, received ${text}.`);
}

/** Product of a shape. Fails for anything but a list of sizes, and for sizes that could not be allocated. */
export function elementCount(shape: readonly number[]): number {
  if (!Array.isArray(shape)) throw badShape("Shape", "a list of sizes", describe(shape));
  let size = 1;
  for (const side of shape) {
    if (!Number.isInteger(side) || side < 0)
      throw badShape(`Shape [${shape.map(describe).join(", ")}]`, "whole numbers from 0", describe(side));
    size *= side;
  }
  // infinity times 0
  if (Number.isNaN(size)) return 0;
  if (size > MAX_ELEMENTS) {
    const message = `Shape [${shape.join(", ")}]: expected at most ${MAX_ELEMENTS} elements, received ${size}.`;
    throw new LatentkitError("tensor.too-large", message);
  }
  return size;
}

/** Options of `encodePng`. */
export interface EncodePngOptions {
  /**
   * Compression: 0 stores, 1 is the fastest, 9 the smallest. Default: 4. Levels 1 to 4 take 2 to 13 ms for a picture of
   * 1024 x 1024, 9 up to eight times what 4 takes; photographs gain nothing above 2.
   */
  level?: number;
  /**
   * Text chunks, in order before the pixels; pairs allow repeated keys. Keys have 1 … 79 characters of Latin-1. Texts in
   * Latin-1 are tEXt chunks, others iTXt chunks, which come first.
   */
  text?: Readonly<Record<string, string>> | readonly (readonly [string, string])[];
  /** Bits of a sample: 8, or 16 for a tensor times 65535, rounded. Default: 8; samples that are numbers have their own. */
  bitDepth?: 8 | 16;
}

/** Options of `Tensor.toPng`. */
export interface TensorPngOptions extends EncodePngOptions {
  /** Picture of a batch, from 0; required if it has several. */
  index?: number;
}

/** Files from tensors and back. Formats belong to src/io, a layer above, which installs it. */
interface PictureCodec<Tensor> {
  encode(pictures: Tensor, options: TensorPngOptions | undefined): Promise<Buffer>;
  decode(bytes: Uint8Array): Promise<Tensor>;
}

/** Number of values scanned for a range at most: some milliseconds. */
const MAX_SCANNED = 2 ** 22;

/** Least and largest value, as console.log prints them after a tensor's shape: "-3.21 … 3.4, 2 NaN". */
function rangeOf(values: Float32Array): string {
  if (values.length === 0) return "empty";
  if (values.length > MAX_SCANNED) return `${values.length} values`;
  let [low, high, nans] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  // an iterator would take ten times as long
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value < low) low = value;
    if (value > high) high = value;
    if (Number.isNaN(value)) nans++;
  }
  if (nans === values.length) return "NaN";
  const range = low === high ? fourDigits(low) : `${fourDigits(low)} … ${fourDigits(high)}`;
  return nans === 0 ? range : `${range}, ${nans} NaN`;
}

/** Rounds to four digits: float32 0.1 is 0.10000000149. */
const fourDigits = (value: number): string => String(Number(value.toPrecision(4)));
