import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "../../base/errors.js";
import { packageRoot } from "../../base/package.js";
import { loadNative, nativeFile, packageFile, platformPackage } from "../load.js";
import { probeCuda } from "../probe.js";
import type { CudaBindings, CudaHandle, CudaMemory, CudaMemoryState } from "../tensor-operations.js";
import { trustOf } from "./trust.js";

const LIBRARY = "latentkit_cuda.so";

/** A CUDA device, opened by this thread. */
export class Cuda {
  #loss: string | undefined;
  readonly #handle: CudaHandle;

  constructor(
    /** "cuda:0" */
    readonly name: string,
    readonly ops: CudaBindings,
    handle: CudaHandle,
  ) {
    this.#handle = handle;
  }

  /** Why the device can no longer be used, if its driver reported a fault. Tensors on it are lost. */
  get lost(): string | undefined {
    return this.#loss;
  }

  lose(reason: string): void {
    this.#loss ??= reason;
  }

  /** Memory that is not cleared. Throws as every operation does, with `status` "no-memory" if there is none. */
  take(bytes: number): CudaMemory {
    return this.ops.take(this.#handle, bytes);
  }

  get memory(): CudaMemoryState {
    return this.ops.memory(this.#handle);
  }
}

/** A device, or the sentence that says why there is none. */
export type CudaOpening = { readonly cuda: Cuda; readonly reason?: undefined } | { readonly reason: string };

/** Openings of this thread: each device is tried once. */
const openings = new Map<number, CudaOpening>();

/**
 * Device `ordinal`, opened at the first call. It needs the library beside the native core, a driver with such a device,
 * and trust in both (see trust.ts). Without the library nothing else is tried.
 */
export function openCuda(ordinal: number): CudaOpening {
  const opening = openings.get(ordinal) ?? tryOpen(ordinal);
  openings.set(ordinal, opening);
  return opening;
}

/** Path of the CUDA library: LATENTKIT_CUDA of the environment, or beside the native core, or in its package. */
export function cudaLibrary(): string | undefined {
  const { LATENTKIT_CUDA } = process.env;
  const library = LATENTKIT_CUDA ? resolve(LATENTKIT_CUDA) : join(dirname(nativeFile()), LIBRARY);
  if (LATENTKIT_CUDA || existsSync(library)) return existsSync(library) ? library : undefined;
  return packageFile(packageRoot, `${platformPackage()}-cuda`, LIBRARY);
}

function tryOpen(ordinal: number): CudaOpening {
  const library = cudaLibrary();
  if (library === undefined) return { reason: `This installation has no CUDA library (${LIBRARY}).` };
  const probe = probeCuda();
  const { driver = "", driverVersion = "" } = probe;
  if (!probe.available) return { reason: probe.reason! };
  const device = probe.devices[ordinal];
  if (device === undefined) {
    const last = probe.devices.length - 1;
    const devices = last === 0 ? "one device, cuda:0" : `${last + 1} devices, cuda:0 to cuda:${last}`;
    return { reason: `There is no cuda:${ordinal}: the driver reports ${devices}.` };
  }
  const { name, computeCapability } = device;
  try {
    const trust = trustOf({ library, driver, ordinal, driverVersion, name, computeCapability });
    if (!trust.trusted) return { reason: `The CUDA library failed its check on ${name}: ${trust.reason}` };
    const { cuda } = loadNative();
    return { cuda: new Cuda(`cuda:${ordinal}`, cuda, cuda.open(library, driver, ordinal)) };
  } catch (error) {
    return { reason: messageOf(error) };
  }
}
