import { type Cuda, openCuda } from "../../native/cuda/cuda.js";
import { type DeferredNoise, DeviceValues, isNoMemory, lossOf } from "../device-values.js";
import { outputOf } from "../shape.js";
import { Tensor } from "../tensor.js";
import { currentDevice, deviceInForce, requireDevice } from "./choice.js";
import { CPU_SIDE, CudaSide, type Memory, type Side } from "./sides.js";

/** Number of values from which on "auto" sends an operation to a device. */
const AUTO_FROM = 2 ** 18;

/**
 * Runs the work on the device of the run where it computes this `size`, or where an operand is there already; else on the
 * CPU, also where the device has no memory left. The work may run twice: it must change nothing but its outputs. Fails
 * with device.unavailable and device.lost.
 */
export function compute<T>(
  size: number,
  work: (at: Side) => T,
  a?: Tensor,
  b?: Tensor,
  c?: Tensor,
  d?: Tensor,
  e?: Tensor,
): T {
  if (runsOnCpu(size, a, b, c, d, e)) return work(CPU_SIDE);
  const choice = currentDevice();
  const onDevice = a?.onDevice ?? b?.onDevice ?? c?.onDevice ?? d?.onDevice ?? e?.onDevice;
  if (choice === "auto" && size < AUTO_FROM && onDevice === undefined) return work(CPU_SIDE);
  const isUsable = onDevice !== undefined && onDevice.cuda.lost === undefined;
  const cuda = choice !== "auto" ? requireDevice(choice as `cuda:${number}`) : isUsable ? onDevice.cuda : autoDevice();
  return cuda === undefined ? work(CPU_SIDE) : computeOn(cuda, choice === "auto", work);
}

/** Runs an operation: `write` computes the result into `to`, its memory on the side that `compute` chooses. */
export function produce(
  operation: string,
  like: Tensor | readonly number[],
  size: number,
  out: Tensor | undefined,
  write: (at: Side, to: Memory, result: Tensor) => void,
  a?: Tensor,
  b?: Tensor,
  c?: Tensor,
  d?: Tensor,
): Tensor {
  if (runsOnCpu(size, out, a, b, c, d)) {
    const result = outputOf(operation, like, out);
    write(CPU_SIDE, result.data, result);
    return result;
  }
  const work = (at: Side): Tensor => {
    const result = at.output(operation, like, out);
    write(at, at.out(result), result);
    return result;
  };
  return compute(size, work, out, a, b, c, d);
}

/**
 * Whether `compute` would certainly run on the CPU, as most operations do. A caller that checks first makes no closure
 * for the other case, which costs a small operation a quarter of its time.
 */
function runsOnCpu(size: number, a?: Tensor, b?: Tensor, c?: Tensor, d?: Tensor, e?: Tensor): boolean {
  const inForce = deviceInForce();
  if (inForce === "cpu") return true;
  if (inForce !== "auto" || size >= AUTO_FROM) return false;
  return !(a?.isAway || b?.isAway || c?.isAway || d?.isAway || e?.isAway);
}

/** The operand that `compute` and `produce` need of many: the first whose values are, or would be made, on a device. */
export function operandOnDevice(operands: readonly Tensor[]): Tensor | undefined {
  for (const operand of operands) if (operand.onDevice !== undefined) return operand;
  return undefined;
}

/** The device that would compute new values of this size, if any. @internal */
export function deviceFor(size: number): Cuda | undefined {
  const choice = currentDevice();
  if (choice === "cpu" || (choice === "auto" && size < AUTO_FROM)) return undefined;
  return choice === "auto" ? autoDevice() : requireDevice(choice);
}

/** Lets the first reader decide whether values computed on the CPU move to the device; nobody may have read them yet. */
export function deferUpload(tensor: Tensor): Tensor {
  const cuda = deviceFor(tensor.size);
  return cuda === undefined
    ? tensor
    : Tensor.on(new DeviceValues(cuda, tensor.size, { cpuValues: tensor.data }), tensor.shape);
}

/** A tensor of noise that is drawn when it is read, by a device; undefined where the CPU would draw it. */
export function deferNoise(shape: readonly number[], size: number, noise: DeferredNoise): Tensor | undefined {
  const cuda = runsOnCpu(size) ? undefined : deviceFor(size);
  return cuda === undefined ? undefined : Tensor.on(new DeviceValues(cuda, size, { noise }), shape);
}

function autoDevice(): Cuda | undefined {
  const { cuda } = openCuda(0) as { cuda?: Cuda };
  if (cuda?.lost === undefined) return cuda;
  warnOnce(cuda, "reported a fault");
  return undefined;
}

function computeOn<T>(cuda: Cuda, isFree: boolean, work: (at: Side) => T): T {
  const at = new CudaSide(cuda);
  try {
    const result = work(at);
    at.finish();
    return result;
  } catch (error) {
    at.abandon();
    const loss = lossOf(cuda, error);
    if (loss !== undefined && !isFree) throw loss;
    if (loss === undefined && !isNoMemory(error)) throw error;
    warnOnce(cuda, loss === undefined ? "has no memory left for an operation" : "reported a fault");
    // where an operand was lost with the device, reading it fails with device.lost
    return work(CPU_SIDE);
  }
}

const warned = new Set<string>();

function warnOnce(cuda: Cuda, event: string): void {
  const message = `${cuda.name} ${event}: the CPU computes it, with the same result.`;
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { type: "LatentkitWarning", code: "LATENTKIT_DEVICE" });
}
