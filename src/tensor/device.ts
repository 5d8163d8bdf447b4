import { cudaLibrary, openCuda } from "../native/cuda/cuda.js";
import { loadNative } from "../native/load.js";
import { type CudaDevice, probeCuda } from "../native/probe.js";
import { currentDevice } from "./device-choice.js";

/** A GPU, and whether it is used. */
export interface DeviceReport extends CudaDevice {
  /** "cuda:0", as `device` options name it. */
  readonly device: string;
  /** Compared with the processor, and open. */
  readonly usable: boolean;
  /** Why not, in a sentence. */
  readonly reason?: string;
  /** Of a usable one. */
  readonly freeMemoryBytes?: number;
}

/** Where the numbers are made. */
export interface Device {
  /** Instruction set of the kernels in use: avx512, avx2 or baseline. */
  isa: string;
  /** Threads that share the work. */
  threads: number;
  /** `available` where a device is usable; else the reason. `library` is the CUDA library of this installation. */
  cuda: { available: boolean; reason?: string; driverVersion?: string; library?: string; devices: DeviceReport[] };
}

/**
 * What this process computes with. No GPU is a normal answer, with its reason. The first time that a GPU is found it is
 * tried in a process of its own, which takes some seconds.
 */
export function device(): Device {
  const native = loadNative();
  return { isa: native.isa(), threads: native.threads(), cuda: reportCuda() };
}

function reportCuda(): Device["cuda"] {
  const { driverVersion, ...probe } = probeCuda();
  const devices = probe.devices.map((found, ordinal) => reportDevice(found, ordinal));
  const available = devices.some(({ usable }) => usable);
  const reason = available ? undefined : (probe.reason ?? devices[0]?.reason);
  return { available, reason, driverVersion, library: cudaLibrary(), devices };
}

function reportDevice(found: CudaDevice, ordinal: number): DeviceReport {
  const device = `cuda:${ordinal}`;
  if (currentDevice() === "cpu") return { device, ...found, usable: false, reason: "The device cpu was asked for." };
  const opening = openCuda(ordinal);
  const reason = opening.reason ?? opening.cuda.lost;
  if (opening.reason !== undefined || reason !== undefined) return { device, ...found, usable: false, reason };
  return { device, ...found, usable: true, freeMemoryBytes: opening.cuda.memory.free };
}
