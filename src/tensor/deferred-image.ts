import { loadNative } from "../native/load.js";
import type { Tensor } from "./tensor.js";

/**
 * The pixels of pictures that nobody has read yet: `small` [B, 3, h, w] enlarged to [B, height, width, 3]. Who wants them
 * as bytes gets these alone: four times as many bytes of floats are neither written nor read.
 */
export class Later {
  /** As long as the values. `buffer` is where they will lie; nothing else may write there, nor into `small`. */
  constructor(
    readonly buffer: ArrayBufferLike,
    private readonly small: Tensor,
    private readonly height: number,
    private readonly width: number,
  ) {}

  /** What console.log shows of it. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `${this.height} x ${this.width} pixels, not read yet`;
  }

  get size(): number {
    return this.batch * this.height * this.width * 3;
  }

  /** All values, computed in `buffer`. */
  values(): Float32Array {
    const values = new Float32Array(this.buffer, 0, this.size);
    const [, , h, w] = this.small.shape as [number, number, number, number];
    loadNative().resizeToImage(values, this.small.data, this.batch, h, w, this.height, this.width);
    return values;
  }

  /** `count` items from `index` on as bytes, as `toBytes` makes them of the values. */
  toBytes(out: Uint8Array, index = 0, count = this.batch): void {
    const [, , h, w] = this.small.shape as [number, number, number, number];
    const items = this.small.data.subarray(index * 3 * h * w, (index + count) * 3 * h * w);
    loadNative().resizeToBytes(out, items, count, h, w, this.height, this.width);
  }

  private get batch(): number {
    return this.small.shape[0]!;
  }
}
