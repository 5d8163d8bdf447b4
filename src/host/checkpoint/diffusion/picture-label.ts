import { describe, LatentkitError } from "../../../base/errors.js";
import { cos, square } from "../../../native/elementary.js";
import { weightedSum } from "../../../tensor/ops.js";
import { createGenerator } from "../../../tensor/random.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning } from "../../types.js";
import { EncodedPicture } from "../clip-vision/model.js";

/** An encoded picture in the options of a conditioning, as unCLIPConditioning adds it. */
interface AddedPicture {
  readonly clip_vision_output: unknown;
  readonly strength: number;
  readonly noise_augmentation: number;
}

/** Levels of the noise that is added to an embedding. */
const LEVELS = 1000;
/** Bound of a step's loss of signal. */
const MOST_LOSS = 0.999;
/** Distance of the noise's seed from that of the run. */
const SEED_DISTANCE = 10n;

/**
 * Embedding [1, width] of the picture of an entry, with noise, which stands for its pooled text; undefined without one.
 * Throws value.invalid for several pictures and those of other hosts.
 */
export function pictureLabel([, options]: Conditioning[number], seed = 0n): Tensor | undefined {
  const added = options.unclip_conditioning;
  if (!Array.isArray(added) || added.length === 0) return undefined;
  const [{ clip_vision_output: picture, strength, noise_augmentation }] = added as [AddedPicture];
  if (added.length > 1 || !(picture instanceof EncodedPicture) || picture.embedding.shape[0] !== 1) {
    const expected = "one picture, encoded by CLIPVisionEncode of the same host";
    const received = added.length > 1 ? `${added.length} pictures` : describe(picture);
    throw new LatentkitError("value.invalid", `unCLIPConditioning: expected ${expected}, received ${received}.`);
  }
  const { embedding } = picture;
  const signal = signalAt(roundHalfEven((LEVELS - 1) * noise_augmentation));
  const noise = createGenerator({ seed: BigInt.asUintN(64, seed - SEED_DISTANCE) }).randn(embedding.shape);
  return weightedSum([
    [Math.sqrt(signal) * strength, embedding],
    [Math.sqrt(1 - signal) * strength, noise],
  ]);
}

/** Share of the signal's variance after a level. Source: the cosine schedule of Nichol and Dhariwal 2021. */
function signalAt(level: number): number {
  const at = (time: number): number => square(cos((((time + 0.008) / 1.008) * Math.PI) / 2));
  let signal = 1;
  for (let i = 0; i <= level; i++) signal *= 1 - Math.min(1 - at((i + 1) / LEVELS) / at(i / LEVELS), MOST_LOSS);
  return signal;
}
