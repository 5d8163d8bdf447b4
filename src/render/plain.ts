import { describe, LatentkitError } from "../base/errors.js";
import type { RunEvent } from "../graph/events.js";
import { keysInOrder, NumberLiteral } from "../io/json/lossless.js";
import type { RawImage } from "../io/png/raw-image.js";
import { Tensor } from "../tensor/tensor.js";
import type { RunOutcome } from "./result.js";

const MAX_DEPTH = 32;

// decisions: Rounded seeds are refused
/** An event as plain data: tensors and objects of the program are named, not carried. */
export function plainEvent(event: RunEvent, literal: (literal: NumberLiteral) => unknown = (same) => same): unknown {
  return plainData(brief(event), literal);
}

function brief(event: RunEvent): object {
  if (event.type === "node-done") return { ...event, outputs: event.outputs.map(inWords) };
  if (event.type !== "run-done") return event;
  return { ...event, outputs: outputsInWords(event.outputs) };
}

/** A result as plain data. */
export function plainResult(
  result: Omit<RunOutcome, "error">,
  literal: (literal: NumberLiteral) => unknown = (same) => same,
): unknown {
  return plainData({ ...result, outputs: outputsInWords(result.outputs) }, literal);
}

const outputsInWords = (outputs: RunOutcome["outputs"]) =>
  Object.fromEntries(Object.entries(outputs).map(([id, values]) => [id, values.map(inWords)]));

const inWords = (value: unknown): unknown => (value !== null && typeof value === "object" ? describe(value) : value);

/** Lists, plain objects and scalars as they are, errors as their facts, anything else in words. */
export function plainData(
  value: unknown,
  literal: (literal: NumberLiteral) => unknown = (same) => same,
  depth = 0,
): unknown {
  if (value instanceof LatentkitError) {
    return plainData({ code: value.code, message: value.message, ...value.details }, literal, depth);
  }
  if (value instanceof NumberLiteral) return literal(value);
  if (typeof value === "function" || typeof value === "symbol") return describe(value);
  if (value === null || typeof value !== "object") return value;
  if (depth > MAX_DEPTH) return describe(value);
  if (Array.isArray(value)) return value.map((item) => plainData(item, literal, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return describe(value);
  const keys = keysInOrder(value).filter((key) => (value as Record<string, unknown>)[key] !== undefined);
  return Object.fromEntries(
    keys.map((key) => [key, plainData((value as Record<string, unknown>)[key], literal, depth + 1)]),
  );
}

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
