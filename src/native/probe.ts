import { createRequire } from "node:module";
import { reasonOf } from "../base/errors.js";
import { loadKoffi } from "../base/lazy.js";
import { packageRoot } from "../base/package.js";
import { packageFile, platformPackage } from "./load.js";

/** One CUDA device as the driver describes it. */
export interface CudaDevice {
  name: string;
  totalMemoryBytes: number;
  /** "9.0" for compute capability 9.0. */
  computeCapability: string;
}

/** Devices of the CUDA driver. No driver and no device are normal states, with the reason in one sentence. */
export interface CudaProbe {
  available: boolean;
  reason?: string;
  devices: CudaDevice[];
  /** The newest CUDA version that the driver supports, as "13.0". */
  driverVersion?: string;
  /** Path of the driver's library. */
  driver?: string;
}

const DRIVER_NAMES =
  process.platform === "win32"
    ? ["nvcuda.dll"]
    : ["libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"];

/** Files that may be the driver; the environment variable LATENTKIT_CUDA_DRIVER names another one. */
const driverNames = (): readonly string[] => {
  const { LATENTKIT_CUDA_DRIVER } = process.env;
  return LATENTKIT_CUDA_DRIVER ? [LATENTKIT_CUDA_DRIVER] : DRIVER_NAMES;
};

const ATTRIBUTE_MAJOR = 75;
const ATTRIBUTE_MINOR = 76;
const NAME_BYTES = 256;

/** Asks the CUDA driver, the first of `libraries` that loads, for its devices. Never throws; takes 0.4 ms without one. */
export function probeCuda(libraries: readonly string[] = driverNames()): CudaProbe {
  try {
    const koffi = tryKoffi();
    const driver = typeof koffi === "string" ? koffi : openDriver(koffi, libraries);
    return typeof driver === "string" ? unavailable(driver) : queryDriver(driver);
  } catch (error) {
    return unavailable(`The CUDA driver could not be queried: ${reasonOf(error)}.`);
  }
}

type Koffi = typeof import("koffi");
type Driver = ReturnType<typeof bind> & { readonly library: string };

/** koffi, or why it does not load. */
function tryKoffi(): Koffi | string {
  try {
    return packagedKoffi() ?? loadKoffi();
  } catch (error) {
    return `koffi, which queries the CUDA driver, could not be loaded (${reasonOf(error)}): run "npm install koffi".`;
  }
}

/** koffi's compiled part, on which the CUDA package depends: koffi itself has an install script, which pnpm and bun report. */
function packagedKoffi(): Koffi | undefined {
  const manifest = packageFile(packageRoot, `${platformPackage()}-cuda`, "package.json");
  return manifest && createRequire(manifest)(`@koromix/koffi-${process.platform}-${process.arch}`);
}

/** The bound driver, or why there is none. */
function openDriver(koffi: Koffi, libraries: readonly string[]): Driver | string {
  let failure: string | undefined;
  for (const library of libraries) {
    try {
      return { library, ...bind(koffi.load(library)) };
    } catch (error) {
      failure ??= `${library}: ${reasonOf(error)}`;
    }
  }
  return `No CUDA driver was found (${failure ?? "no library was named"}).`;
}

function bind(library: import("koffi").LibraryHandle) {
  return {
    init: library.func("int cuInit(unsigned int flags)"),
    driverVersion: library.func("int cuDriverGetVersion(_Out_ int *version)"),
    deviceCount: library.func("int cuDeviceGetCount(_Out_ int *count)"),
    device: library.func("int cuDeviceGet(_Out_ int *device, int ordinal)"),
    deviceName: library.func("int cuDeviceGetName(_Out_ uint8_t *name, int length, int device)"),
    // the plain name is the 32-bit ABI
    deviceMemory: library.func("int cuDeviceTotalMem_v2(_Out_ size_t *bytes, int device)"),
    deviceAttribute: library.func("int cuDeviceGetAttribute(_Out_ int *value, int attribute, int device)"),
  };
}

function queryDriver(driver: Driver): CudaProbe {
  check("cuInit", driver.init(0));
  const version = read("cuDriverGetVersion", (out) => driver.driverVersion(out));
  const driverVersion = `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
  const count = read("cuDeviceGetCount", (out) => driver.deviceCount(out));
  const devices = Array.from({ length: count }, (_, ordinal) => describeDevice(driver, ordinal));
  const about = { driverVersion, driver: driver.library };
  if (count === 0) return { ...unavailable("The CUDA driver sees no device."), ...about };
  return { available: true, devices, ...about };
}

function describeDevice(driver: Driver, ordinal: number): CudaDevice {
  const device = read("cuDeviceGet", (out) => driver.device(out, ordinal));
  const name = Buffer.alloc(NAME_BYTES);
  check("cuDeviceGetName", driver.deviceName(name, NAME_BYTES, device));
  const attribute = (id: number) => read("cuDeviceGetAttribute", (out) => driver.deviceAttribute(out, id, device));
  return {
    name: name.toString("utf8", 0, Math.max(0, name.indexOf(0))),
    totalMemoryBytes: read("cuDeviceTotalMem_v2", (out) => driver.deviceMemory(out, device)),
    computeCapability: `${attribute(ATTRIBUTE_MAJOR)}.${attribute(ATTRIBUTE_MINOR)}`,
  };
}

/** The number that a driver function writes. */
function read(name: string, call: (out: [number | bigint | null]) => number): number {
  const out: [number | bigint | null] = [null];
  check(name, call(out));
  return Number(out[0]);
}

function check(name: string, status: number): void {
  if (status !== 0) throw new Error(`${name} returned ${status}`);
}

function unavailable(reason: string): CudaProbe {
  return { available: false, reason, devices: [] };
}
