import { LatentkitError } from "../../../base/errors.js";
import { type Device, hasFloat16, isGpu } from "../session/options.js";
import { plannedOn, preferredPlan, type SessionSource, sessionBytes } from "../session/sessions.js";
import type { Turn } from "./call-queue.js";
import type { LoadedProcess } from "./loaded-process.js";

/** How drivers say that a GPU is gone. */
const LOST = /device[ _](was |is )?(lost|removed|hung|reset)/i;

/** The runtime whose calls may fail. */
export interface FailingRuntime {
  /** The device, undefined before it is chosen, and the process in which networks run. */
  current(): { readonly device: Device | undefined; readonly loaded: LoadedProcess | undefined };
  /** Ends a process; the next call starts another one. */
  replace(loaded: LoadedProcess): Promise<void>;
}

// decisions: A GPU failure replaces its process
/**
 * Recovers from failures of a GPU. A GPU that has failed cannot be trusted, so its process is replaced. A failure that more
 * memory may cure is retried once, with nothing else loaded.
 */
export class GpuFailures {
  /** Smallest number of bytes of sessions that has failed. */
  #tooMany = Number.POSITIVE_INFINITY;
  readonly #runtime: FailingRuntime;

  constructor(runtime: FailingRuntime) {
    this.#runtime = runtime;
  }

  /** Most bytes of sessions that are not known to fail. */
  get mostBytes(): number {
    return this.#tooMany - 1;
  }

  /**
   * Does the work of a call of the source. Rejects as the work does, after a second failure with a sentence that says what
   * may help, and with device.lost if the GPU or its driver is gone.
   */
  async mend<T>(source: SessionSource, turn: Turn, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const failed = await this.#failure(error);
      if (failed === undefined || turn.isAbandoned) throw error;
      return await this.#again(source, failed, work);
    }
  }

  async #again<T>(source: SessionSource, { device, loaded }: Failure, work: () => Promise<T>): Promise<T> {
    const { sessions } = loaded;
    const own = bytesOn(device, source);
    const isCounted = sessions.all.some(({ key }) => key === source.key);
    try {
      const result = await work();
      this.#tooMany = Math.min(this.#tooMany, sessions.bytes + (isCounted ? 0 : own));
      return result;
    } catch (error) {
      if ((await this.#failure(error)) === undefined) throw error;
      throw new LatentkitError(
        "runtime.failed",
        `${(error as Error).message} The retry failed too, with nothing else on the GPU; the weights take ${(own / 2 ** 30).toFixed(1)} GiB there. Try a smaller picture, a smaller batch or the device "cpu".`,
      );
    }
  }

  /** Ends the process of a GPU that has failed; undefined for any other error. Rejects with device.lost. */
  async #failure(error: unknown): Promise<Failure | undefined> {
    const { device, loaded } = this.#runtime.current();
    const isFailure = error instanceof LatentkitError && error.code === "runtime.failed";
    if (!isFailure || loaded === undefined || device === undefined || !isGpu(device)) return undefined;
    const { isAlive, hasCrashed } = loaded.process;
    if (!isAlive && !hasCrashed) return undefined;
    await this.#runtime.replace(loaded);
    if (isAlive && !LOST.test(error.message)) return { device, loaded };
    throw new LatentkitError("device.lost", `The GPU was lost (${device.provider}). ${error.message}`);
  }
}

/** A device and the process that failed on it. */
interface Failure {
  readonly device: Device;
  readonly loaded: LoadedProcess;
}

/** Bytes of a network's weights on a GPU. */
const bytesOn = (device: Device, source: SessionSource): number =>
  sessionBytes(
    plannedOn(device, source),
    preferredPlan(source, { calls: 1, cells: 0, device: { isGpu: true, hasFloat16: hasFloat16(device) } }),
  );
