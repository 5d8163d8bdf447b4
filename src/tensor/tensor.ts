import { describe, LatentkitError } from "../errors.js";
import type { Later } from "./deferred-image.js";
import type { Remote } from "./device/remote.js";
import { rangeOf } from "./inspect.js";
import { takeMemory } from "./memory.js";

/** More elements than one tensor may hold: 4 GiB of float32. */
const MAX_ELEMENTS = 2 ** 30;

/** From so many values on it pays to take memory as it is: an operation fills it faster than zeros would. */
const UNFILLED_FROM = 2 ** 12;
const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;

/**
 * Dense float32 values, row-major and contiguous. They lie in memory; until `data` is read they may lie on a device, or not
 * be computed yet.
 */
export class Tensor {
  readonly shape: readonly number[];
  readonly size: number;
  private values: Float32Array | undefined;
  private remote: Remote | undefined;
  private later: Later | undefined;
  /** The shape again: an element of a frozen array takes ten times as long to read. */
  private readonly sides: readonly number[];

  private constructor(values: Float32Array | undefined, shape: readonly number[], remote?: Remote, later?: Later) {
    this.values = values;
    this.remote = remote;
    this.later = later;
    this.size = values === undefined ? (remote ?? later)!.size : values.length;
    this.sides = [...shape];
    this.shape = Object.freeze([...shape]);
  }

  /** A Float32Array is taken over, not copied. Fails when the number of values is not the product of the shape. */
  static from(data: ArrayLike<number>, shape: readonly number[]): Tensor {
    const size = elementCount(shape);
    if (typeof data !== "object" || typeof data?.length !== "number") {
      throw new LatentkitError(
        "value.invalid",
        `Tensor data: expected a list of numbers or a typed array, received ${describe(data)}.`,
      );
    }
    if (data.length !== size) {
      throw new LatentkitError(
        "tensor.bad-shape",
        `Tensor data: expected ${size} values for shape [${shape.join(", ")}], received ${data.length}.`,
      );
    }
    return new Tensor(data instanceof Float32Array ? data : Float32Array.from(data), shape);
  }

  static zeros(shape: readonly number[]): Tensor {
    return new Tensor(new Float32Array(elementCount(shape)), shape);
  }

  /** @internal Values that lie on a device; of as many as the shape has. */
  static on(remote: Remote, shape: readonly number[]): Tensor {
    return new Tensor(undefined, shape, remote);
  }

  /** @internal Values that are computed when they are read; of as many as the shape has. */
  static later(later: Later, shape: readonly number[]): Tensor {
    return new Tensor(undefined, shape, undefined, later);
  }

  /** @internal The values are what the memory held: for a writer of every element that hands out nothing if it fails. */
  static unfilled(shape: readonly number[]): Tensor {
    const size = elementCount(shape);
    if (size < UNFILLED_FROM) return Tensor.zeros(shape);
    return new Tensor(new Float32Array(takeMemory(size * FLOAT_BYTES)), shape);
  }

  static full(shape: readonly number[], value: number): Tensor {
    if (typeof value !== "number") {
      throw new LatentkitError("value.invalid", `Tensor value: expected a number, received ${describe(value)}.`);
    }
    const tensor = Tensor.unfilled(shape);
    tensor.data.fill(value);
    return tensor;
  }

  /** The values; what lies on a device is fetched, and lies here from then on. Fails with device.lost. */
  get data(): Float32Array {
    return this.values ?? this.fetch();
  }

  /** @internal What computes the values, while nobody has read them. */
  get unread(): Later | undefined {
    return this.later;
  }

  /** @internal Whether the values have to be fetched before they can be read here. */
  get isAway(): boolean {
    return this.values === undefined;
  }

  /** @internal Where the values lie, if on a device. */
  get lies(): Remote | undefined {
    const { remote } = this;
    // a tensor that shares the memory may have fetched it
    if (remote?.read !== undefined) this.fetch();
    return this.remote;
  }

  /** @internal What the values lie in, the same for all that share it. */
  get memory(): ArrayBufferLike | Remote {
    return this.lies ?? this.later?.buffer ?? this.data.buffer;
  }

  /** Shape and range, as console.log shows them. Values that lie on a device, or are not computed yet, stay there. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    const values = this.values ?? this.remote?.read;
    const where = this.remote === undefined ? "not computed yet" : `on ${this.remote.cuda.name}`;
    return `Tensor [${this.shape.join(", ")}] ${values === undefined ? where : rangeOf(values)}`;
  }

  private fetch(): Float32Array {
    const values = this.later?.values() ?? this.remote!.fetch();
    this.values = values;
    this.remote = undefined;
    this.later = undefined;
    return values;
  }

  /** Whether a shape, or the shape of a tensor, is this one's. */
  hasShape(of: Tensor | readonly number[]): boolean {
    const sides = of instanceof Tensor ? of.sides : of;
    if (!Array.isArray(sides) || sides.length !== this.sides.length) return false;
    // callbacks and iterators would cost more than a small operation
    for (let axis = 0; axis < sides.length; axis++) if (sides[axis] !== this.sides[axis]) return false;
    return true;
  }

  clone(): Tensor {
    const remote = this.lies?.copied();
    if (remote !== undefined) return new Tensor(undefined, this.shape, remote);
    const copy = Tensor.unfilled(this.shape);
    copy.data.set(this.data);
    return copy;
  }

  /** The same values under another shape of the same size; the data is shared. */
  reshape(shape: readonly number[]): Tensor {
    const remote = this.lies;
    if (remote === undefined || elementCount(shape) !== this.size) return Tensor.from(this.data, shape);
    return new Tensor(undefined, shape, remote);
  }
}

/** Product of a shape; refuses what is no shape and what could not be allocated. */
export function elementCount(shape: readonly number[]): number {
  if (!Array.isArray(shape)) {
    throw new LatentkitError("tensor.bad-shape", `Shape: expected a list of sizes, received ${describe(shape)}.`);
  }
  let size = 1;
  for (const side of shape) {
    if (!Number.isInteger(side) || side < 0) {
      throw new LatentkitError(
        "tensor.bad-shape",
        `Shape [${shape.map(describe).join(", ")}]: expected whole numbers from 0, received ${describe(side)}.`,
      );
    }
    size *= side;
  }
  if (size > MAX_ELEMENTS) {
    throw new LatentkitError(
      "tensor.too-large",
      `Shape [${shape.join(", ")}]: expected at most ${MAX_ELEMENTS} elements, received ${size}.`,
    );
  }
  return size;
}
