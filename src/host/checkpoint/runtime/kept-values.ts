import type { Tensor } from "../../../tensor/tensor.js";

/** Bytes of values that a child process keeps for later runs: the conditionings of many samplings. */
const MOST_BYTES = 2 ** 28;

/** Tensors whose values a child process has, in order of last use. A tensor is known by identity: it must not change. */
export class KeptValues {
  readonly #ids = new WeakMap<Tensor, number>();
  readonly #bytes = new Map<number, number>();
  /** Values that were dropped, which the child still has. */
  readonly #dropped: number[] = [];
  #sum = 0;

  constructor(private readonly mostBytes = MOST_BYTES) {}

  /** Number of a tensor's values, which counts as a use; undefined where the child does not have them. */
  use(tensor: Tensor): number | undefined {
    const id = this.#ids.get(tensor);
    const bytes = id === undefined ? undefined : this.#bytes.get(id);
    if (id === undefined || bytes === undefined) return undefined;
    this.#bytes.delete(id);
    this.#bytes.set(id, bytes);
    return id;
  }

  add(tensor: Tensor, id: number): void {
    this.#ids.set(tensor, id);
    this.#bytes.set(id, tensor.data.byteLength);
    this.#sum += tensor.data.byteLength;
  }

  /** Removes a tensor's values, which nobody will use again. */
  drop(tensor: Tensor): void {
    const id = this.#ids.get(tensor);
    const bytes = id === undefined ? undefined : this.#bytes.get(id);
    if (id === undefined || bytes === undefined) return;
    this.#bytes.delete(id);
    this.#sum -= bytes;
    this.#dropped.push(id);
  }

  /** Removes the least recently used values beyond the bound and returns their numbers, with those that were dropped. */
  takeSurplus(): number[] {
    const surplus = this.#dropped.splice(0);
    for (const [id, bytes] of this.#bytes) {
      if (this.#sum <= this.mostBytes) break;
      surplus.push(id);
      this.#bytes.delete(id);
      this.#sum -= bytes;
    }
    return surplus;
  }
}
