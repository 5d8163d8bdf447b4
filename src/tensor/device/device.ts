import { cudaLibrary, openCuda } from "../../native/cuda/cuda.js";
import { loadNative } from "../../native/load.js";
import { type CudaDevice, probeCuda } from "../../native/probe.js";
import { currentDevice } from "./choice.js";

// decision 101
/** A GPU, and whether it is used. */
export interface DeviceReport extends CudaDevice {
  /** "cuda:0", as `device` options name it. */
  readonly device: string;
  /** Trial passed: its results equal the CPU's. */
  readonly usable: boolean;
  /** Reason why it is not usable, one sentence. */
  readonly reason?: string;
  /** Free memory of a usable device. */
  readonly freeMemoryBytes?: number;
}

/** The processors that compute, and how. */
export interface Device {
  /** Instruction set of the kernels in use: avx512, avx2 or baseline. */
  isa: string;
  /** Threads that share the work. */
  threads: number;
  /** `available` where a device is usable; else the reason. `library` is the CUDA library of this installation. */
  cuda: { available: boolean; reason?: string; driverVersion?: string; library?: string; devices: DeviceReport[] };
}

/**
 * Reports what this process computes with. No GPU is a normal result, with its reason. A GPU that is new to this machine
 * is tried in a process of its own first, which takes some seconds.
 */
export function device(): Device {
  const native = loadNative();
  return { isa: native.isa(), threads: native.threads(), cuda: reportCuda() };
}

function reportCuda(): Device["cuda"] {
  const { driverVersion, ...probe } = probeCuda();
  const devices = probe.devices.map(reportDevice);
  const available = devices.some(({ usable }) => usable);
  const reason = available ? undefined : (probe.reason ?? devices[0]?.reason);
  return { available, reason, driverVersion, library: cudaLibrary(), devices };
}

function reportDevice(probed: CudaDevice, ordinal: number): DeviceReport {
  const device = `cuda:${ordinal}`;
  if (currentDevice() === "cpu") return { device, ...probed, usable: false, reason: "The device is set to cpu." };
  const opened = openCuda(ordinal);
  const reason = opened.reason ?? opened.cuda.lost;
  if (opened.reason !== undefined || reason !== undefined) return { device, ...probed, usable: false, reason };
  return { device, ...probed, usable: true, freeMemoryBytes: opened.cuda.memory.free };
}
