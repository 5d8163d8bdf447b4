import { atan, pow } from "../../../../native/elementary.js";
/** Options of a step's size. */
export interface StepSizeOptions {
  /** Size of the first step. */
  readonly h_init: number;
  /** Proportional, integral and derivative coefficients. */
  readonly pcoeff: number;
  readonly icoeff: number;
  readonly dcoeff: number;
  /** Least factor of the size, proposed for the next step, at which a step is accepted. */
  readonly accept_safety: number;
}

/** Controller of a step's size by the errors of the last three steps (Söderlind, 2003), as k-diffusion has it. */
export class StepSize {
  size: number;
  private readonly exponents: readonly [number, number, number];
  private readonly acceptFrom: number;
  /** 1 / error of this step and of the two accepted before it. */
  private inverses: [number, number, number] | undefined;

  constructor({ h_init, pcoeff, icoeff, dcoeff, accept_safety }: StepSizeOptions, order: number, forward: boolean) {
    this.size = forward ? Math.abs(h_init) : -Math.abs(h_init);
    this.exponents = [(pcoeff + icoeff + dcoeff) / order, -(pcoeff + 2 * dcoeff) / order, dcoeff / order];
    this.acceptFrom = accept_safety;
  }

  /** Whether a step of this error is accepted; sets the size of the next one, or of its repetition. */
  accepts(error: number): boolean {
    const inverse = 1 / (1e-8 + error);
    const [, last, lastButOne] = this.inverses ?? [inverse, inverse, inverse];
    const [a, b, c] = this.exponents;
    const factor = 1 + atan(pow(inverse, a) * pow(last, b) * pow(lastButOne, c) - 1);
    const isAccepted = factor >= this.acceptFrom;
    this.inverses = isAccepted ? [inverse, inverse, last] : [inverse, last, lastButOne];
    this.size *= factor;
    return isAccepted;
  }
}
