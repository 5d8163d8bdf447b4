import { inputError } from "../../base/errors.js";
import type { ClipVision, ImageAdapter, Model, ShownPictures } from "../../host/types.js";
import { withLast } from "../../tensor/parts.js";
import type { Tensor } from "../../tensor/tensor.js";
import { choice, float, image, mask, model, socket } from "../inputs.js";
import { COMBINATIONS, type Combination, combined } from "./embeds.js";
import type { LayerWeights } from "./weights.js";

/** Input with an IPAdapter. */
export const ipadapter = () => socket<ImageAdapter>("IPADAPTER");

/** Input with a weight of pictures. */
export const pictureWeight = () => float({ default: 1, min: -1, max: 5, step: 0.05 });

/** The first inputs of most nodes that show pictures. */
export const firstInputs = () => ({ model: model(), ipadapter: ipadapter(), image: image(), weight: pictureWeight() });

/** Inputs for the range of sampling in which pictures count. */
export const rangeInputs = () => ({
  start_at: float({ default: 0, min: 0, max: 1, step: 0.001 }),
  end_at: float({ default: 1, min: 0, max: 1, step: 0.001 }),
});

const SCALINGS = ["V only", "K+V", "K+V w/ C penalty", "K+mean(V) w/ C penalty"] as const;

export const scaling = () => choice(SCALINGS);
export const combination = () => choice(COMBINATIONS);

/** The optional inputs of the nodes that show pictures. */
export const tailInputs = () => ({
  image_negative: image({ optional: true }),
  attn_mask: mask({ optional: true }),
  clip_vision: socket<ClipVision, { optional: true }>("CLIP_VISION", { optional: true }),
});

/** The answer of validation for an input that may not be linked. */
export const unlessLinked = (input: string, inputs: Readonly<Record<string, unknown>>, expected: string) =>
  Object.hasOwn(inputs, input) && inputs[input] === undefined
    ? { [input]: `expected ${expected}, received a link` }
    : {};

/** Values of the inputs that all of these nodes have. */
export interface ShowInputs {
  readonly model: Model;
  readonly ipadapter: ImageAdapter;
  readonly start_at: number;
  readonly end_at: number;
  readonly embeds_scaling: ShownPictures["scaling"];
  readonly image_negative?: Tensor;
  readonly attn_mask?: Tensor;
  readonly clip_vision?: ClipVision;
}

/** The encoder of a node, or the one that came with its adapter. Throws input.missing without either. */
export function requireEncoder({ ipadapter, clip_vision }: Pick<ShowInputs, "ipadapter" | "clip_vision">): ClipVision {
  const encoder = clip_vision ?? ipadapter.encoder;
  if (encoder !== undefined) return encoder;
  const expected = "a CLIP vision encoder, or an ipadapter of IPAdapterUnifiedLoader, which has one";
  throw inputError("input.missing", { input: "clip_vision" }, expected, undefined);
}

/** Embedded pictures of both sides, as many on each. */
export type EmbeddedPictures = Pick<ShownPictures, "embeds" | "negative">;

/** Embeds pictures [n, H, W, C] and what the negative side sees for them, and combines them. */
export async function embedded(
  inputs: Pick<ShowInputs, "ipadapter" | "clip_vision" | "image_negative">,
  pictures: Tensor,
  method: Combination,
  signal: AbortSignal,
): Promise<EmbeddedPictures> {
  const { ipadapter, image_negative } = inputs;
  const encoder = requireEncoder(inputs);
  const embeds = combined(await ipadapter.embed(encoder, pictures, undefined, signal), method);
  const none =
    image_negative === undefined
      ? await ipadapter.embedNone(encoder, signal)
      : await ipadapter.embed(encoder, image_negative, undefined, signal);
  return { embeds, negative: withLast(none, embeds.shape[0]!) };
}

/** Options of most nodes. */
const USUAL = { isPerLatent: false, hasMiddle: false, maskMethod: "bilinear" } as const;

/** The model that sees embedded pictures with these weights; the model itself if all of them are 0. */
export async function withPictures(
  inputs: ShowInputs,
  pictures: EmbeddedPictures,
  weights: LayerWeights,
  signal: AbortSignal,
  others: Partial<Pick<ShownPictures, "isPerLatent" | "hasMiddle" | "maskMethod" | "mask">> = {},
): Promise<Model> {
  const { ipadapter, start_at: start, end_at: end, embeds_scaling, attn_mask } = inputs;
  const how = {
    ...USUAL,
    mask: attn_mask && asMasks(attn_mask, "attn_mask"),
    start,
    end,
    scaling: embeds_scaling,
    ...others,
  };
  let { model } = inputs;
  for (const [own, isSwapped] of [
    [weights.plain, false],
    [weights.swapped, true],
  ] as const)
    if (own.some((weight) => weight !== 0))
      model = await ipadapter.show(model, { ...pictures, ...how, weights: own, isSwapped }, signal);
  return model;
}

/** Masks of an input, with a channel axis or without, as [n, H, W]. */
export function asMasks(mask: Tensor, input: string): Tensor {
  const [height = 0, width = 0] = mask.shape.slice(-2);
  if (mask.size === 0) throw inputError("value.invalid", { input }, "a mask of at least 1 x 1 pixels", mask);
  return mask.reshape([mask.size / (height * width), height, width]);
}
