import { AsyncLocalStorage } from "node:async_hooks";
import { LatentkitError, valueError } from "../../base/errors.js";
import { type Cuda, cudaLibrary, openCuda } from "../../native/cuda/cuda.js";
import { loadNative } from "../../native/load.js";
import { type CudaDevice, probeCuda } from "../../native/probe.js";

// Opens what it reports on, for its free memory; the setting `cpu` prevents that.
/** A GPU, and whether it is used. */
export interface DeviceReport extends CudaDevice {
  /** "cuda:0", as `device` options name it. */
  readonly device: string;
  /** Whether its results equal the CPU's. */
  readonly usable: boolean;
  /** Why it is not usable, in one sentence. */
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
  /** `available` if a device is usable, else the reason. `library` is the CUDA library of this installation. */
  cuda: { available: boolean; reason?: string; driverVersion?: string; library?: string; devices: DeviceReport[] };
}

/**
 * Reports what this process computes with. No GPU is a normal result, with its reason. A GPU that is new to this machine
 * is first tried in a separate process, which takes some seconds.
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

const SET_TO_CPU = "The device option (or LATENTKIT_DEVICE) is set to cpu.";

function reportDevice(probed: CudaDevice, ordinal: number): DeviceReport {
  const device = `cuda:${ordinal}`;
  if (currentDevice() === "cpu") return { device, ...probed, usable: false, reason: SET_TO_CPU };
  const opened = openCuda(ordinal);
  const reason = opened.reason ?? opened.cuda.lost;
  if (opened.reason !== undefined || reason !== undefined) return { device, ...probed, usable: false, reason };
  return { device, ...probed, usable: true, freeMemoryBytes: opened.cuda.memory.free };
}

/** Side that computes: "auto" takes the GPU for large tensors and those that are there, "cuda:1" always that device. */
export type DeviceChoice = "auto" | "cpu" | `cuda:${number}`;

const VARIABLE = "LATENTKIT_DEVICE";

/** Choice of the run that calls; costs nothing until a run chooses another device than the process. */
const choices = new AsyncLocalStorage<DeviceChoice>();

/** Choice of the process, read once: reading the environment takes a microsecond. */
const processChoice = process.env[VARIABLE] || "auto";

/** Reads a choice; `subject` names it in the message. Fails with usage.invalid. */
export function parseDevice(choice: unknown, subject = "device"): DeviceChoice {
  if (typeof choice === "string" && /^(auto|cpu|cuda:\d{1,3})$/.test(choice)) return choice as DeviceChoice;
  throw valueError("usage.invalid", subject, "auto, cpu or cuda:N", choice);
}

/** Choice in force for the caller; one from the environment is not checked. */
export const deviceInForce = (): string => choices.getStore() ?? processChoice;

/** Choice in force for the caller. Fails with usage.invalid for a wrong one in the environment. */
export function currentDevice(): DeviceChoice {
  const choice = deviceInForce();
  return choice === "auto" || choice === "cpu" ? choice : parseDevice(choice, VARIABLE);
}

/** Runs `work`, and all that it calls and awaits, with a device. Default: the one in force. */
export function withDevice<T>(choice: DeviceChoice | undefined, work: () => T): T {
  return choice === undefined || choice === deviceInForce() ? work() : choices.run(choice, work);
}

/** Opens the device that a choice names. Fails with device.unavailable and the reason in one sentence. */
export function requireDevice(choice: `cuda:${number}`): Cuda {
  const opened = openCuda(Number(choice.slice("cuda:".length)));
  if (opened.reason === undefined && opened.cuda.lost === undefined) return opened.cuda;
  const reason = opened.reason ?? opened.cuda.lost;
  throw new LatentkitError("device.unavailable", `Device ${choice} cannot be used: ${reason}`);
}

/** Reads the choice of a run before anything starts: a device that cannot be used is refused at once. */
export function chooseDevice(choice: unknown): DeviceChoice | undefined {
  const own = choice === undefined ? undefined : parseDevice(choice);
  const inForce = own ?? currentDevice();
  if (inForce !== "auto" && inForce !== "cpu") requireDevice(inForce);
  return own;
}
