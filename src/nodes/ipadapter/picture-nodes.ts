import { inputError } from "../../base/errors.js";
import type { ClipVision } from "../../host/types.js";
import { scale } from "../../tensor/ops.js";
import { withLast } from "../../tensor/parts.js";
import type { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { fileName, loadHostFile } from "../host-files.js";
import { choice, float, image, int, mask, model, socket } from "../inputs.js";
import { besideEachOther, COMBINATIONS, combined } from "./embeds.js";
import { CROP_POSITIONS, INTERPOLATIONS, NOISES, noisePicture, preparedPicture } from "./pictures.js";
import { presetAdapter, presetName } from "./presets.js";
import { asMasks, ipadapter, requireEncoder, unlessLinked } from "./show.js";

const CATEGORY = "ipadapter";

const IMAGELESS = "no image (latentkit does not make noise from one)";

/** Input with embedded pictures. */
export const embeds = <const Optional extends boolean = false>(optional?: Optional) =>
  socket<Tensor, { optional: Optional }>("EMBEDS", { optional: (optional ?? false) as Optional });

export const pictureNodes = [
  defineNode({
    key: "IPAdapterModelLoader",
    displayName: "IPAdapter Model Loader",
    category: `${CATEGORY}/loaders`,
    description: "Loads an IPAdapter of the host.",
    inputs: { ipadapter_file: fileName("ipadapter") },
    outputs: { IPADAPTER: "IPADAPTER" },
    run: async ({ ipadapter_file }, loading) => ({
      IPADAPTER: await loadHostFile("ipadapter", "ipadapter_file", ipadapter_file, loading),
    }),
  }),
  defineNode({
    key: "IPAdapterUnifiedLoader",
    displayName: "IPAdapter Unified Loader",
    category: CATEGORY,
    description:
      "Loads the IPAdapter of a preset for the family of a model, with its CLIP vision encoder, by their usual names.",
    inputs: {
      model: model(),
      preset: presetName(),
      ipadapter: socket("IPADAPTER", { optional: true, tooltip: "No effect: files are loaded once anyway." }),
    },
    outputs: [
      { name: "model", type: "MODEL" },
      { name: "ipadapter", type: "IPADAPTER" },
    ],
    run: async ({ model, preset }, loading) => ({ model, ipadapter: await presetAdapter(model, preset, loading) }),
  }),
  defineNode({
    key: "IPAdapterEncoder",
    displayName: "IPAdapter Encoder",
    category: CATEGORY,
    description: "Embeds pictures for an IPAdapter, for both sides of guidance.",
    inputs: {
      ipadapter: ipadapter(),
      image: image(),
      weight: float({ default: 1, min: -1, max: 3, step: 0.01 }),
      mask: mask({ optional: true }),
      clip_vision: socket<ClipVision, { optional: true }>("CLIP_VISION", { optional: true }),
    },
    outputs: [
      { name: "pos_embed", type: "EMBEDS" },
      { name: "neg_embed", type: "EMBEDS" },
    ],
    run: async ({ weight, image, mask, ...inputs }, { signal }) => {
      const encoder = requireEncoder(inputs);
      const { ipadapter } = inputs;
      const own = await ipadapter.embed(encoder, image, mask && asMasks(mask, "mask"), signal);
      const none = await ipadapter.embedNone(encoder, signal);
      return { pos_embed: scale(own, weight), neg_embed: withLast(none, own.shape[0]!) };
    },
  }),
  defineNode({
    key: "IPAdapterCombineEmbeds",
    displayName: "IPAdapter Combine Embeds",
    category: CATEGORY,
    description: "Puts embedded pictures beside each other, or makes one of them.",
    inputs: {
      embed1: embeds(),
      method: choice([...COMBINATIONS, "max", "min"]),
      embed2: embeds(true),
      embed3: embeds(true),
      embed4: embeds(true),
      embed5: embeds(true),
    },
    outputs: { EMBEDS: "EMBEDS" },
    run: ({ method, embed1, embed2, embed3, embed4, embed5 }) => {
      const given = [embed1, embed2, embed3, embed4, embed5].filter((each) => each !== undefined);
      return { EMBEDS: combined(besideEachOther(given), method) };
    },
  }),
  defineNode({
    key: "PrepImageForClipVision",
    displayName: "Prep Image For ClipVision",
    category: CATEGORY,
    description: "Makes a square of 224 x 224 pixels of an image, as CLIP vision encoders take them, and sharpens it.",
    inputs: {
      image: image(),
      interpolation: choice(INTERPOLATIONS),
      crop_position: choice(CROP_POSITIONS),
      sharpening: float({ default: 0, min: 0, max: 1, step: 0.05 }),
    },
    outputs: { IMAGE: "IMAGE" },
    run: ({ image, interpolation, crop_position, sharpening }) => ({
      IMAGE: preparedPicture(image, interpolation, crop_position, sharpening),
    }),
  }),
  defineNode({
    key: "IPAdapterNoise",
    displayName: "IPAdapter Noise",
    category: CATEGORY,
    description: "Makes a picture of noise, for the negative side.",
    inputs: {
      type: choice(NOISES),
      strength: float({ default: 1, min: 0, max: 1, step: 0.05 }),
      blur: int({ default: 0, min: 0, max: 32, step: 1 }),
      image_optional: image({ optional: true }),
    },
    outputs: { IMAGE: "IMAGE" },
    validate: (inputs) => unlessLinked("image_optional", inputs, IMAGELESS),
    run: ({ type, strength, blur, image_optional }) => {
      if (image_optional !== undefined)
        throw inputError("value.invalid", { input: "image_optional" }, IMAGELESS, image_optional);
      return { IMAGE: noisePicture(type, strength, blur) };
    },
  }),
] as const;
