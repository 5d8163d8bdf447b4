import { LatentkitError } from "../../../../base/errors.js";
import { CPU_DEVICE, type Device, hasFloat16, isGpu } from "../device.js";
import type { DeviceFacts, RuntimeOptions } from "../runtime.js";
import { plansOf } from "../session-options.js";
import { chooseDevice } from "./choice.js";

/** The device of a runtime, chosen by the first call that needs it. */
export class ChosenOnce {
  #known: Device | undefined;
  #choosing: { readonly abort: AbortController; readonly end: Promise<unknown> } | undefined;

  constructor(private readonly options: Pick<RuntimeOptions, "device" | "plan" | "onDevice">) {
    this.#known = options.device === "cpu" ? CPU_DEVICE : undefined;
  }

  /** Undefined before it is chosen. */
  get known(): Device | undefined {
    return this.#known;
  }

  /**
   * Returns the device; calls must not overlap. Rejects as `chooseDevice`, with usage.invalid for a plan that the device does
   * not have, and with run.interrupted if the choice is cut.
   */
  async get(): Promise<Device> {
    if (this.#known !== undefined) return this.#known;
    const abort = new AbortController();
    const choice = this.#choose(abort.signal);
    this.#choosing = { abort, end: choice.catch(() => {}) };
    try {
      this.#known = await choice;
      return this.#known;
    } finally {
      this.#choosing = undefined;
    }
  }

  /** Ends a choice that is under way, and resolves when its processes are gone. The next `get` begins anew. */
  async cut(): Promise<void> {
    const choosing = this.#choosing;
    choosing?.abort.abort(new LatentkitError("run.interrupted", "The trial of a GPU was cut: no run waits for it."));
    await choosing?.end;
  }

  async #choose(signal: AbortSignal): Promise<Device> {
    const { device, plan, onDevice } = this.options;
    const chosen = await chooseDevice(device, { signal });
    const plans = plansOf(chosen.provider).filter((each) => each !== "keep" || hasFloat16(chosen));
    if (plan !== undefined && !plans.includes(plan)) {
      const expected = plans.join(" or ");
      throw new LatentkitError(
        "usage.invalid",
        `plan: expected ${expected} on ${chosen.provider}, received "${plan}".`,
      );
    }
    const { reason } = chosen;
    if (isGpu(chosen) || reason !== undefined) onDevice?.({ ...factsOf(chosen), reason });
    return chosen;
  }
}

/** Facts of a device for receipts. */
export const factsOf = ({ provider, adapter, target }: Device): DeviceFacts =>
  provider === "cpu" ? { provider } : { provider, adapter, form: target.attention };
