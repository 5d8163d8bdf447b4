import { describe, LatentkitError } from "../../../base/errors.js";
import { checkInputPng, inputFileHash, readInputPng } from "../../../io/files/input-file.js";
import { decodePngFrames, imageTensor } from "../../../io/png/png.js";
import { channelOf, firstChannels, inverted } from "../../../tensor/channels.js";
import { returnMemory } from "../../../tensor/memory.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode, type ValidateContext, type ValidationResult } from "../../define.js";
import { text } from "../../inputs.js";

const SUBJECT = 'input "image"';

/** Input with the name of an image file in the input folder. */
export const imageFile = () => text({ image_upload: true, tooltip: "A PNG file, relative to the input folder." });

/**
 * Hash of the file, so that another image under the same name counts as changed. NaN (always changed) where the name
 * comes through a link.
 */
export const fileHash = ({ image }: Record<string, unknown>, { inputDir }: { inputDir?: string }) =>
  typeof image === "string" && inputDir !== undefined ? inputFileHash(inputDir, image) : Number.NaN;

/** Checks the file where the graph holds its name, so that a graph fails before anything runs. */
export function validImage({ image }: Record<string, unknown>, { inputDir, hints }: ValidateContext): ValidationResult {
  if (typeof image !== "string" || inputDir === undefined) return true;
  try {
    checkInputPng({ folder: inputDir, name: image, subject: SUBJECT }, hints);
    return true;
  } catch (error) {
    if (error instanceof LatentkitError) return { image: error };
    throw error;
  }
}

/** Reads the first `limit` frames of a file as [frames, H, W, 3 or 4]; `isKeyed`: alpha is one transparent colour. */
export async function loadPictures(folder: string, name: string, limit?: number) {
  const bytes = await readInputPng({ folder, name, subject: SUBJECT });
  try {
    const decoded = await decodePngFrames(bytes, limit);
    const pictures = imageTensor(decoded);
    returnMemory(decoded.data.buffer);
    return { pictures, isKeyed: decoded.isKeyed };
  } catch (error) {
    if (!(error instanceof LatentkitError) || !error.code.startsWith("png.")) throw error;
    const received = describe(name);
    const message = `${SUBJECT}: expected a PNG file that can be read, received ${received}. ${error.message}`;
    throw new LatentkitError(error.code, message, { input: "image", received }, { cause: error });
  } finally {
    returnMemory(bytes.buffer);
  }
}

/** Inverted alpha [B, H, W]; zeros of the images' size where they have none. */
export const transparency = (pictures: Tensor): Tensor =>
  pictures.shape[3] === 4 ? inverted(channelOf(pictures, 3)) : emptyMask(pictures.shape.slice(0, 3));

/** Zeros in memory of the pool: most graphs never read them. */
function emptyMask(shape: readonly number[]): Tensor {
  const mask = Tensor.unfilled(shape);
  mask.data.fill(0);
  return mask;
}

export const loadImage = defineNode({
  key: "LoadImage",
  displayName: "Load Image",
  category: "image",
  description: "Reads a PNG file: the colours of each frame, and its transparency as a mask.",
  inputs: { image: imageFile() },
  outputs: [
    { name: "IMAGE", type: "IMAGE" },
    { name: "MASK", type: "MASK" },
  ],
  validate: validImage,
  isChanged: fileHash,
  run: async ({ image }, { folders }) => {
    const { pictures, isKeyed } = await loadPictures(folders.input, image);
    const colours = firstChannels(pictures, 3);
    // ComfyUI masks by alpha and by palettes, not by one transparent colour
    return { IMAGE: colours, MASK: transparency(isKeyed ? colours : pictures) };
  },
});
