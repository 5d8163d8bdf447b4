import { LatentkitError } from "../../../base/errors.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Stage } from "../session/runtime.js";
import { type LoadedSession, LoadedSessions } from "../session/sessions.js";
import type { Turn } from "./call-queue.js";
import { RuntimeProcess } from "./process.js";
import { bytesOf, PART_BYTES, type SentFeed, type StageRequest } from "./protocol.js";

/** A child process with its loaded sessions and values. */
export class LoadedProcess {
  readonly process = new RuntimeProcess();
  readonly sessions = new LoadedSessions();
  readonly kept = new KeptValues();

  /** Sends the inputs of a call that the child does not have, and runs its sessions; outputs are those of the last. */
  async call(
    sessions: readonly LoadedSession[],
    stages: readonly Stage[],
    outputs: readonly string[] | undefined,
    turn: Turn,
  ): Promise<Record<string, Tensor>> {
    const { process, kept } = this;
    const task = `${sessions.at(-1)!.label}, while it ran`;
    const sent: StageRequest[] = [];
    const temporary: number[] = [];
    for (const [index, { feeds, keep = [] }] of stages.entries()) {
      const own: Record<string, SentFeed> = {};
      for (const [name, feed] of Object.entries(feeds)) {
        const { shape } = feed;
        if (!(feed instanceof Tensor)) {
          own[name] = { int64: feed.int64, shape };
          continue;
        }
        const isKept = keep.includes(name);
        const known = isKept ? kept.use(feed) : undefined;
        const bytes = bytesOf(feed.data);
        if (!isKept && bytes.length <= PART_BYTES) {
          own[name] = { values: bytes, shape, keep: false };
          continue;
        }
        const values = known ?? (await process.sendBytes(bytes, task));
        own[name] = { values, shape, keep: isKept };
        if (isKept && known === undefined && !turn.isAbandoned) kept.add(feed, values);
        else if (known === undefined) temporary.push(values);
        if (turn.isAbandoned) break;
      }
      sent.push({ session: sessions[index]!.number, feeds: own });
    }
    if (turn.isAbandoned) {
      // the caller may have changed them while they were sent
      await process.request({ type: "forget", values: temporary }, task);
      throw new LatentkitError("run.interrupted", "The run was interrupted.");
    }
    const results = await process.run({ stages: sent.slice(0, -1), ...sent.at(-1)!, outputs }, task);
    const surplus = kept.takeSurplus();
    if (surplus.length > 0) await process.request({ type: "forget", values: surplus }, task);
    return Object.fromEntries(results.map(({ name, shape, values }) => [name, Tensor.from(values, shape)]));
  }
}

/** Bytes of values that a child process keeps for later runs: the conditionings of many samplings. */
const MOST_BYTES = 2 ** 28;

/**
 * Tensors whose values a child process has, in order of last use. A tensor is known by identity: it must not change.
 *
 * @internal
 */
export class KeptValues {
  readonly #ids = new WeakMap<Tensor, number>();
  readonly #bytes = new Map<number, number>();
  /** Values that were dropped, which the child still has. */
  readonly #dropped: number[] = [];
  #sum = 0;
  readonly #mostBytes: number;

  constructor(mostBytes = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /** Number of a tensor's values, which counts as a use; undefined if the child does not have them. */
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

  /** Removes a tensor's values, which will not be used again. */
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
      if (this.#sum <= this.#mostBytes) break;
      surplus.push(id);
      this.#bytes.delete(id);
      this.#sum -= bytes;
    }
    return surplus;
  }
}
