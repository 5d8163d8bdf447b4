// Gives Tensor its files, which it cannot import from the layer below.
import { LatentkitError } from "../../base/errors.js";
import { checkOptions } from "../../base/options.js";
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

/** Most channels of a picture: a last axis above is a width. */
const MAX_CHANNELS = 4;

/** One picture [H, W] or [H, W, C], or a batch of it alone. */
function pictureOf(pictures: Tensor, index: number | undefined): Tensor {
  const { shape } = pictures;
  const isMasks = shape.length === 3 && shape[2]! > MAX_CHANNELS;
  if (shape.length !== 4 && !isMasks) return single(pictures, index);
  const [batch, ...sides] = shape as [number, ...number[]];
  if (index === undefined && batch > 1) {
    const message = `toPng: expected the index of one picture, 0 to ${batch - 1}, received none.`;
    throw new LatentkitError("value.out-of-range", message);
  }
  checkIndex(index, batch);
  if (batch <= 1) return isMasks ? pictures.reshape(sides) : pictures;
  const size = pictures.size / batch;
  const start = index! * size;
  return Tensor.from(pictures.data.subarray(start, start + size), sides);
}

function single(picture: Tensor, index: number | undefined): Tensor {
  checkIndex(index, 1);
  return picture;
}

function checkIndex(index = 0, batch: number): void {
  if (index >= 0 && index < Math.max(batch, 1)) return;
  const message = `toPng index: expected 0 to ${Math.max(batch - 1, 0)}, received ${index}.`;
  throw new LatentkitError("value.out-of-range", message);
}

Tensor.pictures = { encode: writePicture, decode: readPicture };
