import { exp, expm1 } from "../../../../native/elementary.js";
import type { Term } from "../../../../tensor/ops.js";
import type { Tensor } from "../../../../tensor/tensor.js";
import type { SolverContext } from "../../solver.js";

/** Noise of unit variance along a way: what it was fades by exp(-distance), and new noise takes the rest. */
export class FadingNoise {
  private readonly draws: { coefficient: number; readonly noise: Tensor }[] = [];
  private distance = 0;

  constructor(
    private readonly context: SolverContext,
    private sigma: number,
  ) {}

  /** The noise at a noise level and its distance from the beginning of the way, times `scale`, as terms. */
  advanced(sigma: number, distance: number, scale: number): Term[] {
    const passed = distance - this.distance;
    for (const draw of this.draws) draw.coefficient *= exp(-passed);
    // of a way of no length too: later draws follow in the stream
    const noise = this.context.noise(this.sigma, sigma);
    this.draws.push({ coefficient: Math.sqrt(-expm1(-2 * passed)), noise });
    this.sigma = sigma;
    this.distance = distance;
    return this.draws.filter((draw) => draw.coefficient > 0).map((draw) => [draw.coefficient * scale, draw.noise]);
  }
}
