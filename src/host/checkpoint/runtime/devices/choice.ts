import { release } from "node:os";
import { join } from "node:path";
import { onAbort } from "../../../../base/abort.js";
import { LatentkitError } from "../../../../base/errors.js";
import { isObject } from "../../../../base/options.js";
import { packageVersion } from "../../../../base/package.js";
import { cacheFolder, StoredTexts } from "../../../../base/user-cache.js";
import type { GraphicsAdapter } from "../../../../native/bindings.js";
import {
  CPU_DEVICE,
  type Device,
  hasFloat16,
  isGpu,
  type NetworkDevice,
  PROVIDERS,
  type Provider,
  plansOf,
} from "../../session/options.js";
import type { DeviceFacts, RuntimeOptions } from "../../session/runtime.js";
import { RuntimeProcess } from "../process.js";
import { judge, type TrialOptions, type Verdict } from "./trial.js";

/** A provider with its verdict. */
export type JudgedProvider = Verdict & {
  readonly provider: Provider;
  /** Name and driver of the GPU, if the system reports them. */
  readonly adapter?: string;
};

export interface ChoiceOptions extends TrialOptions {
  readonly stored?: StoredVerdicts;
}

/** A device; `reason` says in a sentence why "auto" did not choose a GPU. */
export interface ChosenDevice extends Device {
  readonly reason?: string;
}

/** Time for a process with ONNX Runtime to start. */
const START_MS = 60_000;
const NVIDIA = 0x10de;

/** The facts of this machine on which verdicts depend. */
interface Machine {
  /** Version of onnxruntime-node. */
  readonly version: string;
  readonly backends: readonly string[];
  readonly adapters: readonly GraphicsAdapter[];
}

// decisions: A GPU is used unasked only after a trial
/**
 * Chooses where networks run. "auto" is the first provider that computes correctly and is faster than the CPU; undefined is
 * the first of those that an earlier process has tried, else the CPU: a trial takes seconds, so it runs only on request.
 * Rejects with device.unavailable for a named provider that cannot be used, runtime.missing, runtime.failed and the
 * signal's reason: by then all processes have ended, and the verdict of an interrupted trial is not stored.
 */
export async function chooseDevice(
  device: NetworkDevice | undefined,
  options: ChoiceOptions = {},
): Promise<ChosenDevice> {
  if (device === "cpu") return CPU_DEVICE;
  const { stored = new StoredVerdicts(), signal } = options;
  if (device === undefined && (await stored.isEmpty())) return CPU_DEVICE;
  const machine = await readMachine(signal);
  const isGiven = device !== undefined && device !== "auto";
  const reasons: string[] = [];
  for (const provider of isGiven ? [device] : PROVIDERS.filter((name) => name !== "cpu")) {
    const verdict = await verdictOn(provider, machine, device === undefined ? "stored" : "both", {
      ...options,
      stored,
    });
    if (verdict === undefined) continue;
    if (verdict.isUsable && (isGiven || verdict.speed >= 1)) {
      const { target, adapter } = verdict;
      return { provider, target, adapter };
    }
    const reason = verdict.isUsable ? "it is slower than the CPU." : verdict.reason;
    if (isGiven) throw new LatentkitError("device.unavailable", `Provider ${provider}: ${reason}`);
    if (machine.backends.includes(provider)) reasons.push(`${provider}: ${reason}`);
  }
  return device === undefined
    ? CPU_DEVICE
    : { ...CPU_DEVICE, reason: `No suitable GPU was found. ${reasons.join(" ")}`.trim() };
}

/** The installed ONNX Runtime, with a verdict on each provider on this machine. */
export interface RuntimeTrial {
  /** Version of onnxruntime-node. */
  readonly version: string;
  /** The CPU first. */
  readonly verdicts: readonly JudgedProvider[];
}

/** Tries every provider, ignoring earlier trials. Rejects with runtime.missing, runtime.failed and the signal's reason. */
export async function tryProviders(options: ChoiceOptions = {}): Promise<RuntimeTrial> {
  const machine = await readMachine(options.signal);
  const verdicts: JudgedProvider[] = [];
  for (const provider of PROVIDERS) verdicts.push((await verdictOn(provider, machine, "new", options))!);
  return { version: machine.version, verdicts };
}

async function verdictOn(
  provider: Provider,
  { version, backends, adapters }: Machine,
  which: "stored" | "new" | "both",
  { stored = new StoredVerdicts(), ...trial }: ChoiceOptions,
): Promise<JudgedProvider | undefined> {
  // ONNX Runtime silently drops the name of a provider that it does not know
  if (!backends.includes(provider)) {
    const reason = `onnxruntime-node ${version} does not include it on ${process.platform}-${process.arch}.`;
    return { provider, isUsable: false, reason };
  }
  if (provider === "cpu") return { provider, ...(await judge(provider, trial)) };
  const adapter = adapterOf(provider, adapters);
  const circumstances = { provider, version, adapters };
  const known = which === "new" ? undefined : await stored.get(circumstances);
  if (known !== undefined) return { provider, adapter, ...known };
  if (which === "stored") return undefined;
  const verdict = await judge(provider, trial);
  await stored.set(circumstances, verdict);
  return { provider, adapter, ...verdict };
}

/** The GPU that a provider takes: the fastest kind first, for CUDA NVIDIA's. */
function adapterOf(provider: Provider, adapters: readonly GraphicsAdapter[]): string | undefined {
  const own = adapters.find(({ vendorId }) => provider !== "cuda" || vendorId === NVIDIA);
  return own === undefined ? undefined : `${own.name} (${own.driver})`;
}

/** Asks a process with ONNX Runtime: listing adapters can crash a driver, and the process with it. */
async function readMachine(signal: AbortSignal | undefined): Promise<Machine> {
  signal?.throwIfAborted();
  const child = new RuntimeProcess();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill();
  }, START_MS);
  const leave = onAbort(signal, () => child.kill());
  try {
    const { version, backends } = await child.ready;
    const adapters = await child.adapters().catch(() => []);
    signal?.throwIfAborted();
    return { version, backends, adapters };
  } catch (error) {
    signal?.throwIfAborted();
    if (!isLate) throw error;
    throw new LatentkitError("runtime.failed", `ONNX Runtime did not start within ${START_MS / 1000} s.`);
  } finally {
    clearTimeout(timer);
    leave();
    child.kill();
    await child.ended;
  }
}

/** The device of a runtime, chosen by the first call that needs it. */
export class ChosenOnce {
  #known: Device | undefined;
  #choosing: { readonly abort: AbortController; readonly end: Promise<unknown> } | undefined;
  readonly #options: Pick<RuntimeOptions, "device" | "plan" | "onDevice">;

  constructor(options: Pick<RuntimeOptions, "device" | "plan" | "onDevice">) {
    this.#options = options;
    this.#known = options.device === "cpu" ? CPU_DEVICE : undefined;
  }

  /** Undefined before it is chosen. */
  get known(): Device | undefined {
    return this.#known;
  }

  /**
   * Returns the device; calls must not overlap. Rejects as `chooseDevice`, with usage.invalid for a plan that the device does
   * not have, and with run.interrupted if the choice is cut short.
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

  /** Stops a choice in progress, and resolves when its processes are gone. The next `get` starts again. */
  async cut(): Promise<void> {
    const choosing = this.#choosing;
    choosing?.abort.abort(
      new LatentkitError("run.interrupted", "The GPU test was cancelled: no run is waiting for it."),
    );
    await choosing?.end;
  }

  async #choose(signal: AbortSignal): Promise<Device> {
    const { device, plan, onDevice } = this.#options;
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
  provider === "cpu"
    ? { provider, ...(target.convInTiles && { form: "tiles" as const }) }
    : { provider, adapter, form: target.attention };

/** The facts that a verdict depends on. */
export interface Circumstances {
  readonly provider: Provider;
  /** Version of onnxruntime-node. */
  readonly version: string;
  readonly adapters: readonly GraphicsAdapter[];
}

type Usable = Extract<Verdict, { isUsable: true }>;

/** Good verdicts of earlier processes, in the user's cache folder. Others are tried again: the fault may be fixed. */
export class StoredVerdicts {
  readonly #texts: StoredTexts;

  constructor(folder = join(cacheFolder(), "devices")) {
    this.#texts = new StoredTexts(folder);
  }

  /** Whether no verdict at all is stored. */
  isEmpty(): Promise<boolean> {
    return this.#texts.isEmpty();
  }

  async get(circumstances: Circumstances): Promise<Usable | undefined> {
    try {
      const verdict: unknown = JSON.parse((await this.#texts.get(keyOf(circumstances))) ?? "");
      return isVerdict(verdict) ? verdict : undefined;
    } catch {
      return undefined;
    }
  }

  async set(circumstances: Circumstances, verdict: Verdict): Promise<void> {
    const key = keyOf(circumstances);
    await (verdict.isUsable ? this.#texts.set(key, JSON.stringify(verdict)) : this.#texts.remove(key));
  }
}

// if the system does not list adapters, its release stands for their drivers
const keyOf = ({ provider, version, adapters }: Circumstances): string =>
  JSON.stringify([packageVersion(), provider, version, process.platform, process.arch, release(), adapters]);

function isVerdict(value: unknown): value is Usable {
  if (!isObject(value)) return false;
  const { isUsable, target, speed } = value as Record<string, unknown>;
  if (isUsable !== true || typeof speed !== "number" || !isObject(target)) return false;
  const { attention, largestHead, matMul, convChannels, halfTypes } = target as Record<string, unknown>;
  return (
    ["fused", "plain"].includes(attention as string) &&
    typeof largestHead === "number" &&
    ["fused", "transposed"].includes(matMul as string) &&
    ["any", "fours"].includes(convChannels as string) &&
    Array.isArray(halfTypes) &&
    halfTypes.every((type) => type === "F16")
  );
}
