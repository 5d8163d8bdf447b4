import { joined, narrowed } from "../../../tensor/parts.js";
import { resizeImage } from "../../../tensor/resize.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { boolean, choice, image, int } from "../../inputs.js";

const COLORS = { white: [1, 1, 1], black: [0, 0, 0], red: [1, 0, 0], green: [0, 1, 0], blue: [0, 0, 1] } as const;

const evenWidth = (pixels: number): number => pixels + (pixels % 2);

export const imageStitch = defineNode({
  key: "ImageStitch",
  displayName: "Image Stitch",
  category: "image/transform",
  description:
    "Puts two images side by side or one above the other; the second is resized to match the first, or the smaller one gets black margins.",
  inputs: {
    image1: image(),
    direction: choice(["right", "down", "left", "up"], { default: "right" }),
    match_image_size: boolean({ default: true }),
    spacing_width: { ...int({ default: 0, min: 0, max: 1024, step: 2 }), used: evenWidth },
    spacing_color: choice(["white", "black", "red", "green", "blue"], { default: "white" }),
    image2: image({ optional: true }),
  },
  outputs: { IMAGE: "IMAGE" },
  run: ({ image1, image2, direction, match_image_size, spacing_width, spacing_color }) => {
    if (image2 === undefined) return { IMAGE: image1 };
    const along = direction === "left" || direction === "right" ? 2 : 1;
    const pair = [image1, match_image_size ? matched(image2, image1, along) : image2];
    const [batch, across, channels] = [0, 3 - along, 3].map((axis) => Math.max(...pair.map((x) => x.shape[axis]!)));
    const parts = pair.map((x) => opaque(centred(repeated(x, batch!), 3 - along, across!), channels!));
    if (direction === "left" || direction === "up") parts.reverse();
    const width = evenWidth(spacing_width);
    const gap = parts[0]!.shape.with(along, width);
    if (width > 0) parts.splice(1, 0, filled(gap, [...COLORS[spacing_color], 1].slice(0, channels)));
    return { IMAGE: joined(parts, along) };
  },
});

/** An image as high (along the columns) or as wide (along the rows) as another one, in its own proportions. */
function matched(x: Tensor, other: Tensor, along: 1 | 2): Tensor {
  const [rows, columns] = [x.shape[1]!, x.shape[2]!];
  const [height, width] = [other.shape[1]!, other.shape[2]!];
  const sides =
    along === 2
      ? { height, width: Math.floor(height * (columns / rows)) }
      : { height: Math.floor(width / (columns / rows)), width };
  return resizeImage(x, { method: "lanczos", ...sides });
}

/** A batch of this length, filled by its last image. */
function repeated(x: Tensor, batch: number): Tensor {
  const last = narrowed(x, 0, x.shape[0]! - 1, 1);
  return joined([x, ...Array<Tensor>(batch - x.shape[0]!).fill(last)], 0);
}

/** An image of this length along an axis, between margins of zeros. */
function centred(x: Tensor, axis: number, length: number): Tensor {
  const missing = length - x.shape[axis]!;
  const margins = [Math.floor(missing / 2), Math.ceil(missing / 2)];
  const [before, after] = margins.map((side) => (side === 0 ? [] : [Tensor.zeros(x.shape.with(axis, side))]));
  return joined([...before!, x, ...after!], axis);
}

/** An image of this number of channels, ones in those that it lacks. */
const opaque = (x: Tensor, channels: number): Tensor =>
  x.shape[3] === channels ? x : joined([x, Tensor.full(x.shape.with(3, channels - x.shape[3]!), 1)], 3);

/** Pixels of one colour. */
function filled(shape: readonly number[], color: readonly number[]): Tensor {
  const planes = color.map((value) => Tensor.full(shape.with(3, 1), value));
  return joined(planes, 3);
}
