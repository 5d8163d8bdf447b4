import type { RunFile } from "../../run.js";
import type { EventBatch } from "../../store/store.js";
import type { RunContext } from "../run-context.js";

/** Files of a run that are stored at the same time. */
const FILES_AT_ONCE = 4;

/** The files of one attempt of a run, on their way to the file store. */
export class RunFiles {
  readonly #id: string;
  readonly #context: RunContext;
  readonly #signal: AbortSignal;
  readonly #onLoss: (error: unknown) => void;
  #loss: { readonly error: unknown } | undefined;
  #hasLeftOut = false;

  /** `onLoss`: called with the failure of each file that cannot be stored. */
  constructor(id: string, context: RunContext, signal: AbortSignal, onLoss: (error: unknown) => void) {
    this.#id = id;
    this.#context = context;
    this.#signal = signal;
    this.#onLoss = onLoss;
  }

  /** The first failure to store a file: the attempt cannot succeed any more. */
  get loss(): { readonly error: unknown } | undefined {
    return this.#loss;
  }

  /** Whether a file was left out since the run was cut off. */
  get hasLeftOut(): boolean {
    return this.#hasLeftOut;
  }

  /** Stores the files of a batch, before readers learn of them. Returns the batch with those that are stored. */
  async store(batch: EventBatch): Promise<EventBatch> {
    const files: RunFile[] = [];
    for (let at = 0; at < batch.files.length; at += FILES_AT_ONCE) {
      const some = batch.files.slice(at, at + FILES_AT_ONCE);
      files.push(...(await Promise.all(some.map((file) => this.#put(file)))).flat());
    }
    return { ...batch, files };
  }

  /** Leaves the files on this machine where one of them is nowhere else. */
  async tidy(): Promise<void> {
    if (this.#loss !== undefined) return;
    const { files, observer } = this.#context;
    await files.tidy?.(this.#id).catch((error: unknown) => observer.fault?.("files", error));
  }

  async #put(file: RunFile): Promise<RunFile[]> {
    const { files, clock, observer } = this.#context;
    const since = clock.monotonic();
    const report = (isStored: boolean) => observer.fileStored?.({ isStored, ms: clock.monotonic() - since });
    try {
      const stored = await files.put(this.#id, file, this.#signal);
      if (stored !== file) report(true);
      return [stored];
    } catch (error) {
      if (this.#signal.aborted) {
        this.#hasLeftOut = true;
        return [];
      }
      report(false);
      observer.fault?.("files", error);
      this.#loss ??= { error };
      this.#onLoss(error);
      return [];
    }
  }
}
