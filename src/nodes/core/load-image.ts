import { describe, LatentkitError } from "../../errors.js";
import { checkInputPng, inputFileHash, readInputPng } from "../../io/input-file.js";
import { decodePngFrames, imageTensor } from "../../io/png.js";
import { channelOf, firstChannels, inverted } from "../../tensor/channels.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode, type ValidateContext, type ValidationResult } from "../define.js";
import { text } from "../inputs.js";

const SUBJECT = 'input "image"';

/** The name of a picture in the input folder. */
export const imageFile = () => text({ image_upload: true, tooltip: "A PNG file, relative to the input folder." });

/**
 * The hash of the file, so that another picture under the same name is another input. NaN, always changed, where the
 * name comes through a link and is not known yet.
 */
export const fileHash = ({ image }: Record<string, unknown>, { inputDir }: { inputDir?: string }) =>
  typeof image === "string" && inputDir !== undefined ? inputFileHash(inputDir, image) : Number.NaN;

/** Checks the file where its name is known, so that a graph is refused before anything runs. */
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

/** The first `most` pictures of a file as [frames, H, W, 3 or 4], 16-bit samples scaled; and whether alpha is a key. */
export async function loadPictures(folder: string, name: string, most?: number) {
  const bytes = await readInputPng({ folder, name, subject: SUBJECT });
  try {
    const decoded = await decodePngFrames(bytes, most);
    return { pictures: imageTensor(decoded), isKeyed: decoded.isKeyed };
  } catch (error) {
    if (!(error instanceof LatentkitError) || !error.code.startsWith("png.")) throw error;
    const received = describe(name);
    const message = `${SUBJECT}: expected a PNG file that can be read, received ${received}. ${error.message}`;
    throw new LatentkitError(error.code, message, { input: "image", received }, { cause: error });
  }
}

/** Alpha turned round, [B, H, W]; zeros of the images' size where they have none. */
export const transparency = (pictures: Tensor): Tensor =>
  pictures.shape[3] === 4 ? inverted(channelOf(pictures, 3)) : Tensor.zeros(pictures.shape.slice(0, 3));

export const loadImage = defineNode({
  key: "LoadImage",
  displayName: "Load Image",
  category: "image",
  description: "Reads a PNG file: the colours of each frame, and what is transparent as mask.",
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
