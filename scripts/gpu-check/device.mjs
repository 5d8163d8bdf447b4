// The device as the operations know it, for programs that measure and compare them one by one.
import { cudaLibrary, openCuda } from "../../dist/native/cuda/cuda.js";
import { loadNative } from "../../dist/native/load.js";
import { probeCuda } from "../../dist/native/probe.js";

/** The native core, its CUDA operations, and device 0. Throws an Error with the reason if there is none. */
export function openDevice() {
  const { reason } = openCuda(0);
  if (reason !== undefined) throw new Error(reason);
  const native = loadNative();
  // the same device: it is one for each process
  const driver = String(probeCuda().driver);
  return { native, cuda: native.cuda, handle: native.cuda.open(String(cudaLibrary()), driver, 0) };
}
