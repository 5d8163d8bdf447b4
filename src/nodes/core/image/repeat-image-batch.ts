import { repeated } from "../../../tensor/parts.js";
import { defineNode } from "../../define.js";
import { image, int } from "../../inputs.js";

export const repeatImageBatch = defineNode({
  key: "RepeatImageBatch",
  category: "image/batch",
  description: "Repeats a batch of images.",
  inputs: { image: image(), amount: int({ default: 1, min: 1, max: 4096 }) },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, amount }) => ({ IMAGE: repeated(image, amount) }),
});
