import { loadNative } from "../../native/load.js";
import { Tensor } from "../tensor.js";

/** Sides of values seen as lines: [outer, count, inner] along the middle axis. */
type Lines = readonly [outer: number, count: number, inner: number];
/** Two neighbours of each value along an axis, `before` positions in front of it and `after` behind it. */
type Neighbours = readonly [lines: Lines, before: number, after: number];

/** Results of passes over values, each in one of two buffers in turn; the source is never written. */
class Passes {
  private values: Float32Array;
  private spare: Float32Array | undefined;

  constructor(
    private readonly source: Float32Array,
    private readonly isLeast: boolean,
  ) {
    this.values = source;
  }

  /** Takes the extreme of the neighbours of each value; it counts itself where it is its own neighbour. */
  pass(...all: readonly Neighbours[]): void {
    const out = this.spare ?? new Float32Array(this.values.length);
    for (const [index, [lines, before, after]] of all.entries()) {
      loadNative().extremesAlong(out, this.values, lines, before, after, this.isLeast, index > 0);
    }
    this.spare = this.values === this.source ? undefined : this.values;
    this.values = out;
  }

  /** The values, never the source itself. */
  result(shape: readonly number[]): Tensor {
    return Tensor.from(this.values === this.source ? this.source.slice() : this.values, shape);
  }
}

/** Widens the window from each value alone to `before` in front of it and `after` behind it; each pass doubles it. */
function widen(passes: Passes, lines: Lines, before: number, after: number): void {
  const [mostFront, mostBack] = [Math.min(before, lines[1]), Math.min(after, lines[1])];
  let [front, back] = [0, 0];
  while (front < mostFront || back < mostBack) {
    const room = front + back + 1;
    const further = Math.min(mostFront - front, Math.ceil(room / 2));
    const behind = Math.min(mostBack - back, room - further);
    passes.pass([lines, further, behind]);
    front += further;
    back += behind;
  }
}

/** Greatest, or least, value in a square of `side` pixels around each of pictures [B, H, W, C], cut off at the borders. */
export function extremeInSquare(x: Tensor, side: number, isGreatest: boolean): Tensor {
  const [batch, height, width, channels] = x.shape as readonly [number, number, number, number];
  const before = Math.floor(side / 2);
  const after = side - 1 - before;
  const passes = new Passes(x.data, !isGreatest);
  widen(passes, [batch, height, width * channels], before, after);
  widen(passes, [batch * height, width, channels], before, after);
  return passes.result(x.shape);
}

/** Greatest, or least, value within `reach` steps to a side neighbour around each of masks [B, H, W]. */
export function extremeInDiamond(x: Tensor, reach: number, isGreatest: boolean): Tensor {
  const [batch, height, width] = x.shape as readonly [number, number, number];
  const down: Lines = [batch, height, width];
  const across: Lines = [batch * height, width, 1];
  const most = Math.min(reach, height + width);
  const passes = new Passes(x.data, !isGreatest);
  // a value itself and its four neighbours; after that, four diamonds of radius r whose centres lie s <= r away from one
  // cover the diamond of radius r + s around it
  if (most > 0) passes.pass([down, 1, 1], [across, 1, 1], [across, 0, 0]);
  for (let radius = 1; radius < most; ) {
    const step = Math.min(radius, most - radius);
    passes.pass([down, step, step], [across, step, step]);
    radius += step;
  }
  return passes.result(x.shape);
}
