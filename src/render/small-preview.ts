import type { RunEvent } from "../graph/events.js";
import type { RawImage } from "../io/raw-image.js";
import { Tensor } from "../tensor/tensor.js";

/** Longest side of a preview that is sent, in pixels. */
const MOST_SIDE = 128;

/** An event whose preview is a `RawImage` that can be sent: the first image, 128 pixels at most; any other event itself. */
export function withSmallPreview(event: RunEvent): RunEvent {
  return event.type === "progress" ? { ...event, preview: smallPicture(event.preview) } : event;
}

/** The first image of [B, h, w, C] as mean values of squares of pixels; undefined for anything else. */
function smallPicture(image: unknown): RawImage | undefined {
  if (!(image instanceof Tensor) || image.shape.length !== 4 || image.size === 0) return undefined;
  const [, fullHeight, fullWidth, channels] = image.shape as [number, number, number, number];
  if (channels > 4) return undefined;
  const side = Math.ceil(Math.max(fullHeight, fullWidth) / MOST_SIDE);
  const [height, width] = [Math.ceil(fullHeight / side), Math.ceil(fullWidth / side)];
  const { data } = image;
  // rounds, clips, and turns NaN into 0
  const samples = new Uint8ClampedArray(width * height * channels);
  for (let y = 0; y < height; y++) {
    const [top, bottom] = [y * side, Math.min(fullHeight, (y + 1) * side)];
    for (let x = 0; x < width; x++) {
      const [left, right] = [x * side, Math.min(fullWidth, (x + 1) * side)];
      const count = (bottom - top) * (right - left);
      for (let channel = 0; channel < channels; channel++) {
        let sum = 0;
        for (let row = top; row < bottom; row++) {
          for (let column = left; column < right; column++)
            sum += data[(row * fullWidth + column) * channels + channel]!;
        }
        samples[(y * width + x) * channels + channel] = (255 * sum) / count;
      }
    }
  }
  return { data: new Uint8Array(samples.buffer), width, height, channels };
}
