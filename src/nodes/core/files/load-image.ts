import { describe, LatentkitError } from "../../../base/errors.js";
import { checkInputPng, checkPngHead, inputFileHash } from "../../../io/files/input-file.js";
import { type FilesByName, givenBytes, isAddress } from "../../../io/files/input-text.js";
import { decodePngFrames, imageTensor } from "../../../io/png/png.js";
import { channelOf, firstChannels, inverted } from "../../../tensor/channels.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode, type NodeContext, type ValidateContext, type ValidationResult } from "../../define.js";
import { text } from "../../inputs.js";

const SUBJECT = 'input "image"';

/** Input with the name of an image file in the input folder. */
export const imageFile = () =>
  text({ image_upload: true, tooltip: "A PNG file, relative to the input folder; a data: text; an https: address." });

/**
 * Hash of the file, so that another image under the same name counts as changed. NaN (always changed) where the name
 * comes through a link, and for an address.
 */
export function fileHash(
  { image }: Record<string, unknown>,
  { inputDir, files }: { readonly inputDir?: string; readonly files?: FilesByName },
) {
  const isKnown = typeof image === "string" && inputDir !== undefined;
  return isKnown && (!isAddress(image) || givenBytes(files, image))
    ? inputFileHash(inputDir, image, files)
    : Number.NaN;
}

/** Checks the file where the graph holds its name, so that a graph fails before anything runs. */
export function validImage(
  { image }: Record<string, unknown>,
  { inputDir, files, hints }: ValidateContext,
): ValidationResult {
  if (typeof image !== "string" || inputDir === undefined) return true;
  try {
    checkInputPng({ folder: inputDir, name: image, subject: SUBJECT, files }, hints);
    return true;
  } catch (error) {
    if (error instanceof LatentkitError) return { image: error };
    throw error;
  }
}

/** Reads the first `limit` frames of a file as [frames, H, W, 3 or 4]; `isKeyed`: alpha is one transparent colour. */
export async function loadPictures(readInput: NodeContext["readInput"], name: string, limit?: number) {
  const bytes = await readInput(name, SUBJECT);
  checkPngHead({ name, subject: SUBJECT }, bytes);
  try {
    const decoded = await decodePngFrames(bytes, limit);
    return { pictures: imageTensor(decoded), isKeyed: decoded.isKeyed };
  } catch (error) {
    if (!(error instanceof LatentkitError) || !error.code.startsWith("png.")) throw error;
    const received = describe(name);
    const message = `${SUBJECT}: expected a PNG file that can be read, received ${received}. ${error.message}`;
    throw new LatentkitError(error.code, message, { input: "image", received }, { cause: error });
  }
}

/** Inverted alpha [B, H, W]; zeros of the images' size where they have none. */
export const transparency = (pictures: Tensor): Tensor =>
  pictures.shape[3] === 4 ? inverted(channelOf(pictures, 3)) : Tensor.zeros(pictures.shape.slice(0, 3));

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
  run: async ({ image }, { readInput }) => {
    const { pictures, isKeyed } = await loadPictures(readInput, image);
    const colours = firstChannels(pictures, 3);
    // ComfyUI masks by alpha and by palettes, not by one transparent colour
    return { IMAGE: colours, MASK: transparency(isKeyed ? colours : pictures) };
  },
});
