import { loadNative } from "../native/load.js";

/** Planes of float32, row-major: [batch, 3, height, width]. */
export interface Planes {
  readonly data: Float32Array;
  readonly batch: number;
  readonly height: number;
  readonly width: number;
}

/**
 * Pixels of images that are computed when they are read: planes enlarged to [batch, height, width, 3]. A reader of bytes
 * gets bytes alone: four times as many bytes of floats are neither written nor read.
 */
export class DeferredImage {
  /** `buffer` is the memory that the values will fill; nothing else may write into it, nor into the planes. */
  constructor(
    readonly buffer: ArrayBufferLike,
    private readonly planes: Planes,
    private readonly height: number,
    private readonly width: number,
  ) {}

  /** Text that console.log prints. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.height} x ${this.width} pixels, not read yet`;
  }

  /** Number of values. */
  get size(): number {
    return this.planes.batch * this.height * this.width * 3;
  }

  /** Computes all values in `buffer`. */
  values(): Float32Array {
    const values = new Float32Array(this.buffer, 0, this.size);
    const { data, batch, height, width } = this.planes;
    loadNative().resizeToImage(values, data, batch, height, width, this.height, this.width);
    return values;
  }

  /** Computes `count` items from `index` on as bytes, equal to `toBytes` of the values. */
  toBytes(out: Uint8Array, index = 0, count = this.planes.batch): void {
    const { data, height, width } = this.planes;
    const itemSize = 3 * height * width;
    const items = data.subarray(index * itemSize, (index + count) * itemSize);
    loadNative().resizeToBytes(out, items, count, height, width, this.height, this.width);
  }
}
