import { inputError } from "../../../base/errors.js";
import { cannyEdges } from "../../../tensor/image/canny.js";
import { widened } from "../../../tensor/image/planes.js";
import { defineNode } from "../../define.js";
import { float, image } from "../../inputs.js";

// decision 215
const threshold = (value: number) => float({ default: value, min: 0.01, max: 0.99, step: 0.01 });

export const canny = defineNode({
  key: "Canny",
  category: "image/preprocessors",
  description: "Edges of an image, white on black: strong ones, and weak ones that are connected to them.",
  inputs: { image: image(), low_threshold: threshold(0.4), high_threshold: threshold(0.8) },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image, low_threshold, high_threshold }) => {
    if (low_threshold > high_threshold) {
      const expected = `at most high_threshold, ${high_threshold}`;
      throw inputError("value.out-of-range", { input: "low_threshold" }, expected, low_threshold);
    }
    return { IMAGE: widened(cannyEdges(image, low_threshold, high_threshold), 3) };
  },
});
