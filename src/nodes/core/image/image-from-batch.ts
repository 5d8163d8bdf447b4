import { narrowed } from "../../../tensor/parts.js";
import { warnOfClips } from "../../bends.js";
import { defineNode } from "../../define.js";
import { image, int } from "../../inputs.js";

export const imageFromBatch = defineNode({
  key: "ImageFromBatch",
  displayName: "Image From Batch",
  category: "image/batch",
  description: "A range of images of a batch.",
  inputs: {
    image: image(),
    batch_index: int({ default: 0, min: 0, max: 4095 }),
    length: int({ default: 1, min: 1, max: 4096 }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, batch_index, length }, { log }) => {
    const batch = image.shape[0]!;
    const first = Math.max(Math.min(batch - 1, batch_index), 0);
    const count = Math.min(batch - first, length);
    warnOfClips("batch", { batch_index: [batch_index, first], length: [length, count] }, log);
    return { IMAGE: narrowed(image, 0, first, count) };
  },
});
