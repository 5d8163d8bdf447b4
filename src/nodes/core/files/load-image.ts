import { createHash } from "node:crypto";
import { describe, LatentkitError } from "../../../base/errors.js";
import { checkInputPicture, checkPictureHead, readInputFile } from "../../../io/files/input-file.js";
import { type FilesByName, givenBytes, isAddress } from "../../../io/files/input-text.js";
import { decodePicture } from "../../../io/pictures/decode.js";
import { pictureKind } from "../../../io/pictures/kind.js";
import { decoderVersion } from "../../../io/pictures/sharp.js";
import { imageTensor } from "../../../io/png/png.js";
import { channelOf, firstChannels, inverted } from "../../../tensor/channels.js";
import { returnMemory } from "../../../tensor/memory.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode, type NodeContext, type ValidateContext, type ValidationResult } from "../../define.js";
import { text } from "../../inputs.js";

const SUBJECT = 'input "image"';

/** Input with the name of an image file in the input folder. */
export const imageFile = () =>
  text({
    image_upload: true,
    tooltip: "A PNG, JPEG, WebP, AVIF, GIF or TIFF file, relative to the input folder; or a data: or https: address.",
  });

/**
 * Hash of the file, so that another image under the same name counts as changed, and the version of sharp where it reads
 * the file. NaN (always changed) where the name comes through a link, and for an address.
 */
export async function fileHash(
  { image }: Record<string, unknown>,
  { inputDir, files }: { readonly inputDir?: string; readonly files?: FilesByName },
) {
  if (typeof image !== "string" || inputDir === undefined) return Number.NaN;
  if (isAddress(image) && givenBytes(files, image) === undefined) return Number.NaN;
  const bytes = await readInputFile({ folder: inputDir, name: image, files });
  const hash = createHash("sha256").update(bytes).digest("hex");
  const kind = pictureKind(bytes);
  returnMemory(bytes.buffer);
  return kind === undefined || kind === "png" ? hash : `${hash} ${decoderVersion()}`;
}

/** Checks the file where the graph holds its name, so that a graph fails before anything runs. */
export function validImage(
  { image }: Record<string, unknown>,
  { inputDir, files, hints }: ValidateContext,
): ValidationResult {
  if (typeof image !== "string" || inputDir === undefined) return true;
  try {
    checkInputPicture({ folder: inputDir, name: image, subject: SUBJECT, files }, hints);
    return true;
  } catch (error) {
    if (error instanceof LatentkitError) return { image: error };
    throw error;
  }
}

/** Reads the first `limit` frames of a file as [frames, H, W, 3 or 4]; `isKeyed`: alpha is one transparent colour. */
export async function loadPictures(
  name: string,
  { readInput, isBlocking }: Pick<NodeContext, "readInput" | "isBlocking">,
  limit?: number,
) {
  const bytes = await readInput(name, SUBJECT);
  checkPictureHead({ name, subject: SUBJECT }, bytes);
  try {
    const decoded = await decodePicture(bytes, limit, { isBlocking });
    const pictures = imageTensor(decoded);
    returnMemory(decoded.data.buffer);
    return { pictures, isKeyed: decoded.isKeyed };
  } catch (error) {
    if (!(error instanceof LatentkitError) || !/^(png|picture)\./.test(error.code)) throw error;
    const received = describe(name);
    const message = `${SUBJECT}: expected a picture that can be read, received ${received}. ${error.message}`;
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
});
