import { describe, LatentkitError } from "../../base/errors.js";
import { cropped, cycled, joined } from "../../tensor/parts.js";
import { resizeLatent } from "../../tensor/resize.js";
import { roundHalfEven } from "../../tensor/rounding.js";
import { Tensor } from "../../tensor/tensor.js";
import { clipped } from "../sampling/conditioning/areas.js";
import { readEntries } from "../sampling/conditioning/entries.js";
import { intoModel } from "../sampling/latent-space.js";
import type { Conditioning, SamplingRun } from "../types.js";

/** Channels of a grey picture's latent in the model's units, which stands in where nothing was hidden. */
const GREY = [0.8223, -0.6876, 0.6364, 0.138];

/**
 * The five channels that an inpainting network takes beside the noisy latent: the mask, 1 where it repaints, and the
 * latent with that part hidden. They come from the entry's `concat_mask` and `concat_latent_image` (in the VAE's units),
 * else from the run's own mask and latent; without any mask everything is repainted.
 */
export function inpaintChannels(entry: Conditioning[number], run: SamplingRun): Tensor {
  const [batch, channels, rows, columns] = run.latent.shape as [number, number, number, number];
  const [, { concat_mask: ownMask, concat_latent_image: ownLatent }] = entry;
  const mask = requireTensor("concat_mask", ownMask) ?? run.mask;
  const latent = requireTensor("concat_latent_image", ownLatent);
  const sized = (x: Tensor): Tensor => cycled(resizedTo(x, rows, columns), batch);
  if (mask === undefined) return joined([Tensor.full([batch, 1, rows, columns], 1), grey(run.latent)], 1);
  const [height = 0, width = 0] = mask.shape.slice(-2);
  const planes = mask.reshape([mask.size / (height * width), 1, height, width]);
  const hidden = latent === undefined ? run.latent : intoModel(latent, run.sampling);
  if (hidden.shape[1] !== channels) {
    const expected = `concat_latent_image with ${channels} channels`;
    throw new LatentkitError("tensor.bad-shape", `conditioning: expected ${expected}, received ${describe(hidden)}.`);
  }
  return joined([rounded(sized(planes)), sized(hidden)], 1);
}

/** The part of the channels that lies in the area of an entry, for a model that gets that part of the latent alone. */
export function inArea(channels: Tensor, entry: Conditioning[number], { sampling, latent }: SamplingRun): Tensor {
  const [, , rows, columns] = latent.shape as [number, number, number, number];
  const [whole] = readEntries([entry], sampling, [rows, columns]);
  const { y, x, height, width } = clipped(whole?.area, rows, columns);
  return cropped(channels, 2, { top: y, left: x, height, width });
}

function requireTensor(name: string, value: unknown): Tensor | undefined {
  if (value === undefined || value === null) return undefined;
  if (value instanceof Tensor && value.size > 0 && value.shape.length >= 3) return value;
  throw new LatentkitError(
    "tensor.bad-shape",
    `conditioning, ${name}: expected a tensor, received ${describe(value)}.`,
  );
}

const resizedTo = (x: Tensor, height: number, width: number): Tensor =>
  x.shape[2] === height && x.shape[3] === width
    ? x
    : resizeLatent(x, { width, height, method: "bilinear", crop: "center" });

function rounded(x: Tensor): Tensor {
  const out = Tensor.unfilled(x.shape);
  const [from, to] = [x.data, out.data];
  for (let i = 0; i < to.length; i++) to[i] = roundHalfEven(from[i]!);
  return out;
}

function grey({ shape }: Tensor): Tensor {
  const out = Tensor.zeros(shape);
  const [, channels, rows, columns] = shape as [number, number, number, number];
  const plane = rows * columns;
  for (let i = 0; i < out.size; i += plane) out.data.fill(GREY[(i / plane) % channels] ?? 0, i, i + plane);
  return out;
}
