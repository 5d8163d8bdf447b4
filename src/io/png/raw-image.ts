import { isNoMemory, lossOf } from "../../tensor/deferred-values.js";
import type { Tensor } from "../../tensor/tensor.js";

/** Pixels of an image, rows from the top, samples interleaved: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. */
export interface RawImage {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  /** Bits of a sample, 8 or 16: 16 are two bytes in `data`, big-endian. Default: 8. */
  readonly bitDepth?: number;
}

/** An image that a device has prepared for a PNG file. */
export interface FilteredImage {
  readonly pixels: RawImage;
  /** A filter byte and the filtered samples, row by row. */
  readonly rows: Uint8Array;
}

/**
 * Converts and filters image `index` of a tensor [B, H, W, C], C 1 to 4, on the device that holds it. Undefined if the
 * tensor is in memory or the device has no memory left. Fails with device.lost.
 */
export async function filterOnDevice(
  images: Tensor,
  index: number,
  { width, height, channels }: Omit<RawImage, "data" | "bitDepth">,
): Promise<FilteredImage | undefined> {
  const { onDevice } = images;
  if (onDevice === undefined) return undefined;
  try {
    const { pixels, rows } = await onDevice.cuda.ops.filterPng(onDevice.reach(), index, width, height, channels);
    return { pixels: { data: pixels, width, height, channels }, rows };
  } catch (error) {
    if (isNoMemory(error)) return undefined;
    throw lossOf(onDevice.cuda, error) ?? error;
  }
}
