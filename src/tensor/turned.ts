import { elementCount, Tensor } from "./tensor.js";

/** First cell of a result in its source, and the distances to its neighbours below and to the right. */
interface Walk {
  readonly origin: number;
  readonly down: number;
  readonly across: number;
}

/** Rows and columns of an axis, which may count from the end, and the one after it, exchanged left to right. */
export function mirrored(x: Tensor, axis: number): Tensor {
  const [height, width] = sidesOf(x, axis);
  return walked(x, axis, [height, width], { origin: width - 1, down: width, across: -1 });
}

/** Rows and columns of an axis and the one after it, upside down. */
export function upsideDown(x: Tensor, axis: number): Tensor {
  const [height, width] = sidesOf(x, axis);
  return walked(x, axis, [height, width], { origin: (height - 1) * width, down: -width, across: 1 });
}

/** Rows and columns of an axis and the one after it, turned clockwise by quarters of a turn, 0 to 3; x itself for 0. */
export function turned(x: Tensor, axis: number, quarters: number): Tensor {
  const [height, width] = sidesOf(x, axis);
  const last = height * width - 1;
  if (quarters === 1)
    return walked(x, axis, [width, height], { origin: (height - 1) * width, down: 1, across: -width });
  if (quarters === 2) return walked(x, axis, [height, width], { origin: last, down: -width, across: -1 });
  if (quarters === 3) return walked(x, axis, [width, height], { origin: width - 1, down: -1, across: width });
  return x;
}

const sidesOf = ({ shape }: Tensor, axis: number): [number, number] => [shape.at(axis) ?? 0, shape.at(axis + 1) ?? 0];

function walked(x: Tensor, axis: number, [height, width]: [number, number], { origin, down, across }: Walk): Tensor {
  const at = axis < 0 ? axis + x.shape.length : axis;
  const [planes, cell] = [elementCount(x.shape.slice(0, at)), elementCount(x.shape.slice(at + 2))];
  const out = Tensor.unfilled(x.shape.with(at, height).with(at + 1, width));
  const [from, into] = [x.data, out.data];
  let to = 0;
  for (let line = 0; line < planes * height; line++) {
    const first = Math.floor(line / height) * height * width + origin + (line % height) * down;
    for (let column = 0; column < width; column++) {
      const start = (first + column * across) * cell;
      for (let k = 0; k < cell; k++) into[to++] = from[start + k]!;
    }
  }
  return out;
}
