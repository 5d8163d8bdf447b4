import { describe, LatentkitError } from "../../../base/errors.js";
import { firstChannels } from "../../../tensor/channels.js";
import { resizeAntialiased } from "../../../tensor/resize.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { fourSides } from "../../../tensor/shape.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { ClipVision } from "../../types.js";
import type { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import { buildClipVision, type ClipVisionConfig, clipVisionWork, PICTURE_SIDE } from "./build.js";

/** Outputs of an encoder, as buildClipVision has them. */
const STATES = ["last", "penultimate", "embedding"] as const;
export type VisionState = (typeof STATES)[number];

/** An encoded picture, or several: `last` and `penultimate` [B, 257, hidden], `embedding` [B, width]. */
export class EncodedPicture {
  constructor(
    readonly last: Tensor,
    readonly penultimate: Tensor,
    readonly embedding: Tensor,
  ) {}
}

/** A CLIP vision encoder of a file. */
export class CheckpointClipVision implements ClipVision {
  readonly #runtime: Runtime;
  readonly part: ModelPart<ClipVisionConfig>;

  constructor(runtime: Runtime, part: ModelPart<ClipVisionConfig>) {
    this.#runtime = runtime;
    this.part = part;
  }

  async encode(image: Tensor, crop: "center" | "none", signal?: AbortSignal): Promise<EncodedPicture> {
    const { last, penultimate, embedding } = await this.states(clipPixels(image, crop), STATES, signal);
    return new EncodedPicture(last!, penultimate!, embedding!);
  }

  /** Some of the outputs for pixels as clipPixels makes them. */
  states(pixels: Tensor, outputs: readonly VisionState[], signal?: AbortSignal): Promise<Record<string, Tensor>> {
    const session = this.part.session("CLIP vision", buildClipVision, { work: clipVisionWork(this.part.config) });
    return this.#runtime.run(session, { pixels }, { signal, outputs });
  }
}

/** Mean and deviation of the colours of the pictures that CLIP was trained with. */
const MEAN = [0.48145466, 0.4578275, 0.40821073];
const DEVIATION = [0.26862954, 0.26130258, 0.27577711];
const COLOURS = 3;
const PLANE = PICTURE_SIDE * PICTURE_SIDE;

/**
 * Pictures [B, H, W, C] in 0…1 as CLIP takes them, [B, 3, 224, 224]: their middle square, or the whole squeezed into one,
 * in 256 levels. Fails with tensor.bad-shape for fewer than three channels and for no pixels.
 */
export function clipPixels(image: Tensor, crop: "center" | "none"): Tensor {
  const square = squareOf(firstChannels(image, COLOURS), crop);
  const out = Tensor.unfilled([square.shape[0]!, COLOURS, PICTURE_SIDE, PICTURE_SIDE]);
  const [from, to] = [square.data, out.data];
  for (let i = 0; i < to.length; i++) {
    const colour = Math.floor(i / PLANE) % COLOURS;
    const value = from[(Math.floor(i / (COLOURS * PLANE)) * PLANE + (i % PLANE)) * COLOURS + colour]!;
    const level = roundHalfEven(Math.fround(255 * Math.min(1, value > 0 ? value : 0)));
    to[i] = (Math.fround(level / 255) - MEAN[colour]!) / DEVIATION[colour]!;
  }
  return out;
}

function squareOf(image: Tensor, crop: "center" | "none"): Tensor {
  const [, height, width] = fourSides("CLIP vision", image, "[B, H, W, C]");
  if (height === PICTURE_SIDE && width === PICTURE_SIDE) return image;
  if (image.size === 0) {
    const message = `CLIP vision: expected a picture of at least 1 x 1 pixels, received ${describe(image)}.`;
    throw new LatentkitError("tensor.bad-shape", message);
  }
  const side = { height: PICTURE_SIDE, width: PICTURE_SIDE };
  if (crop === "none") return resizeAntialiased(image, side);
  const scale = PICTURE_SIDE / Math.min(height, width);
  const [rows, columns] = [roundHalfEven(height * scale), roundHalfEven(width * scale)];
  const [top, left] = [Math.floor((rows - PICTURE_SIDE) / 2), Math.floor((columns - PICTURE_SIDE) / 2)];
  return resizeAntialiased(image, { height: rows, width: columns, part: { top, left, ...side } });
}
