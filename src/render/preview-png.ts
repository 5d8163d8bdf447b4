import { encodePng } from "../io/png/png.js";
import { itemOf } from "../tensor/items.js";
import { Tensor } from "../tensor/tensor.js";

/** Level of compression: a picture of a moment is not worth more. */
const LEVEL = 1;

/**
 * The first image of a preview, a Tensor [B, H, W, C], as a PNG file; bytes are such a file already. Undefined for anything
 * else, which a node of the application may report.
 */
export async function previewPng(preview: unknown): Promise<Uint8Array | undefined> {
  if (preview instanceof Uint8Array) return preview;
  if (!(preview instanceof Tensor) || preview.shape.length !== 4 || preview.size === 0) return undefined;
  try {
    return await encodePng(itemOf(preview, 0), { level: LEVEL });
  } catch {
    // a run without this picture is better than none
    return undefined;
  }
}
