import { resizeImage } from "../../../tensor/resize.js";
import { fourSides } from "../../../tensor/shape.js";
import { defineNode } from "../../define.js";
import { image } from "../../inputs.js";

/** Widths and heights that Flux.1 Kontext was trained with; each stands for its turned twin too. */
const SIZES = [
  ...[
    [672, 1568],
    [688, 1504],
    [720, 1456],
    [752, 1392],
    [800, 1328],
  ],
  ...[
    [832, 1248],
    [880, 1184],
    [944, 1104],
    [1024, 1024],
  ],
] as [number, number][];
const TURNED = SIZES.map(([width, height]) => [height, width] as [number, number]);

export const fluxKontextImageScale = defineNode({
  key: "FluxKontextImageScale",
  category: "advanced/conditioning/flux",
  description: "Resizes an image to the size of Flux.1 Kontext's training that is nearest to its proportions.",
  inputs: { image: image() },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image }) => {
    const [, rows, columns] = fourSides("FluxKontextImageScale", image, "[B, H, W, C]");
    const distance = ([width, height]: readonly [number, number]): number => Math.abs(columns / rows - width / height);
    const [width, height] = [...SIZES, ...TURNED].reduce((best, size) =>
      distance(size) < distance(best) ? size : best,
    );
    return { IMAGE: resizeImage(image, { method: "lanczos", width, height, crop: "center" }) };
  },
});
