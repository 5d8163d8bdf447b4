import { LatentkitError } from "../base/errors.js";
import type { ByteMethod, ResizeMethod } from "../native/bindings.js";
import { loadNative } from "../native/load.js";
import { releaseMemory } from "./deferred-values.js";
import { resizeBilinear } from "./ops.js";
import { cropped } from "./parts.js";
import { roundHalfEven } from "./rounding.js";
import { fourSides, outputOf } from "./shape.js";
import { badShape, elementCount, Tensor } from "./tensor.js";

/** Methods for latents and masks: ComfyUI's, in its order. */
export const LATENT_METHODS = ["nearest-exact", "bilinear", "area", "bicubic", "bislerp"] as const;
/** Methods for images: ComfyUI's, in its order. */
export const IMAGE_METHODS = ["nearest-exact", "bilinear", "area", "bicubic", "lanczos"] as const;

export type LatentMethod = (typeof LATENT_METHODS)[number];
export type ImageMethod = (typeof IMAGE_METHODS)[number];

/** Whether a method is one of Pillow's, which round pictures to bytes. */
const isOfBytes = (method: ResizeMethod): boolean => method === "lanczos" || method.startsWith("pillow-");

/** Size of the result; `crop` "center" first cuts the middle of the same proportions out, so that nothing is distorted. */
export interface ResizeOptions<Method> {
  readonly method: Method;
  readonly height: number;
  readonly width: number;
  readonly crop?: "disabled" | "center";
}

/** Batch, channels, what lies between these and the sides (frames), height, width. */
type Sides = readonly [number, number, number, number, number];

/**
 * Resizes the last two axes of a latent [B, C, H, W] or [B, C, …, H, W] to height x width cells: PyTorch's interpolate
 * with align_corners false and no antialias, or "bislerp", which turns the vectors of the channels into each other. Fails
 * with tensor.bad-shape for a side of 0, and with tensor.too-large.
 */
export function resizeLatent(x: Tensor, options: ResizeOptions<LatentMethod>, out?: Tensor): Tensor {
  const { shape } = x;
  if (shape.length < 4) throw badShape("resizeLatent", "a tensor [B, C, H, W]", x);
  const axis = shape.length - 2;
  return throughCrop("resizeLatent", x, axis, options, (middle) => {
    const { method, height, width } = options;
    // the one method that devices have
    if (method === "bilinear") return resizeBilinear(middle, height, width, out);
    const inner = elementCount(shape.slice(2, axis));
    const sides = [shape[0]!, shape[1]!, inner, middle.shape[axis]!, middle.shape[axis + 1]!] as const;
    return resized(middle, sides, options, [...shape.slice(0, axis), height, width], out);
  });
}

/**
 * Resizes an image [B, H, W, C] to height x width pixels: PyTorch's interpolate with align_corners false and no antialias,
 * or "lanczos" and "pillow-…", which are Pillow's resizes of 8-bit images of 2 to 4 channels, the last of 2 and 4 being
 * alpha. Fails with tensor.bad-shape for a side of 0 or other channels for Pillow's, and with tensor.too-large.
 */
export function resizeImage(x: Tensor, options: ResizeOptions<ImageMethod | ByteMethod>, out?: Tensor): Tensor {
  const [batch, , , channels] = fourSides("resizeImage", x, "[B, H, W, C]");
  const { method, height, width } = options;
  if (isOfBytes(method) && (channels < 2 || channels > 4))
    throw badShape(`resizeImage, ${method}`, "an image of 2 to 4 channels", `${channels}`);
  return throughCrop("resizeImage", x, 1, options, (middle) => {
    const sides = [batch, channels, 1, middle.shape[1]!, middle.shape[2]!] as const;
    return resized(middle, sides, options, [batch, height, width, channels], out, true);
  });
}

/** Size of a picture, and the part of it that is made. Default of `part`: the whole. */
interface AntialiasedSize {
  readonly height: number;
  readonly width: number;
  readonly part?: { readonly top: number; readonly left: number; readonly height: number; readonly width: number };
}

/**
 * Resizes an image [B, H, W, C] to height x width pixels: PyTorch's bicubic interpolate with antialias, whose values may
 * overshoot the input's. Fails with tensor.bad-shape for a side of 0, and with tensor.too-large.
 */
export function resizeAntialiased(x: Tensor, { height, width, part }: AntialiasedSize): Tensor {
  const [batch, inHeight, inWidth, channels] = fourSides("resizeAntialiased", x, "[B, H, W, C]");
  requireSides("resizeAntialiased", inHeight, inWidth, height, width);
  const made = part ?? { top: 0, left: 0, height, width };
  elementCount([inHeight, made.width, channels]);
  const out = Tensor.unfilled([batch, made.height, made.width, channels]);
  const area = [made.top, made.left, made.height, made.width] as const;
  loadNative().resizeAntialiased(out.data, x.data, [batch, inHeight, inWidth, channels], height, width, area);
  return out;
}

function resized(
  x: Tensor,
  sides: Sides,
  { method, height, width }: ResizeOptions<ResizeMethod>,
  shape: readonly number[],
  out: Tensor | undefined,
  isImage = false,
): Tensor {
  const [batch, channels, inner, inHeight] = sides;
  // what lies between two passes can be larger than the input and the output
  if (isOfBytes(method)) elementCount([inHeight, width, channels]);
  if (method === "bislerp") elementCount([batch, channels, inner, inHeight, width]);
  const result = outputOf(isImage ? "resizeImage" : "resizeLatent", shape, out);
  loadNative().resize(result.data, x.data, method, isImage, sides, height, width);
  return result;
}

/** Checks the sides, which begin at `axis`, and resizes what the crop leaves of x. */
function throughCrop(
  operation: string,
  x: Tensor,
  axis: number,
  { height, width, crop }: ResizeOptions<string>,
  resize: (middle: Tensor) => Tensor,
): Tensor {
  requireSides(operation, x.shape[axis]!, x.shape[axis + 1]!, height, width);
  if (crop !== "center") return resize(x);
  const middle = middleOf(operation, x, axis, height, width);
  const result = resize(middle);
  if (middle !== x) releaseMemory(middle.memory);
  return result;
}

/** The middle of x, whose sides begin at an axis, in the proportions of width x height. Fails with tensor.bad-shape. */
export function middleOf(operation: string, x: Tensor, axis: number, height: number, width: number): Tensor {
  const [inHeight, inWidth] = [x.shape[axis]!, x.shape[axis + 1]!];
  const [top, left] = marginsOf(inHeight, inWidth, height, width);
  const sides = { height: Math.max(0, inHeight - 2 * top), width: Math.max(0, inWidth - 2 * left) };
  const middle = cropped(x, axis, { top, left, ...sides });
  // A crop without pixels is refused instead of returned.
  if (sides.height > 0 && sides.width > 0) return middle;
  const message = `${operation}, crop to ${width} x ${height}: nothing of the ${inWidth} x ${inHeight} input would be left.`;
  throw new LatentkitError("tensor.bad-shape", message);
}

/** Rows at the top and bottom, and columns at the left and right, to cut off for the proportions of width x height. */
function marginsOf(inHeight: number, inWidth: number, height: number, width: number): [number, number] {
  const [aspect, target] = [inWidth / inHeight, width / height];
  const left = aspect > target ? roundHalfEven((inWidth - inWidth * (target / aspect)) / 2) : 0;
  const top = aspect < target ? roundHalfEven((inHeight - inHeight * (aspect / target)) / 2) : 0;
  return [top, left];
}

function requireSides(operation: string, inHeight: number, inWidth: number, height: number, width: number): void {
  if (inHeight === 0 || inWidth === 0)
    throw badShape(operation, "an input of at least 1 x 1", `${inWidth} x ${inHeight}`);
  if ([height, width].every((side) => Number.isInteger(side) && side > 0)) return;
  throw badShape(operation, "sides of at least 1", `${inWidth} x ${inHeight} to ${width} x ${height}`);
}
