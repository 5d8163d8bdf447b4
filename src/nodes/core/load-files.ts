import { createHash } from "node:crypto";
import { describe, LatentkitError } from "../../base/errors.js";
import {
  checkInputFile,
  checkInputPicture,
  checkPictureHead,
  inputFileHash,
  readInputFile,
} from "../../io/files/input-file.js";
import { type FilesByName, givenBytes, isAddress } from "../../io/files/input-text.js";
import { decodePicture } from "../../io/pictures/decode.js";
import { needsSharp, pictureKind } from "../../io/pictures/format.js";
import { decoderVersion } from "../../io/pictures/sharp.js";
import { imageTensor } from "../../io/png/png.js";
import { readSafetensors, toTensor } from "../../io/safetensors.js";
import { channelOf, firstChannels, inverted } from "../../tensor/channels.js";
import { returnMemory } from "../../tensor/memory-pool.js";
import { scale } from "../../tensor/ops.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode, type NodeContext, type ValidateContext, type ValidationResult } from "../define.js";
import { choice, text } from "../inputs.js";
import { FORMAT, SAMPLES } from "./save-files.js";

const IMAGE_INPUT = 'input "image"';

/** Input with the name of an image file in the input folder. */
const imageFile = () =>
  text({
    image_upload: true,
    tooltip:
      "A PNG, JPEG, WebP, AVIF, GIF, TIFF or BMP file, relative to the input folder; or a data: or https: address.",
  });

/**
 * Hash of the file, so that another image under the same name counts as changed, and the version of sharp if it reads
 * the file. NaN (always changed) if the name comes through a link, and for an address.
 */
async function fileHash(
  { image }: Record<string, unknown>,
  { inputDir, files }: { readonly inputDir?: string; readonly files?: FilesByName },
) {
  if (typeof image !== "string" || inputDir === undefined) return Number.NaN;
  if (isAddress(image) && givenBytes(files, image) === undefined) return Number.NaN;
  const bytes = await readInputFile({ folder: inputDir, name: image, files });
  const hash = createHash("sha256").update(bytes).digest("hex");
  const kind = pictureKind(bytes);
  returnMemory(bytes.buffer);
  return kind === undefined || !needsSharp(kind) ? hash : `${hash} ${decoderVersion()}`;
}

/** Checks the file if the graph holds its name, so that a graph fails before anything runs. */
function validImage({ image }: Record<string, unknown>, { inputDir, files, hints }: ValidateContext): ValidationResult {
  if (typeof image !== "string" || inputDir === undefined) return true;
  try {
    checkInputPicture({ folder: inputDir, name: image, subject: IMAGE_INPUT, files }, hints);
    return true;
  } catch (error) {
    if (error instanceof LatentkitError) return { image: error };
    throw error;
  }
}

const COLOUR_CHANNELS = ["red", "green", "blue"] as const;

export const fileLoaderNodes = [
  defineNode({
    key: "LoadImage",
    displayName: "Load Image",
    category: "image",
    description: "Reads a picture: the colours of each frame, and its transparency as a mask.",
    inputs: { image: imageFile() },
    outputs: [
      { name: "IMAGE", type: "IMAGE" },
      { name: "MASK", type: "MASK" },
    ],
    validate: validImage,
    isChanged: fileHash,
    run: async ({ image }, { readInput, isBlocking }) => {
      const { pictures, isKeyed } = await loadPictures(image, { readInput, isBlocking });
      const colours = firstChannels(pictures, 3);
      // ComfyUI masks by alpha and by palettes, not by one transparent colour
      return { IMAGE: colours, MASK: transparency(isKeyed ? colours : pictures) };
    },
  }),
  defineNode({
    key: "LoadImageMask",
    displayName: "Load Image (as Mask)",
    category: "mask",
    description: "Reads one channel of a picture's first frame; alpha is inverted, so that transparent is 1.",
    inputs: { image: imageFile(), channel: choice(["alpha", ...COLOUR_CHANNELS]) },
    outputs: { MASK: "MASK" },
    validate: validImage,
    isChanged: fileHash,
    run: async ({ image, channel }, { readInput, isBlocking }) => {
      const { pictures } = await loadPictures(image, { readInput, isBlocking }, 1);
      return {
        MASK: channel === "alpha" ? transparency(pictures) : channelOf(pictures, COLOUR_CHANNELS.indexOf(channel)),
      };
    },
  }),
  defineNode({
    key: "LoadLatent",
    displayName: "Load Latent",
    category: "_for_testing",
    description: "Reads a latent that SaveLatent has written; one of a single frame is that of a picture.",
    inputs: { latent: text({ tooltip: "A .latent file, relative to the input folder." }) },
    outputs: { LATENT: "LATENT" },
    validate: ({ latent: name }, { inputDir: folder, files, hints }) => {
      if (typeof name !== "string" || folder === undefined) return true;
      if (isAddress(name)) return { latent: `expected a file's name, received ${describe(name)}` };
      try {
        checkInputFile({ folder, name, subject: LATENT_INPUT, files }, hints);
        return true;
      } catch (error) {
        if (error instanceof LatentkitError) return { latent: error };
        throw error;
      }
    },
    isChanged: ({ latent }, { inputDir, files }) =>
      typeof latent === "string" && inputDir !== undefined ? inputFileHash(inputDir, latent, files) : Number.NaN,
    run: async ({ latent: name }, { readInput }) => {
      const bytes = await readInput(name, LATENT_INPUT);
      return { LATENT: { samples: samplesOf(bytes, name) } };
    },
  }),
] as const;

/** Reads the first `limit` frames of a file as [frames, H, W, 3 or 4]; `isKeyed`: alpha is one transparent colour. */
async function loadPictures(
  name: string,
  { readInput, isBlocking }: Pick<NodeContext, "readInput" | "isBlocking">,
  limit?: number,
) {
  const bytes = await readInput(name, IMAGE_INPUT);
  checkPictureHead({ name, subject: IMAGE_INPUT }, bytes);
  try {
    const decoded = await decodePicture(bytes, limit, { isBlocking });
    const pictures = imageTensor(decoded);
    returnMemory(decoded.data.buffer);
    return { pictures, isKeyed: decoded.isKeyed };
  } catch (error) {
    if (!(error instanceof LatentkitError) || !/^(png|picture)\./.test(error.code)) throw error;
    const received = describe(name);
    const message = `${IMAGE_INPUT}: expected a readable picture, received ${received}. ${error.message}`;
    throw new LatentkitError(error.code, message, { input: "image", received }, { cause: error });
  } finally {
    returnMemory(bytes.buffer);
  }
}

/** Inverted alpha [B, H, W]; zeros of the images' size if they have none. */
const transparency = (pictures: Tensor): Tensor =>
  pictures.shape[3] === 4 ? inverted(channelOf(pictures, 3)) : emptyMask(pictures.shape.slice(0, 3));

/** Zeros in memory of the pool: most graphs never read them. */
function emptyMask(shape: readonly number[]): Tensor {
  const mask = Tensor.unfilled(shape);
  mask.data.fill(0);
  return mask;
}

const LATENT_INPUT = 'input "latent"';

/** Files from before the format had a version hold latents of Stable Diffusion 1 scaled to a deviation of 1. */
const OLD_SCALE = 1 / 0.18215;

// decisions: Latents of pictures have four sides
/** A latent [B, C, 1, H, W] of one frame as [B, C, H, W]. */
function ofPicture(samples: Tensor): Tensor {
  const [batch, channels, frames, ...sides] = samples.shape as [number, number, number, ...number[]];
  return sides.length === 2 && frames === 1 ? samples.reshape([batch, channels, ...sides]) : samples;
}

function samplesOf(bytes: Uint8Array, name: string): Tensor {
  try {
    const { tensors } = readSafetensors(bytes);
    const stored = tensors.get(SAMPLES);
    if (stored === undefined || stored.shape.length < 3 || stored.shape.length > 5)
      throw new LatentkitError("safetensors.invalid", `Expected a tensor "${SAMPLES}" of 3 to 5 axes.`);
    const samples = ofPicture(toTensor(stored));
    return tensors.has(FORMAT) ? samples : scale(samples, OLD_SCALE);
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    const received = describe(name);
    const message = `${LATENT_INPUT}: expected a latent that SaveLatent has written, received ${received}. ${error.message}`;
    throw new LatentkitError(error.code, message, { input: "latent", received }, { cause: error });
  }
}
