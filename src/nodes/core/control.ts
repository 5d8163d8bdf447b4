import { inputError, LatentkitError } from "../../base/errors.js";
import { encodePlain } from "../../host/prompt/encode.js";
import type { ClipVision, Conditioning, Control, ControlNet, StyleModel, UpscaleModel, Vae } from "../../host/types.js";
import { firstChannels } from "../../tensor/channels.js";
import { scale } from "../../tensor/ops.js";
import { cropped, joined, narrowed } from "../../tensor/parts.js";
import { fourSides } from "../../tensor/shape.js";
import { elementCount, Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { lacking, patches } from "../host-files.js";
import { choice, clip, conditioning, float, image, int, mask, model, socket, text, vae } from "../inputs.js";
import { CELL, inCells } from "../latents.js";
import { addTile, regionOf, tilesOf } from "../tiles.js";

/** Input with a control net. */
const controlNet = () => socket<ControlNet>("CONTROL_NET");

/** Inputs for the strength and the range of a control net. */
const controlInputs = () => ({
  strength: float({ default: 1, min: 0, max: 10, step: 0.01 }),
  start_percent: float({ default: 0, min: 0, max: 1, step: 0.001 }),
  end_percent: float({ default: 1, min: 0, max: 1, step: 0.001 }),
});

/** Kinds of pictures; those after the first are numbered from 0. */
const UNION_TYPES = [
  "auto",
  "openpose",
  "depth",
  "hed/pidi/scribble/ted",
  "canny/lineart/anime_lineart/mlsd",
  "normal",
  "segment",
  "tile",
  "repaint",
];

const boxSide = (value: number, min: number) => inCells(int({ default: value, min, max: 16384, step: CELL }));

/** A conditioning for either side of guidance. */
const BOTH_SIDES = [
  { name: "positive", type: "CONDITIONING" },
  { name: "negative", type: "CONDITIONING" },
] as const;

export const controlNodes = [
  defineNode({
    key: "ControlNetApply",
    displayName: "Apply ControlNet (OLD)",
    category: "conditioning/controlnet",
    description: "Guides a model by a picture, on the negative side as well.",
    deprecated: true,
    inputs: {
      conditioning: conditioning(),
      control_net: controlNet(),
      image: image(),
      strength: controlInputs().strength,
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, control_net: net, image: hint, strength }) => {
      if (strength === 0) return { CONDITIONING: conditioning };
      const [CONDITIONING] = controlled([conditioning], { net, hint, strength, start: 0, end: 1 }, true);
      return { CONDITIONING };
    },
  }),
  defineNode({
    key: "ControlNetApplyAdvanced",
    displayName: "Apply ControlNet",
    category: "conditioning/controlnet",
    description: "Guides a model by a picture in a range of the schedule.",
    inputs: {
      positive: conditioning(),
      negative: conditioning(),
      control_net: controlNet(),
      image: image(),
      ...controlInputs(),
      vae: vae({ optional: true }),
    },
    outputs: BOTH_SIDES,
    run: applyControl,
  }),
  defineNode({
    key: "ControlNetApplySD3",
    displayName: "Apply Controlnet with VAE",
    category: "conditioning/controlnet",
    description: "Guides a model by a picture in a range of the schedule; a VAE encodes it if the net needs that.",
    deprecated: true,
    inputs: {
      positive: conditioning(),
      negative: conditioning(),
      control_net: controlNet(),
      vae: vae(),
      image: image(),
      ...controlInputs(),
    },
    outputs: BOTH_SIDES,
    run: applyControl,
  }),
  defineNode({
    key: "ControlNetInpaintingAliMamaApply",
    category: "conditioning/controlnet",
    description:
      "Guides a model by a picture in a range of the schedule; ControlNets of UNets do not use vae and mask.",
    inputs: {
      positive: conditioning(),
      negative: conditioning(),
      control_net: controlNet(),
      vae: vae(),
      image: image(),
      mask: mask(),
      ...controlInputs(),
    },
    outputs: BOTH_SIDES,
    run: ({ mask: _, ...inputs }) => applyControl(inputs),
  }),
  defineNode({
    key: "SetUnionControlNetType",
    category: "conditioning/controlnet",
    description: "Sets the kind of picture for a ControlNet that takes several.",
    inputs: { control_net: controlNet(), type: choice(UNION_TYPES) },
    outputs: { CONTROL_NET: "CONTROL_NET" },
    run: ({ control_net, type }, { host }) => {
      if (control_net.ofType === undefined) throw lacking(host, "has only one kind of picture for this ControlNet");
      return { CONTROL_NET: control_net.ofType(UNION_TYPES.indexOf(type) - 1) };
    },
  }),
  defineNode({
    key: "QwenImageDiffsynthControlnet",
    category: "advanced/loaders/qwen",
    description: "Guides a model of Z-Image or Qwen-Image by a picture of outlines, depths or poses.",
    inputs: {
      model: model(),
      model_patch: socket("MODEL_PATCH"),
      vae: vae(),
      image: image(),
      strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
      mask: mask({ optional: true }),
    },
    outputs: { MODEL: "MODEL" },
    run: patches("QwenImageDiffsynthControlnet", "strength"),
  }),
  defineNode({
    key: "ZImageFunControlnet",
    category: "advanced/loaders/zimage",
    description: "Guides a model of Z-Image by a picture, and has it repaint the masked part of another one.",
    inputs: {
      model: model(),
      model_patch: socket("MODEL_PATCH"),
      vae: vae(),
      strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
      image: image({ optional: true }),
      inpaint_image: image({ optional: true }),
      mask: mask({ optional: true }),
    },
    outputs: { MODEL: "MODEL" },
    run: patches("ZImageFunControlnet", "strength"),
  }),
  defineNode({
    key: "CLIPVisionEncode",
    displayName: "CLIP Vision Encode",
    category: "conditioning",
    description: "Encodes the colours of a picture, cut to its middle square or squeezed into one.",
    inputs: { clip_vision: socket<ClipVision>("CLIP_VISION"), image: image(), crop: choice(["center", "none"]) },
    outputs: { CLIP_VISION_OUTPUT: "CLIP_VISION_OUTPUT" },
    run: async ({ clip_vision, image, crop }, { signal }) => ({
      CLIP_VISION_OUTPUT: await clip_vision.encode(firstChannels(image, 3), crop, signal),
    }),
  }),
  defineNode({
    key: "StyleModelApply",
    displayName: "Apply Style Model",
    category: "conditioning/style_model",
    description: "Appends the tokens of an encoded picture to a prompt.",
    inputs: {
      conditioning: conditioning(),
      style_model: socket<StyleModel>("STYLE_MODEL"),
      clip_vision_output: socket<object>("CLIP_VISION_OUTPUT"),
      strength: float({ default: 1, min: 0, max: 10, step: 0.001 }),
      strength_type: choice(["multiply", "attn_bias"]),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ conditioning, style_model, clip_vision_output, strength, strength_type }) => {
      if (strength_type === "attn_bias" && strength !== 1) {
        const at = { input: "strength_type" };
        throw inputError("input.invalid", at, `"multiply", or strength 1 with "attn_bias"`, strength_type);
      }
      const words = await style_model.tokens(clip_vision_output);
      const weighed = strength === 1 ? words : scale(words, strength);
      return { CONDITIONING: conditioning.map(([tokens, options]) => [withWords(tokens, weighed), { ...options }]) };
    },
  }),
  defineNode({
    key: "GLIGENTextBoxApply",
    category: "conditioning/gligen",
    description: "Places a prompt in a box of the picture.",
    inputs: {
      conditioning_to: conditioning(),
      clip: clip(),
      gligen_textbox_model: socket<object>("GLIGEN"),
      text: text({ multiline: true, dynamicPrompts: true }),
      width: boxSide(64, CELL),
      height: boxSide(64, CELL),
      x: boxSide(0, 0),
      y: boxSide(0, 0),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: async ({ conditioning_to, clip, gligen_textbox_model: model, text, ...box }, { log }) => {
      const pooled = (await encodePlain(clip, text, log))[0]?.[1].pooled_output;
      if (!(pooled instanceof Tensor))
        throw inputError("value.invalid", { input: "clip" }, "a clip with a pooled output", clip);
      const cells = (pixels: number): number => Math.floor(pixels / CELL);
      const { width, height, x, y } = box;
      const own = { pooled, height: cells(height), width: cells(width), y: cells(y), x: cells(x) };
      return {
        CONDITIONING: conditioning_to.map(([tokens, options]) => {
          const { boxes } = (options.gligen ?? {}) as { boxes?: unknown };
          return [tokens, { ...options, gligen: { model, boxes: [...(Array.isArray(boxes) ? boxes : []), own] } }];
        }),
      };
    },
  }),
  defineNode({
    key: "ImageUpscaleWithModel",
    displayName: "Upscale Image (using Model)",
    category: "image/upscaling",
    description: "Enlarges images with a model, in overlapping tiles of 512 pixels; alpha is left out.",
    inputs: { upscale_model: socket<UpscaleModel>("UPSCALE_MODEL"), image: image() },
    outputs: { IMAGE: "IMAGE" },
    run: async ({ upscale_model: model, image }, { signal, progress }) => {
      const pixels = firstChannels(image, CHANNELS);
      const [batch, height, width] = fourSides("Upscale", pixels);
      const { scale } = model;
      const shape = [batch, height * scale, width * scale, CHANNELS];
      elementCount(shape);
      const tiles = tilesOf(height, width, TILE, OVERLAP, scale);
      const out = Tensor.zeros(shape);
      const layout = { planes: 1, height: shape[1]!, width: shape[2]!, values: CHANNELS, scale };
      const size = out.size / Math.max(1, batch);
      for (let item = 0; item < batch; item++) {
        const picture = narrowed(pixels, 0, item, 1);
        for (const [index, tile] of tiles.entries()) {
          signal.throwIfAborted();
          const part = cropped(picture, 1, regionOf(tile));
          const large = requireTile(await model.upscale(part, signal), part, scale);
          addTile(out.data.subarray(item * size, (item + 1) * size), large.data, tile, layout);
          progress(item * tiles.length + index + 1, batch * tiles.length);
        }
      }
      clamp(out.data);
      return { IMAGE: out };
    },
  }),
] as const;

/**
 * Conditionings whose entries carry a control net, before those that they carry already. Entries with the same control
 * before share one object, so that one model call evaluates them. `toUncond`: the negative side gets it as well.
 */
function controlled(
  sides: readonly Conditioning[],
  control: Omit<Control, "previous">,
  toUncond = false,
): Conditioning[] {
  const after = new Map<unknown, Control>();
  const follow = (previous: unknown): Control => {
    const shared = after.get(previous) ?? { ...control, previous: previous as Control | undefined };
    after.set(previous, shared);
    return shared;
  };
  return sides.map((entries) =>
    entries.map(([tokens, options]) => [
      tokens,
      { ...options, control: follow(options.control ?? undefined), control_apply_to_uncond: toUncond },
    ]),
  );
}

interface ControlInputs {
  readonly positive: Conditioning;
  readonly negative: Conditioning;
  readonly control_net: ControlNet;
  readonly image: Tensor;
  readonly strength: number;
  readonly start_percent: number;
  readonly end_percent: number;
  readonly vae?: Vae;
}

/** Both sides, guided by a picture in a range of the schedule. */
function applyControl({ positive, negative, control_net: net, image: hint, vae, ...range }: ControlInputs) {
  const { strength, start_percent: start, end_percent: end } = range;
  if (strength === 0) return { positive, negative };
  const sides = controlled([positive, negative], { net, hint, strength, start, end, vae });
  return { positive: sides[0], negative: sides[1] };
}

/** Tokens of a prompt [1, n, dim], then those of a picture [1, m, dim]. */
function withWords(prompt: Tensor, picture: Tensor): Tensor {
  const { shape } = prompt;
  if (shape.length === 3 && shape[0] === 1 && picture.hasShape(shape.with(1, picture.shape[1] ?? 0)))
    return joined([prompt, picture], 1);
  const shapes = `[${shape.join(", ")}] and [${picture.shape.join(", ")}]`;
  const message = `Style model: expected tokens [1, n, dim] of one dim, received ${shapes}.`;
  throw new LatentkitError("tensor.bad-shape", message);
}

/** Sides of the tiles that are enlarged one by one, and how far they overlap, in pixels. */
const TILE = 512;

const OVERLAP = 32;

const CHANNELS = 3;

function requireTile(tile: unknown, { shape }: Tensor, scale: number): Tensor {
  const expected = [1, shape[1]! * scale, shape[2]! * scale, CHANNELS];
  if (tile instanceof Tensor && tile.hasShape(expected)) return tile;
  throw inputError("value.invalid", { input: "upscale_model" }, `a model that returns [${expected.join(", ")}]`, tile);
}

/** Limits values to 0…1; NaN is 0. */
function clamp(values: Float32Array): void {
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    values[i] = value > 0 ? Math.min(value, 1) : 0;
  }
}
