import { LatentkitError } from "../../base/errors.js";
import { square } from "../../native/elementary.js";
import type { ModelSampling } from "./model-sampling.js";
import { isFlow } from "./noise-level.js";

/** A step that goes below the next noise level, to `down`, and back up to it by new noise. */
interface Down {
  readonly down: number;
  readonly up: number;
}

/** Such a step that returns to the next level by scale * x + up * noise. */
interface Ancestral extends Down {
  readonly scale: number;
}

/**
 * The ancestral step of clean + sigma * noise, as k-diffusion defines it: eta 0 adds no noise, 1 as much as the
 * reverse process has.
 */
export function ancestral(sigma: number, next: number, eta: number): Down {
  if (!eta) return { down: next, up: 0 };
  const up = upOf(sigma, next, eta);
  return up < next ? { down: Math.sqrt((next - up) * (next + up)), up } : { down: 0, up: next };
}

/**
 * `ancestral` with `up` in float32, as the reference has it: where next is small beside sigma, few digits of `down` are
 * left by that, which the noise level of a model call shows, or none, and then there is no noise.
 */
export function ancestral32(sigma: number, next: number, eta: number): Down {
  if (!eta) return { down: next, up: 0 };
  const f = Math.fround;
  const up = f(upOf(sigma, next, eta));
  return up < next ? { down: Math.sqrt(f(f(next * next) - f(up * up))), up } : { down: 0, up: next };
}

/** Noise back up to the next level, in part: all of it where sigma is infinite, as a flow's of 1 beside its signal is. */
function upOf(sigma: number, next: number, eta: number): number {
  // whatever eta, and where sigmas rise too: so it is in the reference
  if (!(sigma < Number.POSITIVE_INFINITY && sigma >= next)) return next;
  return eta * next * Math.sqrt(1 - square(next / sigma));
}

/** The ancestral step of a model: of a flow, eta of the way on to the ratio of both levels, as rectified flow has it. */
export function ancestralOf(sampling: ModelSampling, sigma: number, next: number, eta: number): Ancestral {
  if (!isFlow(sampling)) return { ...ancestral32(sigma, next, eta), scale: 1 };
  const down = next * (1 + (next / sigma - 1) * eta);
  const scale = (1 - next) / (1 - down);
  // next^2 - (down * scale)^2, in factors that do not cancel
  const variance = ((next - down) / (1 - down)) * (next + down * scale);
  if (variance >= 0) return { down, up: Math.sqrt(variance), scale };
  throw new LatentkitError(
    "value.out-of-range",
    `Ancestral step: expected falling sigmas and an eta that fits them, received ${sigma}, ${next} and eta ${eta}.`,
  );
}
