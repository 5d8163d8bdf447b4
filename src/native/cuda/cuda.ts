import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { loadNative, nativeFile } from "../load.js";
import { probeCuda } from "../probe.js";
import type { CudaBindings, CudaHandle, CudaMemory, CudaMemoryState } from "./cuda-bindings.js";
import { trustOf } from "./cuda-trust.js";

const LIBRARY = "latentkit_cuda.so";

/** A CUDA device that this thread computes with. */
export class Cuda {
  private loss: string | undefined;

  constructor(
    /** "cuda:0" */
    readonly name: string,
    readonly ops: CudaBindings,
    private readonly handle: CudaHandle,
  ) {}

  /** Why it is of no use any more: its driver reported a fault. What lay on it is gone. */
  get lost(): string | undefined {
    return this.loss;
  }

  lose(reason: string): void {
    this.loss ??= reason;
  }

  /** Memory that is not cleared. Throws as every operation does, `status` "no-memory" where there is none. */
  take(bytes: number): CudaMemory {
    return this.ops.take(this.handle, bytes);
  }

  get memory(): CudaMemoryState {
    return this.ops.memory(this.handle);
  }
}

/** A device, or the sentence that says why there is none. */
export type CudaAnswer = { readonly cuda: Cuda; readonly reason?: undefined } | { readonly reason: string };

/** As the loaded module: each device is asked for once for each thread. */
const answers = new Map<number, CudaAnswer>();

/**
 * Device `ordinal`, opened at the first call: there has to be the library beside the native core, a driver with such a
 * device, and trust in both (see cuda-trust). Without the library nothing else is asked.
 */
export function openCuda(ordinal: number): CudaAnswer {
  const known = answers.get(ordinal);
  if (known !== undefined) return known;
  const answer = tryOpen(ordinal);
  answers.set(ordinal, answer);
  return answer;
}

/** The CUDA library: beside the native core, or what the environment variable LATENTKIT_CUDA names. */
export function cudaLibrary(): string | undefined {
  const { LATENTKIT_CUDA } = process.env;
  const library = LATENTKIT_CUDA ? resolve(LATENTKIT_CUDA) : join(dirname(nativeFile()), LIBRARY);
  return existsSync(library) ? library : undefined;
}

function tryOpen(ordinal: number): CudaAnswer {
  const library = cudaLibrary();
  if (library === undefined) return { reason: `This installation has no CUDA library (${LIBRARY}).` };
  const probe = probeCuda();
  const { driver = "", driverVersion = "" } = probe;
  if (!probe.available) return { reason: probe.reason! };
  const device = probe.devices[ordinal];
  if (device === undefined) {
    const count = probe.devices.length === 1 ? "one device" : `${probe.devices.length} devices`;
    return { reason: `The CUDA driver sees ${count}, numbered from 0.` };
  }
  const { name, computeCapability } = device;
  try {
    const trust = trustOf({ library, driver, ordinal, driverVersion, name, computeCapability });
    if (!trust.trusted) return { reason: `The CUDA library is not trusted with ${name}: ${trust.reason}` };
    const { cuda } = loadNative();
    return { cuda: new Cuda(`cuda:${ordinal}`, cuda, cuda.open(library, driver, ordinal)) };
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) };
  }
}
