import { loadNative } from "../native/load.js";
import { probeCuda } from "../native/probe.js";

/** Where the numbers are made. */
export interface Device {
  /** Instruction set of the kernels in use: avx512, avx2 or baseline. */
  isa: string;
  /** Threads that share the work. */
  threads: number;
  cuda: { available: boolean; reason?: string; devices: object[] };
}

/** What this process computes with. No GPU is a normal answer, with its reason. */
export function device(): Device {
  const native = loadNative();
  return { isa: native.isa(), threads: native.threads(), cuda: probeCuda() };
}
