import { extremeInSquare } from "../../../tensor/image/extremes.js";
import { axpy } from "../../../tensor/ops.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { choice, image, int } from "../../inputs.js";

const OPERATIONS = ["erode", "dilate", "open", "close", "gradient", "bottom_hat", "top_hat"] as const;

function changed(image: Tensor, operation: (typeof OPERATIONS)[number], side: number): Tensor {
  const dilated = (x: Tensor): Tensor => extremeInSquare(x, side, true);
  const eroded = (x: Tensor): Tensor => extremeInSquare(x, side, false);
  const less = (x: Tensor, y: Tensor): Tensor => axpy(x, y, -1);
  if (operation === "erode") return eroded(image);
  if (operation === "dilate") return dilated(image);
  if (operation === "open") return dilated(eroded(image));
  if (operation === "close") return eroded(dilated(image));
  if (operation === "gradient") return less(dilated(image), eroded(image));
  if (operation === "bottom_hat") return less(eroded(dilated(image)), image);
  return less(image, dilated(eroded(image)));
}

export const morphology = defineNode({
  key: "Morphology",
  displayName: "ImageMorphology",
  category: "image/postprocessing",
  description: "Erodes or dilates an image, or combines both, with a square kernel.",
  inputs: {
    image: image(),
    operation: choice(OPERATIONS),
    kernel_size: int({ default: 3, min: 3, max: 999 }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, operation, kernel_size }) => ({ IMAGE: changed(image, operation, kernel_size) }),
});
