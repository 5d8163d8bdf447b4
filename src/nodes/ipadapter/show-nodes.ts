import { describe, inputError } from "../../base/errors.js";
import { narrowed, withLast } from "../../tensor/parts.js";
import { defineNode } from "../define.js";
import { boolean, choice, float, image, int, mask, model, socket, text } from "../inputs.js";
import { embeds } from "./picture-nodes.js";
import { tiled } from "./pictures.js";
import {
  combination,
  embedded,
  firstInputs,
  ipadapter,
  pictureWeight,
  rangeInputs,
  scaling,
  tailInputs,
  unlessLinked,
  withPictures,
} from "./show.js";
import { layerWeights, listedWeights, WEIGHT_TYPES, type WeightType } from "./weights.js";

const CATEGORY = "ipadapter";
const weightType = () => choice(WEIGHT_TYPES);
const boost = (value: number) => float({ default: value, min: -5, max: 5, step: 0.05 });

/** Weight types of the simple node, by its names for them. */
const SIMPLE_TYPES = {
  standard: "linear",
  "prompt is more important": "ease out",
  "style transfer": "style transfer",
} as const satisfies Readonly<Record<string, WeightType>>;

const SIMPLE_NAMES = ["standard", "prompt is more important", "style transfer"] as const;

/** Scalings of the first version of the node, by its names for them. */
const OLD_SCALINGS = { original: "V only", linear: "K+V", "channel penalty": "K+mean(V) w/ C penalty" } as const;

const OLD_NAMES = ["original", "linear", "channel penalty"] as const;

const MODEL = { MODEL: "MODEL" } as const;

const UNSHARPENED = "0 (latentkit does not sharpen tiles)";
const MASKLESS = "no mask (the tiles have their own)";
const NOISELESS = "0 (latentkit adds no noise on the negative side)";

/** The answer of validation for a number that has to be 0. */
const unlessZero = (input: string, value: unknown, expected: string) =>
  typeof value === "number" && value !== 0 ? { [input]: `expected ${expected}, received ${describe(value)}` } : {};

export const showNodes = [
  defineNode({
    key: "IPAdapter",
    category: CATEGORY,
    description: "Shows pictures to a model by an IPAdapter of a preset.",
    inputs: {
      model: model(),
      ipadapter: ipadapter(),
      image: image(),
      weight: float({ default: 1, min: -1, max: 3, step: 0.05 }),
      ...rangeInputs(),
      weight_type: choice(SIMPLE_NAMES),
      attn_mask: mask({ optional: true }),
    },
    outputs: MODEL,
    run: async ({ image, weight, weight_type, ...inputs }, { signal }) => {
      if (inputs.ipadapter.encoder === undefined)
        throw inputError(
          "value.invalid",
          { input: "ipadapter" },
          "an ipadapter of IPAdapterUnifiedLoader",
          inputs.ipadapter,
        );
      const pictures = await embedded(inputs, image, "concat", signal);
      const weights = layerWeights(SIMPLE_TYPES[weight_type], weight, inputs.ipadapter.isSdxl);
      return { MODEL: await withPictures({ ...inputs, embeds_scaling: "V only" }, pictures, weights, signal) };
    },
  }),
  defineNode({
    key: "IPAdapterAdvanced",
    displayName: "IPAdapter Advanced",
    category: CATEGORY,
    description: "Shows pictures to a model by an IPAdapter.",
    inputs: {
      ...firstInputs(),
      weight_type: weightType(),
      combine_embeds: combination(),
      ...rangeInputs(),
      embeds_scaling: scaling(),
      ...tailInputs(),
    },
    outputs: MODEL,
    run: async ({ image, weight, weight_type, combine_embeds, ...inputs }, { signal }) => {
      const pictures = await embedded(inputs, image, combine_embeds, signal);
      const weights = layerWeights(weight_type, weight, inputs.ipadapter.isSdxl);
      return { MODEL: await withPictures(inputs, pictures, weights, signal) };
    },
  }),
  defineNode({
    key: "IPAdapterBatch",
    displayName: "IPAdapter Batch (Adv.)",
    category: CATEGORY,
    description: "Shows each latent of a batch its own picture by an IPAdapter; the last picture repeats.",
    inputs: {
      ...firstInputs(),
      weight_type: weightType(),
      ...rangeInputs(),
      embeds_scaling: scaling(),
      encode_batch_size: int({ default: 0, min: 0, max: 4096, tooltip: "No effect: pictures are encoded together." }),
      ...tailInputs(),
    },
    outputs: MODEL,
    run: async ({ image, weight, weight_type, ...inputs }, { signal }) => {
      const pictures = await embedded(inputs, image, "concat", signal);
      const weights = layerWeights(weight_type, weight, inputs.ipadapter.isSdxl);
      return { MODEL: await withPictures(inputs, pictures, weights, signal, { isPerLatent: true }) };
    },
  }),
  defineNode({
    key: "IPAdapterStyleComposition",
    displayName: "IPAdapter Style & Composition SDXL",
    category: CATEGORY,
    description: "Shows an SDXL model one picture for its style and another one for its composition.",
    inputs: {
      model: model(),
      ipadapter: ipadapter(),
      image_style: image(),
      image_composition: image(),
      weight_style: pictureWeight(),
      weight_composition: pictureWeight(),
      expand_style: boolean({ default: false }),
      combine_embeds: { ...combination(), options: { default: "average" } },
      ...rangeInputs(),
      embeds_scaling: scaling(),
      ...tailInputs(),
    },
    outputs: MODEL,
    run: async ({ image_style, image_composition, weight_style, weight_composition, ...inputs }, { signal }) => {
      const { ipadapter, expand_style, combine_embeds } = inputs;
      if (!ipadapter.isSdxl)
        throw inputError("value.invalid", { input: "ipadapter" }, "an IPAdapter of SDXL", ipadapter);
      const style = layerWeights(expand_style ? "strong style transfer" : "style transfer", weight_style, true);
      const composition = layerWeights("composition", weight_composition, true);
      const ofStyle = await embedded(inputs, image_style, combine_embeds, signal);
      const ofComposition = await embedded(inputs, image_composition, combine_embeds, signal);
      const styled = await withPictures(inputs, ofStyle, style, signal);
      return { MODEL: await withPictures({ ...inputs, model: styled }, ofComposition, composition, signal) };
    },
  }),
  defineNode({
    key: "IPAdapterPreciseStyleTransfer",
    displayName: "IPAdapter Precise Style Transfer",
    category: CATEGORY,
    description: "Shows a model the style of pictures by an IPAdapter, and takes their composition away.",
    inputs: {
      ...firstInputs(),
      style_boost: boost(1),
      combine_embeds: combination(),
      ...rangeInputs(),
      embeds_scaling: scaling(),
      ...tailInputs(),
    },
    outputs: MODEL,
    run: async ({ image, weight, style_boost, combine_embeds, ...inputs }, { signal }) => {
      const pictures = await embedded(inputs, image, combine_embeds, signal);
      const weights = layerWeights("style transfer precise", weight, inputs.ipadapter.isSdxl, { boost: style_boost });
      return { MODEL: await withPictures(inputs, pictures, weights, signal) };
    },
  }),
  defineNode({
    key: "IPAdapterPreciseComposition",
    displayName: "IPAdapter Precise Composition",
    category: CATEGORY,
    description: "Shows a model the composition of pictures by an IPAdapter, and takes their style away.",
    inputs: {
      ...firstInputs(),
      composition_boost: boost(0),
      combine_embeds: combination(),
      ...rangeInputs(),
      embeds_scaling: scaling(),
      ...tailInputs(),
    },
    outputs: MODEL,
    run: async ({ image, weight, composition_boost, combine_embeds, ...inputs }, { signal }) => {
      const pictures = await embedded(inputs, image, combine_embeds, signal);
      const others = { boost: composition_boost };
      const weights = layerWeights("composition precise", weight, inputs.ipadapter.isSdxl, others);
      return { MODEL: await withPictures(inputs, pictures, weights, signal) };
    },
  }),
  defineNode({
    key: "IPAdapterMS",
    displayName: "IPAdapter Mad Scientist",
    category: CATEGORY,
    description:
      "Shows pictures to a model by an IPAdapter, with a weight for each transformer: index:weight, and so on.",
    inputs: {
      ...firstInputs(),
      weight_faceidv2: { ...pictureWeight(), options: { ...pictureWeight().options, tooltip: "No effect." } },
      weight_type: weightType(),
      combine_embeds: combination(),
      ...rangeInputs(),
      embeds_scaling: scaling(),
      layer_weights: text({ default: "", multiline: true }),
      ...tailInputs(),
      insightface: socket("INSIGHTFACE", { optional: true }),
    },
    outputs: MODEL,
    run: async ({ image, weight, weight_type, combine_embeds, layer_weights, ...inputs }, { signal }) => {
      const { isSdxl } = inputs.ipadapter;
      const weights =
        layer_weights.trim() === ""
          ? layerWeights(weight_type, weight, isSdxl)
          : listedWeights(layer_weights, weight, isSdxl);
      if (weights === undefined) {
        const expected = `a list such as "3:1.2, 6:0.5" of transformers below ${isSdxl ? 11 : 16}`;
        throw inputError("value.invalid", { input: "layer_weights" }, expected, layer_weights);
      }
      const pictures = await embedded(inputs, image, combine_embeds, signal);
      return { MODEL: await withPictures(inputs, pictures, weights, signal) };
    },
  }),
  defineNode({
    key: "IPAdapterEmbeds",
    displayName: "IPAdapter Embeds",
    category: CATEGORY,
    description: "Shows embedded pictures to a model by an IPAdapter.",
    inputs: {
      model: model(),
      ipadapter: ipadapter(),
      pos_embed: embeds(),
      weight: pictureWeight(),
      weight_type: weightType(),
      ...rangeInputs(),
      embeds_scaling: scaling(),
      neg_embed: embeds(true),
      attn_mask: mask({ optional: true }),
      clip_vision: tailInputs().clip_vision,
    },
    outputs: MODEL,
    run: async ({ pos_embed, neg_embed, weight, weight_type, ...inputs }, { signal }) => {
      const { ipadapter, clip_vision } = inputs;
      const none = neg_embed ?? (await ipadapter.embedNone(clip_vision ?? ipadapter.encoder, signal));
      const pictures = { embeds: pos_embed, negative: withLast(none, pos_embed.shape[0]!) };
      const weights = layerWeights(weight_type, weight, ipadapter.isSdxl);
      return { MODEL: await withPictures(inputs, pictures, weights, signal) };
    },
  }),
  defineNode({
    key: "IPAdapterTiled",
    displayName: "IPAdapter Tiled",
    category: CATEGORY,
    description: "Shows a model the tiles of a large picture by an IPAdapter, each in its place.",
    inputs: {
      ...firstInputs(),
      weight_type: weightType(),
      combine_embeds: combination(),
      ...rangeInputs(),
      sharpening: float({ default: 0, min: 0, max: 1, step: 0.05 }),
      embeds_scaling: scaling(),
      ...tailInputs(),
    },
    outputs: [
      { name: "MODEL", type: "MODEL" },
      { name: "tiles", type: "IMAGE" },
      { name: "masks", type: "MASK" },
    ],
    validate: (inputs) => ({
      ...unlessZero("sharpening", inputs.sharpening, UNSHARPENED),
      ...unlessLinked("attn_mask", inputs, MASKLESS),
    }),
    run: async ({ image, weight, weight_type, combine_embeds, sharpening, attn_mask, ...inputs }, { signal }) => {
      if (image.shape[0] !== 1) throw inputError("value.invalid", { input: "image" }, "one picture", image);
      if (sharpening !== 0) throw inputError("input.invalid", { input: "sharpening" }, UNSHARPENED, sharpening);
      if (attn_mask !== undefined) throw inputError("value.invalid", { input: "attn_mask" }, MASKLESS, attn_mask);
      const { tiles, masks } = tiled(image);
      const weights = layerWeights(weight_type, weight, inputs.ipadapter.isSdxl);
      let { model } = inputs;
      for (let tile = 0; tile < tiles.shape[0]!; tile++) {
        const pictures = await embedded(inputs, narrowed(tiles, 0, tile, 1), combine_embeds, signal);
        const own = { ...inputs, model, attn_mask: narrowed(masks, 0, tile, 1) };
        model = await withPictures(own, pictures, weights, signal);
      }
      return { MODEL: model, tiles, masks };
    },
  }),
  defineNode({
    key: "IPAdapterApply",
    displayName: "Apply IPAdapter (OLD)",
    category: CATEGORY,
    description: "Shows pictures to a model by an IPAdapter, as its nodes did until March 2024: in the middle as well.",
    deprecated: true,
    inputs: {
      ipadapter: ipadapter(),
      clip_vision: { ...tailInputs().clip_vision, optional: false },
      image: image(),
      model: model(),
      weight: pictureWeight(),
      noise: float({ default: 0, min: 0, max: 1, step: 0.01 }),
      weight_type: choice(OLD_NAMES),
      ...rangeInputs(),
      unfold_batch: boolean({ default: false }),
      attn_mask: mask({ optional: true }),
    },
    outputs: MODEL,
    validate: ({ noise }) => unlessZero("noise", noise, NOISELESS),
    run: async ({ image, weight, noise, weight_type, unfold_batch, ...inputs }, { signal }) => {
      if (noise !== 0) throw inputError("input.invalid", { input: "noise" }, NOISELESS, noise);
      const pictures = await embedded(inputs, image, "concat", signal);
      const weights = layerWeights("linear", weight, inputs.ipadapter.isSdxl);
      const own = { ...inputs, embeds_scaling: OLD_SCALINGS[weight_type] };
      const others = { isPerLatent: unfold_batch, hasMiddle: true, maskMethod: "bicubic" } as const;
      return { MODEL: await withPictures(own, pictures, weights, signal, others) };
    },
  }),
] as const;
