import { inputError } from "../../../base/errors.js";
import { joined, narrowed } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { image, int } from "../../inputs.js";

export const rebatchImages = defineNode({
  key: "RebatchImages",
  displayName: "Rebatch Images",
  category: "image/batch",
  description: "Regroups images into batches of one size; the last may be smaller.",
  inputs: { images: image(), batch_size: int({ default: 1, min: 1, max: 4096 }) },
  outputs: [{ name: "IMAGE", type: "IMAGE", list: true }],
  inputIsList: true,
  run: ({ images, batch_size }) => {
    const [size = 1] = batch_size as number[];
    const single = (images as Tensor[]).flatMap((batch) =>
      Array.from({ length: batch.shape[0]! }, (_, index) => narrowed(batch, 0, index, 1)),
    );
    const count = Math.ceil(single.length / size);
    return { IMAGE: Array.from({ length: count }, (_, at) => batchOf(single.slice(at * size, (at + 1) * size))) };
  },
});

function batchOf(images: readonly Tensor[]): Tensor {
  const [first] = images;
  const misfit = images.find(({ shape }) => !first!.hasShape(shape));
  if (misfit === undefined) return joined(images, 0);
  const expected = `images of shape [${first!.shape.join(", ")}] in one batch`;
  throw inputError("tensor.bad-shape", { input: "images" }, expected, misfit);
}
