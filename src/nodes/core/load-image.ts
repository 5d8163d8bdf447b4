import { inputFileHash, readInputFile } from "../../io/input-file.js";
import { decodePng, imageTensor } from "../../io/png.js";
import { channelOf, firstChannels, inverted } from "../../tensor/channels.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { text } from "../inputs.js";

/** The name of a picture in the input folder. */
export const imageFile = () => text({ image_upload: true, tooltip: "A PNG file, relative to the input folder." });

/**
 * The hash of the file, so that another picture under the same name is another input. NaN, always changed, where the
 * name comes through a link and is not known yet.
 */
export const fileHash = ({ image }: Record<string, unknown>, { inputDir }: { inputDir?: string }) =>
  typeof image === "string" && inputDir !== undefined ? inputFileHash(inputDir, image) : Number.NaN;

/** The picture as IMAGE [1, H, W, 3 or 4]; 16-bit samples are scaled, not clipped. */
export const loadPicture = async (folder: string, name: string): Promise<Tensor> =>
  imageTensor(await decodePng(await readInputFile(folder, name)));

/** What is transparent, [1, H, W]; zeros of the image's size where it has no alpha. */
export const transparency = (picture: Tensor): Tensor =>
  picture.shape[3] === 4 ? inverted(channelOf(picture, 3)) : Tensor.zeros(picture.shape.slice(0, 3));

export const loadImage = defineNode({
  key: "LoadImage",
  displayName: "Load Image",
  category: "image",
  description: "Reads a PNG file: its colours, and what is transparent as mask.",
  inputs: { image: imageFile() },
  outputs: [
    { name: "IMAGE", type: "IMAGE" },
    { name: "MASK", type: "MASK" },
  ],
  isChanged: fileHash,
  run: async ({ image }, { folders }) => {
    const picture = await loadPicture(folders.input, image);
    return { IMAGE: firstChannels(picture, 3), MASK: transparency(picture) };
  },
});
