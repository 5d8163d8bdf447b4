// Installs the reader and writer of Tensor's picture files: tensor/ may not import io/.
import { LatentkitError } from "../../base/errors.js";
import { checkOptions } from "../../base/options.js";
import { itemValues } from "../../tensor/parts.js";
import { Tensor, type TensorPngOptions } from "../../tensor/tensor.js";
import { decodePicture } from "../pictures/decode.js";
import { ENCODE_RULES, encodePng, imageTensor } from "../png/png.js";

/** Reads a picture's file as LoadImage does. */
const readPicture = async (bytes: Uint8Array): Promise<Tensor> => imageTensor(await decodePicture(bytes));

async function writePicture(pictures: Tensor, options: TensorPngOptions = {}): Promise<Buffer> {
  checkOptions("toPng", options, { ...ENCODE_RULES, index: ["a whole number", Number.isInteger] });
  const { index, ...encoding } = options;
  return encodePng(pictureOf(pictures, index), encoding);
}

/** Most channels of a picture: a longer last axis is a width. */
const MAX_CHANNELS = 4;

/** One picture, [H, W], [H, W, C] or the one of its batch. */
function pictureOf(pictures: Tensor, index: number | undefined): Tensor {
  const { shape } = pictures;
  const isMasks = shape.length === 3 && shape[2]! > MAX_CHANNELS;
  if (shape.length !== 4 && !isMasks) {
    checkIndex(index, 1);
    return pictures;
  }
  const [batch, ...sides] = shape as [number, ...number[]];
  if (index === undefined && batch > 1) {
    const message = `toPng: expected the index of one picture, 0 to ${batch - 1}, received none.`;
    throw new LatentkitError("value.out-of-range", message);
  }
  checkIndex(index, batch);
  if (batch <= 1) return isMasks ? pictures.reshape(sides) : pictures;
  return Tensor.from(itemValues(pictures, index!), sides);
}

function checkIndex(index = 0, batch: number): void {
  if (index >= 0 && index < Math.max(batch, 1)) return;
  const message = `toPng index: expected 0 to ${Math.max(batch - 1, 0)}, received ${index}.`;
  throw new LatentkitError("value.out-of-range", message);
}

Tensor.pictures = { encode: writePicture, decode: readPicture };
