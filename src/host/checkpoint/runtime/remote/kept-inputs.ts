import type { Tensor } from "../../../../tensor/tensor.js";

/** Bytes of one thread's values: the conditionings of some runs. */
const MOST_BYTES = 2 ** 26;

/** Tensors of one thread that its calls name by number, in order of last use. One that is gone is asked for again. */
export class KeptInputs {
  readonly #tensors = new Map<number, Tensor>();
  #bytes = 0;

  constructor(private readonly mostBytes = MOST_BYTES) {}

  /** The tensor of a number, which counts as a use. */
  use(number: number): Tensor | undefined {
    const tensor = this.#tensors.get(number);
    if (tensor === undefined) return undefined;
    this.#tensors.delete(number);
    this.#tensors.set(number, tensor);
    return tensor;
  }

  /** Adds a tensor and returns those that are gone for it: its former one, and the least recently used beyond the bound. */
  add(number: number, tensor: Tensor): Tensor[] {
    const gone: Tensor[] = [];
    const former = this.use(number);
    if (former !== undefined) {
      this.#bytes -= former.data.byteLength;
      gone.push(former);
    }
    this.#tensors.set(number, tensor);
    this.#bytes += tensor.data.byteLength;
    for (const [oldest, other] of this.#tensors) {
      if (this.#bytes <= this.mostBytes || other === tensor) break;
      this.#tensors.delete(oldest);
      this.#bytes -= other.data.byteLength;
      gone.push(other);
    }
    return gone;
  }

  /** Removes all and returns them. */
  clear(): Tensor[] {
    const all = [...this.#tensors.values()];
    this.#tensors.clear();
    this.#bytes = 0;
    return all;
  }
}
