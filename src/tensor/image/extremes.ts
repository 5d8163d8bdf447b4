import { Tensor } from "../tensor.js";

/** Values in lines: [outer, count, inner] along the middle axis. */
interface Lines {
  readonly outer: number;
  readonly count: number;
  readonly inner: number;
}

/** The greater of the values `before` in front of and `after` behind each, positions clamped to the line. */
function greater(from: Float32Array, { outer, count, inner }: Lines, before: number, after: number): Float32Array {
  const into = new Float32Array(from.length);
  for (let line = 0; line < outer; line++) {
    const start = line * count;
    for (let i = 0; i < count; i++) {
      let first = (start + Math.max(i - before, 0)) * inner;
      let second = (start + Math.min(i + after, count - 1)) * inner;
      const end = (start + i + 1) * inner;
      for (let to = end - inner; to < end; to++) {
        const a = from[first++]!;
        const b = from[second++]!;
        into[to] = b > a ? b : a;
      }
    }
  }
  return into;
}

/** Greatest value from `before` in front of each to `after` behind it; each pass doubles the window. */
function greatestAlong(from: Float32Array, lines: Lines, before: number, after: number): Float32Array {
  let [values, front, back] = [from, 0, 0];
  const [mostFront, mostBack] = [Math.min(before, lines.count), Math.min(after, lines.count)];
  while (front < mostFront || back < mostBack) {
    const room = front + back + 1;
    const further = Math.min(mostFront - front, Math.ceil(room / 2));
    const behind = Math.min(mostBack - back, room - further);
    values = greater(values, lines, further, behind);
    front += further;
    back += behind;
  }
  return values;
}

const negated = (x: Float32Array): Float32Array => {
  const out = new Float32Array(x.length);
  for (let i = 0; i < x.length; i++) out[i] = -x[i]!;
  return out;
};

/** Greatest, or least, value in a square of `side` pixels around each of pictures [B, H, W, C], cut off at the borders. */
export function extremeInSquare(x: Tensor, side: number, isGreatest: boolean): Tensor {
  const [batch, height, width, channels] = x.shape as readonly [number, number, number, number];
  const before = Math.floor(side / 2);
  const after = side - 1 - before;
  let values = isGreatest ? x.data : negated(x.data);
  values = greatestAlong(values, { outer: batch, count: height, inner: width * channels }, before, after);
  values = greatestAlong(values, { outer: batch * height, count: width, inner: channels }, before, after);
  if (!isGreatest) values = negated(values);
  return Tensor.from(values === x.data ? values.slice() : values, x.shape);
}

/** The greatest of each value and the four that lie `step` away, positions clamped to the plane. */
function greatestOfCross(from: Float32Array, height: number, width: number, step: number): Float32Array {
  const into = new Float32Array(from.length);
  for (let at = 0, line = 0; at < from.length; line++) {
    const y = line % height;
    const [row, up, down] = [at, at - Math.min(step, y) * width, at + Math.min(step, height - 1 - y) * width];
    for (let x = 0; x < width; x++, at++) {
      let most = from[at]!;
      const left = from[row + Math.max(x - step, 0)]!;
      const right = from[row + Math.min(x + step, width - 1)]!;
      if (left > most) most = left;
      if (right > most) most = right;
      if (from[up + x]! > most) most = from[up + x]!;
      if (from[down + x]! > most) most = from[down + x]!;
      into[at] = most;
    }
  }
  return into;
}

/** Greatest, or least, value within `reach` steps to a side neighbour around each of masks [B, H, W]. */
export function extremeInDiamond(x: Tensor, reach: number, isGreatest: boolean): Tensor {
  const [, height, width] = x.shape as readonly [number, number, number];
  const most = Math.min(reach, height + width);
  let values = isGreatest ? x.data.slice() : negated(x.data);
  // four diamonds of radius r whose centres lie s <= r away from one cover the diamond of radius r + s around it
  for (let radius = 0; radius < most; ) {
    const step = Math.min(Math.max(radius, 1), most - radius);
    values = greatestOfCross(values, height, width, step);
    radius += step;
  }
  return Tensor.from(isGreatest ? values : negated(values), x.shape);
}
