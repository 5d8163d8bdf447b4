import { fourSides } from "../shape.js";
import { Tensor } from "../tensor.js";

/** Where the first pixel of a result lies in its source, and how far the next ones down and across lie from it. */
interface Walk {
  readonly origin: number;
  readonly down: number;
  readonly across: number;
}

function walked(image: Tensor, height: number, width: number, { origin, down, across }: Walk): Tensor {
  const [batch, inHeight, inWidth, channels] = fourSides("walked", image, "[B, H, W, C]");
  const out = Tensor.unfilled([batch, height, width, channels]);
  const [from, into] = [image.data, out.data];
  let to = 0;
  for (let line = 0; line < batch * height; line++) {
    const first = Math.floor(line / height) * inHeight * inWidth + origin + (line % height) * down;
    for (let x = 0; x < width; x++) {
      const start = (first + x * across) * channels;
      for (let k = 0; k < channels; k++) into[to++] = from[start + k]!;
    }
  }
  return out;
}

/** Pictures [B, H, W, C] upside down. */
export function upsideDown(image: Tensor): Tensor {
  const [, height, width] = fourSides("upsideDown", image, "[B, H, W, C]");
  return walked(image, height, width, { origin: (height - 1) * width, down: -width, across: 1 });
}

/** Pictures [B, H, W, C] with left and right exchanged. */
export function mirrored(image: Tensor): Tensor {
  const [, height, width] = fourSides("mirrored", image, "[B, H, W, C]");
  return walked(image, height, width, { origin: width - 1, down: width, across: -1 });
}

/** Pictures [B, H, W, C] turned clockwise by quarters of a turn, 0 to 3. */
export function turned(image: Tensor, quarters: number): Tensor {
  const [, height, width] = fourSides("turned", image, "[B, H, W, C]");
  if (quarters === 1) return walked(image, width, height, { origin: (height - 1) * width, down: 1, across: -width });
  if (quarters === 2) return walked(image, height, width, { origin: height * width - 1, down: -width, across: -1 });
  if (quarters === 3) return walked(image, width, height, { origin: width - 1, down: -1, across: width });
  return image;
}
