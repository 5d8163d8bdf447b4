import { onAbort } from "../../../../base/abort.js";
import { LatentkitError } from "../../../../base/errors.js";
import type { GraphicsAdapter } from "../../../../native/bindings.js";
import { CPU_DEVICE, type Device } from "../device.js";
import { RuntimeProcess } from "../process.js";
import { type NetworkDevice, PROVIDERS, type Provider } from "../session-options.js";
import { StoredVerdicts } from "./stored-verdicts.js";
import { judge, type TrialOptions, type Verdict } from "./trial.js";

/** A provider with its verdict. */
export type JudgedProvider = Verdict & {
  readonly provider: Provider;
  /** Name and driver of the GPU, where the system tells. */
  readonly adapter?: string;
};

export interface ChoiceOptions extends TrialOptions {
  readonly stored?: StoredVerdicts;
}

/** A device, and why "auto" took no GPU: a sentence. */
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

// decision 353
/**
 * Chooses where networks run. "auto" is the first provider that computes rightly and is faster than the CPU; undefined the
 * first of those whose trial an earlier process has seen, else the CPU: a trial takes seconds, and nothing is tried unasked.
 * Rejects with device.unavailable for a provider that is named and cannot be used, runtime.missing, runtime.failed and the
 * signal's reason: then all processes have ended, and no verdict of a trial that was cut is stored.
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
  return device === undefined ? CPU_DEVICE : { ...CPU_DEVICE, reason: `No GPU is used. ${reasons.join(" ")}`.trim() };
}

/** The installed ONNX Runtime, and what each provider is worth on this machine. */
export interface RuntimeTrial {
  /** Version of onnxruntime-node. */
  readonly version: string;
  /** The CPU first. */
  readonly verdicts: readonly JudgedProvider[];
}

/** Tries every provider, whatever earlier trials found. Rejects with runtime.missing, runtime.failed and the signal's reason. */
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
  // ONNX Runtime drops the name of a provider that it does not know, in silence
  if (!backends.includes(provider)) {
    const reason = `onnxruntime-node ${version} does not have it on ${process.platform}-${process.arch}.`;
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

/** Asks a process with ONNX Runtime in it: drivers that list adapters may take it down. */
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
