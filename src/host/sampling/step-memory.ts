import { releaseMemory } from "../../tensor/deferred-values.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Estimate } from "./solver.js";

/** Tensors of a run that are followed at most: more than one step needs. */
const MOST_USED = 32;

/**
 * Tensors that a run makes for its solver, whose memory later ones use again; none on a device, whose memory has a pool of
 * its own. The estimate that was reported last stays as it is.
 */
export class StepMemory {
  readonly #used: Tensor[] = [];
  /** Those that the solver reads no more. */
  readonly #spare: Tensor[] = [];
  #reported: Tensor | Estimate | undefined;

  /** Returns a tensor of this many values that is no longer read, to be written over; undefined if there is none. */
  take(size: number): Tensor | undefined {
    const spare = this.#spare;
    for (let i = spare.length - 1; i >= 0; i--) {
      const tensor = spare[i]!;
      if (tensor.size !== size || this.#isReported(tensor.memory)) continue;
      spare[i] = spare.at(-1)!;
      spare.pop();
      return tensor;
    }
    return undefined;
  }

  /** Follows a tensor, and returns it. */
  follow(tensor: Tensor): Tensor {
    if (tensor.isAway) return tensor;
    // of a solver that never calls keepOnly
    if (this.#used.length === MOST_USED) this.#used.shift();
    this.#used.push(tensor);
    return tensor;
  }

  /** Follows a tensor no more; returns whether it did. */
  forget(tensor: Tensor): boolean {
    const { memory } = tensor;
    const at = this.#used.findIndex((one) => one.memory === memory);
    if (at >= 0) this.#used.splice(at, 1);
    return at >= 0;
  }

  keepOnly(kept: readonly Tensor[]): void {
    const used = this.#used;
    const spare = this.#spare;
    const memories = kept.map((tensor) => tensor.memory);
    let count = 0;
    for (const tensor of used) {
      if (memories.includes(tensor.memory)) used[count++] = tensor;
      else spare.push(tensor);
    }
    used.length = count;
  }

  /** Keeps the memory of an estimate, or from which it is computed, until the next one is reported. */
  report(denoised: Tensor | Estimate): void {
    this.#reported = denoised;
  }

  /** Returns everything to the pool, but the reported estimate if it is kept. */
  release(keepsEstimate: boolean): void {
    if (!keepsEstimate) this.#reported = undefined;
    for (const { memory } of [...this.#used, ...this.#spare]) if (!this.#isReported(memory)) releaseMemory(memory);
    this.#used.length = 0;
    this.#spare.length = 0;
  }

  /** Whether memory is that of a tensor in use, and not of the reported estimate. */
  mayChange(memory: Tensor["memory"]): boolean {
    for (const tensor of this.#used) if (tensor.memory === memory) return !this.#isReported(memory);
    return false;
  }

  #isReported(memory: Tensor["memory"]): boolean {
    if (this.#reported === undefined) return false;
    if (this.#reported instanceof Tensor) return this.#reported.memory === memory;
    for (const [, x] of this.#reported.terms) if (x.memory === memory) return true;
    return false;
  }
}
