import { LatentkitError } from "../../../base/errors.js";
import { CPU_TARGET, type Target } from "../onnx/target.js";
import { type ProviderProbe, probeGraph } from "./probe-graph.js";
import { RuntimeProcess } from "./process.js";
import { bytesOf, type SentFeed } from "./protocol.js";
import { PROVIDERS, type Provider, sessionOptions } from "./session-options.js";

/** Where networks run, and the forms that are right there. */
export interface Device {
  readonly provider: Provider;
  readonly target: Target;
}

/** Forms in which a provider computes rightly on this machine, or why it is not used, in a sentence. */
export type ProviderVerdict =
  | (Device & {
      readonly isUsable: true;
      /** Whether it takes many times as long as the CPU, as a driver does that computes on the CPU. */
      readonly isSlow: boolean;
      readonly reason?: undefined;
    })
  | { readonly provider: Provider; readonly isUsable: false; readonly reason: string };

/** Writes a graph in the forms of a target. */
type MakeProbe = (target: Target) => ProviderProbe;

export interface ProviderTrialOptions {
  readonly probe?: MakeProbe;
  readonly timeoutMs?: number;
}

/** A GPU that has to compile its programs takes some seconds. */
const TIMEOUT_MS = 60_000;
/** Difference from the CPU for values of order 1: sound providers stay below 1e-3, a broken attention was off by 0.1. */
const TOLERANCE = 5e-3;
/** Runs of one thread of the CPU in the time of one of a slow provider; software drivers take far longer. */
const SLOW_FROM = 10;
/** Trials of this process, by provider and version of ONNX Runtime. */
const verdicts = new Map<string, Promise<ProviderVerdict>>();

/** WebGPU has no kernel for FusedMatMul. */
const matMulOn = (provider: Provider): Target["matMul"] => (provider === "webgpu" ? "transposed" : "fused");

/** With the VAE's head of 512 WebGPU's operator took 53 GiB at 1024x1024; the plain form took 13, and less time. */
const LARGEST_HEAD = 256;

/** Forms to try on a provider, the best first. */
const targetsOf = (provider: Provider): readonly Target[] =>
  provider === "cpu"
    ? [CPU_TARGET]
    : (["fused", "plain"] as const).map((attention) => ({
        attention,
        largestHead: LARGEST_HEAD,
        matMul: matMulOn(provider),
      }));

/**
 * Returns the provider for a device; "auto" is the first one that computes rightly and not far slower than the CPU. Rejects
 * with device.unavailable, runtime.missing and runtime.failed.
 */
export async function chooseProvider(device: Provider | "auto", options: ProviderTrialOptions = {}): Promise<Device> {
  const candidates = device === "auto" ? PROVIDERS.filter((provider) => provider !== "cpu") : [device];
  for (const provider of candidates) {
    const verdict = await tryProvider(provider, options);
    if (verdict.isUsable && (device !== "auto" || !verdict.isSlow)) return verdict;
    if (device !== "auto") throw new LatentkitError("device.unavailable", `Provider ${provider}: ${verdict.reason}`);
  }
  return { provider: "cpu", target: CPU_TARGET };
}

/** The installed ONNX Runtime, and what each provider is worth on this machine. */
export interface RuntimeTrial {
  /** Version of onnxruntime-node. */
  readonly version: string;
  /** The CPU first. */
  readonly verdicts: readonly ProviderVerdict[];
}

/** Tries every provider, each for at most `timeoutMs`. Rejects with runtime.missing and runtime.failed. */
export async function tryProviders(options: ProviderTrialOptions = {}): Promise<RuntimeTrial> {
  const version = await runtimeVersion(options.timeoutMs ?? TIMEOUT_MS);
  const all: ProviderVerdict[] = [];
  for (const provider of PROVIDERS) all.push(await tryProvider(provider, options));
  return { version, verdicts: all };
}

async function runtimeVersion(timeoutMs: number): Promise<string> {
  const child = new RuntimeProcess();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill();
  }, timeoutMs);
  try {
    return (await child.ready).version;
  } catch (error) {
    if (!isLate) throw error;
    throw new LatentkitError("runtime.failed", `ONNX Runtime did not start within ${timeoutMs / 1000} s.`);
  } finally {
    clearTimeout(timer);
    child.kill();
    await child.ended;
  }
}

/**
 * Runs a graph with attention, convolution and the other layers of a network on a provider, in one form after the other,
 * and on the CPU, in a process of its own, and compares. The verdict holds for this process and version of ONNX Runtime. Rejects with runtime.missing and
 * runtime.failed. @internal
 */
export async function tryProvider(
  provider: Provider,
  { probe, timeoutMs = TIMEOUT_MS }: ProviderTrialOptions = {},
): Promise<ProviderVerdict> {
  const child = new RuntimeProcess();
  try {
    const { version, backends } = await child.ready;
    // ONNX Runtime drops the name of a provider that it does not know, in silence
    if (!backends.includes(provider)) {
      const reason = `onnxruntime-node ${version} does not have it on ${process.platform}-${process.arch}.`;
      return { provider, isUsable: false, reason };
    }
    if (probe !== undefined) return await judge(child, provider, probe, timeoutMs);
    const key = `${provider} ${version}`;
    const verdict = verdicts.get(key) ?? judge(child, provider, probeGraph, timeoutMs);
    verdicts.set(key, verdict);
    return await verdict;
  } finally {
    child.kill();
    await child.ended;
  }
}

async function judge(
  child: RuntimeProcess,
  provider: Provider,
  probe: MakeProbe,
  timeoutMs: number,
): Promise<ProviderVerdict> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill();
  }, timeoutMs);
  try {
    const expected = await runProbe(child, "cpu", probe(CPU_TARGET));
    let difference = Number.POSITIVE_INFINITY;
    for (const target of targetsOf(provider)) {
      const received = await runProbe(child, provider, probe(target));
      difference = largestDifference(expected.outputs, received.outputs);
      if (difference > TOLERANCE) continue;
      return { provider, target, isUsable: true, isSlow: received.ms >= SLOW_FROM * expected.ms };
    }
    return { provider, isUsable: false, reason: `its results differ from the CPU's by ${difference.toPrecision(2)}.` };
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    const reason = isLate ? `its trial did not end within ${timeoutMs / 1000} s.` : error.message;
    return { provider, isUsable: false, reason };
  } finally {
    clearTimeout(timer);
  }
}

async function runProbe(
  child: RuntimeProcess,
  provider: Provider,
  { graph, feeds }: ProviderProbe,
): Promise<{ readonly outputs: readonly Float32Array[]; readonly ms: number }> {
  const task = "its trial failed";
  const model = await child.sendBytes(graph.bytes, task);
  const options = sessionOptions({ provider, threads: 1 }, "fold", graph.folder);
  const session = 0;
  await child.create({ session, model, options }, task);
  const sent: Record<string, SentFeed> = {};
  for (const [name, { data, shape }] of Object.entries(feeds))
    sent[name] = { values: await child.sendBytes(bytesOf(data), task), shape, keep: true };
  const outputs = await child.run({ session, feeds: sent }, task);
  // the first run compiles a GPU's programs
  const began = performance.now();
  await child.run({ session, feeds: sent }, task);
  const ms = performance.now() - began;
  const values = Object.values(sent).flatMap((feed) => ("values" in feed ? [feed.values] : []));
  await child.request({ type: "forget", values }, task);
  await child.request({ type: "release", session }, task);
  return { outputs: outputs.map((output) => output.values), ms };
}

/** Largest difference of two lists of outputs, Infinity for NaN and other lengths. */
function largestDifference(expected: readonly Float32Array[], received: readonly Float32Array[]): number {
  let largest = expected.length === received.length ? 0 : Number.POSITIVE_INFINITY;
  for (const [index, values] of expected.entries()) {
    const others = received[index];
    if (others?.length !== values.length) return Number.POSITIVE_INFINITY;
    for (let i = 0; i < values.length; i++) {
      const difference = Math.abs(values[i]! - others[i]!);
      if (!(difference <= largest)) largest = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
    }
  }
  return largest;
}
